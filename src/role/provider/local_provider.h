// LocalProvider: a provider in this process: the core on its threads, its state in a directory, a backend behind it. To
// its callers it is a contract::ProviderPort; the role puts a gRPC server in front of it, tests and benchmarks ask
// directly.
//
// While state cannot be stored (a full disk), transitions are refused with UNAVAILABLE and the reason; what was
// accepted before, or refused by a step that has stored a mark, waits, and goes on when there is room again. Get and
// List are answered. Such a list has no revision: changes after one that is lost by a restart would have its number
// again.
//
// Bootstrap data is kept in files of its own until its Configure has ended, and is in nothing else this writes: the
// core has handles (host/secret_vault.h).
//
// Thread-safety: Ask may be called from any thread once Start came back; Start and Stop from one.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "contract/provider.h"
#include "core/provider/provider.h"
#include "host/core_runner.h"
#include "host/secret_vault.h"
#include "provider/backend.h"

namespace muster::provider {

struct LocalOptions {
  std::filesystem::path data_dir;  // owned by the caller
  std::filesystem::path journal;   // empty: none
  Config config;
};

class LocalProvider final : public contract::ProviderPort, private host::ThreadHost<Core>::Shell {
 public:
  static constexpr std::string_view kStateFile = "state.db";        // in the data directory
  static constexpr std::string_view kSecretsDirectory = "secrets";  // the same

  // The clock outlives the provider.
  LocalProvider(LocalOptions options, std::unique_ptr<Backend> backend, const Clock& clock);
  ~LocalProvider() override;  // stops

  // Reads the state, asks the backend again for what was under way, and serves. The error says what is wrong with the
  // directory, the state or the machines.
  Status Start();
  // Idempotent; requests without an answer are refused.
  void Stop();

  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override;

  std::shared_ptr<const Snapshot> View() const { return runner_.View(); }
  // OK, or why state cannot be stored.
  Status status() const { return runner_.state_status(); }

 private:
  // On the loop thread.
  void StartCall(const Core::Call& call) override;
  void Emit(const Core::Effect& effect) override;
  bool IsRead(const Core::Effect& effect) const override;
  void Stepped(std::span<const Core::Effect> effects, Duration took) override;

  void AskConfigure(contract::ConfigureRequest request, Done done);

  // The backend's thread.
  void RunBackend();
  void StartOperation(contract::CallId call, contract::Operation operation, Now now);
  void EraseUsed(Now now);
  void Tell(const Report& report);

  const Config config_;
  const Clock& clock_;
  std::set<contract::RequestId> marked_;  // of the loop's thread: requests whose step has stored something
  std::unique_ptr<Backend> backend_;      // of its thread once started
  host::CoreRunner<Core, Answer> runner_;

  host::SecretVault secrets_;
  std::map<contract::CallId, std::string> configuring_;  // of the backend's thread: the machine of each Configure
  std::vector<std::pair<MonoTime, std::string>> used_;   // of the backend's thread: handles, and since when

  std::mutex mu_;
  std::map<std::string, std::vector<std::string>> offered_;  // guarded by mu_: handles for a machine's Configure
  std::condition_variable backend_wakes_;
  std::vector<std::pair<contract::CallId, contract::Operation>> to_start_;  // guarded by mu_
  bool stopping_ = false;                                                   // guarded by mu_
  std::thread backend_thread_;
};

}  // namespace muster::provider
