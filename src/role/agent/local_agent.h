// LocalAgent: an agent in this process: the core on its threads, its state in a directory, runtimes behind it. To its
// callers it is a contract::AgentPort and a contract::LogsPort; the role puts gRPC in front of it, tests ask directly.
//
// Workloads run on when it stops, and are adopted by the one that starts next in the same directory. While state cannot
// be stored (a full disk), questions are answered, and changes are refused with RESOURCE_EXHAUSTED and the reason: the
// node has no room, but it is there, and what runs on it runs on.
//
// Secrets of workloads are kept in files of their own, and are in nothing else this writes: the core has handles
// (host/secret_vault.h). A file is erased when no row names its handle any more.
//
// Thread-safety: Ask, Read, Join, View, actions, health and status from any thread once Start came back; Start and Stop
// from one.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "contract/agent.h"
#include "contract/logs.h"
#include "core/agent/agent.h"
#include "host/core_runner.h"
#include "host/secret_vault.h"
#include "role/agent/action_log.h"
#include "role/agent/node_usage.h"
#include "runtime/runtime.h"

namespace muster::agent {

// Opens a runtime, or says why the node does not have it. The runtime calls the function with each run that ends.
using MakeRuntime = std::function<Result<std::unique_ptr<runtime::Runtime>>(runtime::Runtime::Ended)>;

struct LocalOptions {
  std::filesystem::path data_dir;               // owned by the caller
  std::filesystem::path journal;                // empty: none
  Config config;                                // its runtimes are those that could be opened
  std::map<std::string, MakeRuntime> runtimes;  // by the name of their type
  Duration usage_interval = 10s;
  size_t log_readers = 64;  // at the same time
};

// Called on the loop thread.
struct LocalHooks {
  std::function<void()> states_changed = [] {};  // a workload has another state
  std::function<void()> runtime_came = [] {};    // one that did not answer at first has: the node offers more
};

class LocalAgent final : public contract::AgentPort, public contract::LogsPort, private host::ThreadHost<Core>::Shell {
 public:
  static constexpr std::string_view kStateFile = "state.db";        // in the data directory
  static constexpr std::string_view kSecretsDirectory = "secrets";  // the same

  // The clock outlives the agent.
  LocalAgent(LocalOptions options, const Clock& clock, LocalHooks hooks = {});
  ~LocalAgent() override;  // stops

  // Reads the state, opens the runtimes, and comes back when each has said what it has or that it cannot, or when a
  // stop is asked for. The error says what is wrong with the directory or the state.
  Status Start(const std::stop_token& stop);
  // Idempotent; requests without an answer are refused, readers of logs end.
  void Stop();

  void Ask(contract::AgentRequest request, Done done) override;
  void Read(contract::ReadLogs request, std::shared_ptr<contract::LogsSink> sink) override;
  // The scheduler has accepted the node.
  void Join(contract::FullState state);

  std::shared_ptr<const Snapshot> View() const { return runner_.View(); }
  std::vector<rpc::AgentAction> actions() const { return actions_.List(); }
  // By the name of each runtime that was asked for: "ok", or why it is absent.
  std::map<std::string, std::string> RuntimeStatus() const;
  NodeUsage usage() const;
  // OK, or why state cannot be stored.
  Status status() const { return runner_.state_status(); }

 private:
  // On the loop thread.
  void StartCall(const Core::Call& call) override;
  void Emit(const Core::Effect& effect) override;
  bool IsRead(const Core::Effect& effect) const override;

  void OpenRuntimes();
  bool WaitForRuntimes(const std::stop_token& stop);
  void MeasureUntilStopped();
  runtime::Runtime* RuntimeOf(const std::string& workload) const;
  void ReapReaders(bool all);
  // Puts handles in the place of secrets. What it kept is in use until Stepped.
  Result<std::vector<std::string>> KeepSecrets(contract::ApplyOnAgent& apply);
  void Stepped(const std::vector<std::string>& handles);
  // Puts the secrets among the variables, and leaves their names where they were.
  Status UseSecrets(contract::StartRun& start) const;
  void EraseUnusedSecrets();

  const LocalOptions options_;
  const Clock& clock_;
  const LocalHooks hooks_;
  ActionLog actions_;
  host::CoreRunner<Core, Answer> runner_;
  std::map<std::string, std::unique_ptr<runtime::Runtime>> runtimes_;  // by name; filled by Start
  std::map<std::string, std::string> absent_;                          // by name: why; filled by Start

  host::SecretVault secrets_;
  struct KeptSecret {
    bool stepped = true;                   // the core has seen it
    std::optional<MonoTime> unused_since;  // no row names it
  };

  struct Reader {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> ended;
  };
  mutable std::mutex mu_;
  std::condition_variable wakes_;
  bool stopping_ = false;                   // guarded by mu_
  NodeUsage usage_;                         // guarded by mu_
  std::vector<Reader> readers_;             // guarded by mu_
  std::map<std::string, KeptSecret> kept_;  // guarded by mu_: by handle
  NodeMeter meter_;                         // of the thread that measures
  std::thread measures_;
};

}  // namespace muster::agent
