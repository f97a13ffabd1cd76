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
// Invariants:
//   1. A drain ends an agent with work only when its grace is over: an agent that has not said what it runs counts as
//      one with work, unless it has never joined.
//   2. The agent's directory is removed only after `muster agent --retire` has said that nothing of it runs.
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
  // After which an agent that was told to end is killed; it gives up its own stop before that.
  Duration agent_stop_patience = 15s;
};

class LocalBackend final : public Backend {
 public:
  LocalBackend(Catalogue catalogue, LocalBackendOptions options);

  std::vector<contract::Slot> Slots() const override;
  void Adopt(std::span<const contract::MachineRecord> machines, Now now) override;
  void Start(contract::CallId call, const contract::Operation& operation, Now now) override;
  std::optional<MonoTime> NextPoll() const override { return next_poll_; }
  void Poll(Now now, std::vector<Report>& out) override;

  // Ends every agent and what it runs, and leaves the directories: the next start goes on from there. Blocks up to
  // `patience`; what is left then is logged, and an error. Nothing else may be called afterwards.
  Status Retire(const Clock& clock, Duration patience);

 private:
  // What the agent says of itself in its data directory.
  struct AgentState {
    pid_t pid = 0;
    bool joined = false;
    int64_t workloads = 0;
  };
  // How far the end of an agent and of what it ran is.
  struct Retirement {
    std::optional<MonoTime> told;  // when the agent got SIGTERM
    pid_t pid = 0;                 // the program that ends what the agent left; a child of this process
    MonoTime next_try;             // not more often than every second
    int failures = 0;
  };
  struct Running {
    contract::CallId call = 0;
    contract::Operation operation;
    MonoTime began;
    MonoTime deadline;  // of a drain
    Retirement retirement = {};
    int starts = 0;       // of the agent, by this Configure
    bool warned = false;  // that it does not join
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
  std::optional<Result<contract::OperationDone>> AdvanceConfigure(Running& running, Now now);
  std::optional<Result<contract::OperationDone>> AdvanceDrain(Running& running, Now now);
  std::optional<Result<contract::OperationDone>> AdvanceDelete(Running& running, Now now);
  void KeepAgents(Now now);
  // Whether no agent lives, and none was started in the last second.
  bool IsStartDue(const std::string& machine, MonoTime now) const;
  // Starts the agent of a machine if that is due: with this bootstrap data, or with
  // the options of what it has joined with. Whether it was started.
  Result<bool> KeepAgent(const std::string& machine, Now now, const std::string* blob = nullptr);
  // Whether the machine certainly has no workloads.
  bool IsEmpty(const std::string& machine) const;
  // The next step to the end of the agent and of everything it ran: nothing while that goes on, OK when all have ended,
  // an error when the program that ends them has failed. Called again it tries again, not more often than every second.
  std::optional<Status> EndAgent(const std::string& machine, Retirement& retirement, MonoTime now);
  // The last line that the agent of the machine, or the program that retires it, has printed.
  std::string LastWords(const std::string& machine) const;
  void ReapAgents();

  const Catalogue catalogue_;
  const LocalBackendOptions options_;
  std::map<std::string, Running> running_;   // by machine
  std::set<std::string> configured_;         // machines whose agent is to live
  std::map<std::string, MonoTime> started_;  // when its agent was started last
  std::vector<pid_t> agents_;                // started by this process, and not yet waited for
  std::optional<MonoTime> next_poll_;
};

}  // namespace muster::provider
