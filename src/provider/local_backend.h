// LocalBackend: machines that are agents on this computer. Creating one makes a directory, configuring it starts
// `muster agent` with the cluster's bootstrap data, draining it waits until the agent has no workloads and stops it,
// and deleting it removes the directory.
//
//   <root>/<machine>/host         the reference of the hardware, made by Create
//   <root>/<machine>/flags        what the machine adds to the agent's configuration
//   <root>/<machine>/agent.yaml   the options of the bootstrap data, once the agent has joined
//   <root>/<machine>/agent        the agent's data directory; agent.status in it says pid, joined, workloads
//   <root>/<machine>/agent.log    what the agent prints
//
// The bootstrap data may hold a join secret. An agent that has not joined gets it through a file in memory, and this
// backend writes it to no disk; what an agent needs to come back are its options without secrets.
//
// Agents outlive this process: a backend that is opened again finds them by their agent.status. One that dies while its
// machine is configured is started again, as an init system would. Stop of the provider leaves them; Retire ends them.
//
// Every operation is what its end state says: asked for again, whether it had ended or not, it goes on from where the
// directory is. So nothing is done twice and nothing needs to be remembered besides.
//
// Thread-safety: none; as every Backend.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "provider/backend.h"
#include "provider/catalogue.h"

namespace muster::provider {

struct LocalBackendOptions {
  std::string name = "local";
  uint64_t machines = 20;
  std::filesystem::path root;     // in the provider's data directory
  std::filesystem::path program;  // muster itself
};

class LocalBackend final : public Backend {
 public:
  LocalBackend(Catalogue catalogue, LocalBackendOptions options)
      : catalogue_(std::move(catalogue)), options_(std::move(options)) {}

  std::vector<contract::Slot> Slots() const override;
  void Adopt(std::span<const contract::MachineRecord> machines, Now now) override;
  void Start(contract::CallId call, const contract::Operation& operation, Now now) override;
  std::optional<MonoTime> NextPoll() const override { return next_poll_; }
  void Poll(Now now, std::vector<Report>& out) override;

  // Ends every agent and what it runs, and leaves the directories: the next start goes on from there. Blocks up to
  // `patience`.
  void Retire(const Clock& clock, Duration patience);

 private:
  // What the agent says of itself in its data directory.
  struct AgentState {
    pid_t pid = 0;
    bool joined = false;
    int64_t workloads = 0;
  };
  struct Running {
    contract::CallId call = 0;
    contract::Operation operation;
    MonoTime deadline;   // of a drain
    pid_t retiring = 0;  // the program that ends what the agent left
  };

  std::filesystem::path Dir(const std::string& machine) const { return options_.root / machine; }
  std::optional<AgentState> ReadState(const std::string& machine) const;
  // The live agent of the machine; 0: none.
  pid_t LiveAgent(const std::string& machine) const;
  // `input`: what the program reads on its standard input.
  Result<pid_t> Spawn(const std::string& machine, const std::vector<std::string>& arguments,
                      std::string_view input = {});
  Status WriteFlags(const contract::Operation& operation) const;
  // The end of the operation, or nothing while it goes on.
  std::optional<Result<contract::OperationDone>> Advance(Running& running, Now now);
  std::optional<Result<contract::OperationDone>> AdvanceCreate(const Running& running);
  std::optional<Result<contract::OperationDone>> AdvanceConfigure(const Running& running, Now now);
  std::optional<Result<contract::OperationDone>> AdvanceDrain(Running& running, Now now);
  std::optional<Result<contract::OperationDone>> AdvanceDelete(Running& running, Now now);
  void KeepAgents(Now now);
  // Starts the agent of a machine if none lives, not more often than every second: with this bootstrap data, or with
  // the options of what it has joined with.
  Status KeepAgent(const std::string& machine, Now now, const std::string* blob = nullptr);

  const Catalogue catalogue_;
  const LocalBackendOptions options_;
  std::map<std::string, Running> running_;   // by machine
  std::set<std::string> configured_;         // machines whose agent is to live
  std::map<std::string, MonoTime> started_;  // when its agent was started last
  std::vector<pid_t> children_;              // started by this process, and not yet waited for
  std::optional<MonoTime> next_poll_;
};

}  // namespace muster::provider
