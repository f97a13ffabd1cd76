// LocalScheduler: a scheduler in this process: the core on its threads, all durable state in a store, agents behind an
// rpc::AgentClient. To clients and nodes it is a contract::ClusterPort; watches(), streams() and itself are the other
// ports of the gRPC services (rpc/cluster_services.h). The role puts those in front, tests call directly.
//
// An agent is called at its address. If that fails, and the node has a ControlStream, the call goes over the stream; a
// node with a stream is given half of the call's time to be dialled.
//
// Secrets of workloads are sealed before the core sees them, and opened for the agents (role/scheduler/secret_texts.h).
//
// Thread-safety: the ports may be called from any thread once Start came back; Start and Stop from one.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "contract/cluster.h"
#include "contract/logs.h"
#include "core/scheduler/scheduler.h"
#include "host/core_runner.h"
#include "role/scheduler/store_feed.h"
#include "role/scheduler/stream_table.h"
#include "role/scheduler/watch_hub.h"
#include "rpc/agent_client.h"
#include "rpc/secret_seal.h"
#include "store/store.h"

namespace muster::scheduler {

struct LocalOptions {
  Config config;
  std::filesystem::path journal;  // empty: none
  host::JournalOptions journal_options = {};
  bool election = false;  // others may use the same store
  Duration store_lost_after = 5s;
  Duration store_compact_every = 5min;          // with an election; zero: never
  std::shared_ptr<const rpc::SecretSeal> seal;  // of secrets of workloads; absent: they are refused
};

// What the shell of a scheduler wants to know. Called on the loop's thread and on those of calls; returns at once.
struct LocalEvents {
  std::function<void(const Reconciled&)> reconciled = [](const Reconciled&) {};
  std::function<void(bool success, Duration)> cycle_ended = [](bool, Duration) {};
  std::function<void(const contract::AgentRequest&, Code, Duration)> agent_called = [](const contract::AgentRequest&,
                                                                                       Code, Duration) {};
};

class LocalScheduler final : public contract::ClusterPort,
                             public contract::LogsPort,
                             public rpc::TenantPort,
                             private host::ThreadHost<Core>::Shell {
 public:
  // The clock outlives the scheduler.
  LocalScheduler(LocalOptions options, std::unique_ptr<store::Store> store, std::unique_ptr<rpc::AgentClient> agents,
                 const Clock& clock, LocalEvents events = {});
  ~LocalScheduler() override;  // stops; nothing calls the ports any more

  // Runs the core: requests are taken, and refused with UNAVAILABLE before the store was read. The error says what is
  // wrong with the journal.
  Status Start();
  // Begins to read the store, and to lead. `address` is that of this scheduler, for clients of others. Once, after
  // Start.
  void UseStore(std::string address);
  // Idempotent: gives up leadership, ends watches, refuses requests without an answer, and lets go of the store.
  void Stop();

  void Ask(contract::ClusterRequest request, Done done) override;
  void AskFor(const std::string& tenant, contract::ClusterRequest request, Done done) override;
  // Logs of a workload, from the agent of its node.
  void Read(contract::ReadLogs request, std::shared_ptr<contract::LogsSink> sink) override;
  rpc::WatchPort& watches() { return hub_; }
  rpc::NodeStreams& streams() { return streams_; }
  // Until Stop.
  store::Store& store() { return *store_; }

  std::shared_ptr<const Snapshot> View() const { return runner_.View(); }
  size_t watchers() const { return hub_.watchers(); }
  // OK, or why the store cannot be used.
  Status store_status() const;

 private:
  // On the loop thread.
  void StartCall(const Core::Call& call) override;
  void Emit(const Core::Effect& effect) override;
  void Stepped(std::span<const Core::Effect> effects, Duration took) override;

  void Finish(contract::CallId id, Result<contract::AgentReply> reply);
  void Tell(Event event);

  const LocalOptions options_;
  const Clock& clock_;
  const LocalEvents events_;
  WatchHub hub_;
  StreamTable streams_;
  host::CoreRunner<Core, scheduler::Answer> runner_;
  std::unique_ptr<store::Store> store_;  // after the runner: its answers are posted there until it is gone
  std::unique_ptr<StoreFeed> feed_;
  const std::unique_ptr<rpc::AgentClient> agents_;  // last: its end waits for answers, which use the rest
};

}  // namespace muster::scheduler
