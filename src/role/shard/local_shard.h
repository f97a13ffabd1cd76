// LocalShard: a shard in this process: the core on its threads, its own state in a directory, its partners behind
// ports. To clusters' streams it is a contract::SessionPort, to operators a contract::ShardPort; the role puts gRPC
// services in front of both, tests and benchmarks call directly.
//
// Thread-safety: the ports may be called from any thread once Start came back; Start and Stop from one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "contract/provider.h"
#include "contract/session.h"
#include "contract/shard.h"
#include "core/shard/shard.h"
#include "host/core_runner.h"
#include "host/pool.h"
#include "host/secret_vault.h"
#include "role/shard/audit_log.h"
#include "rpc/coordinator_client.h"

namespace muster::shard {

struct LocalOptions {
  std::filesystem::path data_dir;  // owned by the caller
  std::filesystem::path journal;   // empty: none
  host::JournalOptions journal_options = {};
  AuditOptions audit;  // no path: none
  size_t workers = 1;  // threads that decide
  Config config;
  contract::Ceilings ceilings = {};  // of clusters, from the first step on
};

// What the shell of a shard wants to know. Called on the loop's thread; returns at once.
struct LocalEvents {
  std::function<void(Duration)> cycle_ended = [](Duration) {};  // how long the step took that decided
  std::function<void(std::string_view, Duration)> phase_ended = [](std::string_view, Duration) {};  // of a cycle
  std::function<void(const Lasted&)> lasted = [](const Lasted&) {};
  std::function<void(const Status&)> stopped = [](const Status&) {};  // it does nothing more, and why
};

class LocalShard final : public contract::ShardPort,
                         public contract::SessionPort,
                         private host::ThreadHost<Core>::Shell {
 public:
  static constexpr std::string_view kStateFile = "shard.db";  // in the data directory

  // Everything referred to outlives the shard; no coordinator: it works alone.
  LocalShard(LocalOptions options, contract::ProviderPort& provider, rpc::CoordinatorClient* coordinator,
             const Clock& clock, LocalEvents events = {});
  ~LocalShard() override;  // stops

  // Reads the state and begins. The error says what is wrong with the state, the journal or the audit log.
  Status Start();
  // Idempotent; sessions are closed, and requests without an answer are refused.
  void Stop();

  void Ask(contract::ShardRequest request, Answer done) override;
  // In place of all ceilings before.
  void SetCeilings(contract::Ceilings ceilings) { runner_.Post(CeilingsSet{std::move(ceilings)}); }

  contract::SessionId Open(contract::Hello hello, std::shared_ptr<contract::SessionSink> sink) override;
  void Receive(contract::SessionId session, contract::OperatorMessage message,
               std::shared_ptr<void> until_taken = nullptr) override;
  void RefuseRollup(contract::SessionId session, Status why, std::shared_ptr<void> until_taken = nullptr) override;
  void Closed(contract::SessionId session) override;

  std::shared_ptr<const Snapshot> View() const { return runner_.View(); }
  // OK, or why state cannot be stored.
  Status state_status() const { return runner_.state_status(); }
  // Bootstrap data that is kept: pieces.
  size_t blobs() const { return blobs_.size(); }
  // OK, or why the audit log cannot be written.
  Status audit_status() const { return audit_ == nullptr ? Status() : audit_->status(); }

 private:
  static constexpr size_t kMostBlobBytes = 8 << 20;  // of a cluster
  static constexpr size_t kMostBlobsOfAll = 64 << 20;
  static constexpr size_t kMostAsked = 10'000;  // of a session; older requests are not answered any more

  // A stream, as long as it lasts.
  struct Session {
    std::string cluster;
    std::set<std::string> asked = {};  // requests for bootstrap data that are not answered
    std::set<std::string> blobs = {};  // handles of what no Configure has taken
  };

  // On the loop thread.
  void StartCall(const Core::Call& call) override;
  void Emit(const Core::Effect& effect) override;
  bool IsRead(const Core::Effect& effect) const override;
  void Stepped(std::span<const Core::Effect> effects, Duration took) override;
  std::shared_ptr<contract::SessionSink> SinkOf(contract::SessionId session);
  void Asks(contract::SessionId session, const contract::ShardMessage& message);
  bool KeepBlob(contract::SessionId session, contract::BootstrapResponse& response);
  void EndSession(contract::SessionId session);
  void Taken(const std::string& handle);
  void Configure(contract::CallId id, contract::ConfigureRequest request, Duration timeout);

  const LocalOptions options_;
  contract::ProviderPort& provider_;
  rpc::CoordinatorClient* const coordinator_;
  const LocalEvents events_;
  std::unique_ptr<host::Pool> pool_;
  std::unique_ptr<AuditLog> audit_;

  std::mutex mu_;
  bool stopping_ = false;                                                                  // guarded by mu_
  std::unordered_map<contract::SessionId, std::shared_ptr<contract::SessionSink>> sinks_;  // guarded by mu_
  std::unordered_map<contract::SessionId, Session> sessions_;                              // guarded by mu_
  contract::SessionId last_session_ = 0;                                                   // guarded by mu_
  // Bootstrap data on its way from a cluster to the provider: the core sees handles. It is kept if it was asked for,
  // and until its Configure was called or its session has ended.
  host::SecretVault blobs_{{.most_bytes = kMostBlobBytes, .most_of_all = kMostBlobsOfAll}};

  host::CoreRunner<Core, shard::Answer> runner_;  // last: its threads use the rest
};

}  // namespace muster::shard
