// LoopCluster: a native cluster of a loop: a store, the schedulers that stand for election on it (one alone always
// leads), and the operator, with their calls over the network and their streams: nodes that join, the operator's watch
// and its session with the shard.
//
// A process lives, crashes and lives again. A scheduler may also pause: nothing reaches it and nothing leaves it until
// it wakes, perhaps as one that does not lead any more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "contract/agent.h"
#include "contract/cluster.h"
#include "core/operators/operators.h"
#include "core/scheduler/scheduler.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/kernel_schedule.h"
#include "sim/loop_fleet.h"
#include "sim/network.h"
#include "sim/sim_host.h"
#include "sim/stream.h"
#include "store/candidate.h"
#include "store/memory_store.h"
#include "store/mirror.h"

namespace muster::sim {

class LoopCluster {
 public:
  using Done = std::function<void(Result<contract::ClusterReply>)>;
  using AgentDone = std::function<void(Result<contract::AgentReply>)>;
  static constexpr std::string_view kLeaderKey = "/leader";

  struct Options {
    std::string id;
    size_t schedulers = 1;
    scheduler::Config scheduler{};
    operators::Config operators{};
    std::vector<contract::StoreWrite> rows{};
    std::vector<model::Need> asked{};  // by an operator before
    uint64_t seed = 1;
    uint32_t processes = 100;  // the first number of its processes on the network
    bool has_operator = true;
  };
  struct World {
    // A call has arrived at a node; `done` may never be called.
    std::function<void(const std::string& node, const std::string& endpoint, const contract::AgentRequest&, AgentDone)>
        call_agent;
    std::function<ProcessId(const std::string& node)> process_of;
    // Who wants to know. Each may be empty.
    std::function<void()> store_seen = {};  // the store is looked at by somebody: judges look first
    std::function<void(size_t scheduler, const contract::Commit&, const contract::CommitDone&)> committed = {};
    std::function<void(const contract::ClusterChange&)> published = {};
    std::function<void(const operators::Effect&)> operator_did = {};
    // A scheduler calls a node, and hears the answer; without one the call has just begun.
    std::function<void(size_t scheduler, const std::string& node, contract::CallId, const Status* answer)>
        agent_called = {};
    std::function<bool()> broken = {};
  };

  // What is referred to outlives this.
  LoopCluster(Kernel& kernel, Network& network, Rng& rng, const StreamDelays& delays, LoopFleet& fleet, Options options,
              World world);
  ~LoopCluster();

  const std::string& id() const { return options_.id; }
  store::MemoryStore& store() { return store_; }
  void Start();

  // --- schedulers
  size_t schedulers() const { return processes_.size(); }
  void StartScheduler(size_t i);
  void CrashScheduler(size_t i);
  void PauseScheduler(size_t i);
  void ResumeScheduler(size_t i);
  bool alive(size_t i) const { return processes_[i]->host.alive(); }
  const scheduler::Core& scheduler(size_t i) const { return processes_[i]->host.core(); }
  ProcessId SchedulerProcess(size_t i) const { return ProcessId(options_.processes + static_cast<uint32_t>(i)); }

  // A request over the network, to the leader as far as is known; one that does not lead is not asked twice. `done` may
  // never be called.
  void Ask(ProcessId from, const contract::ClusterRequest& request, Done done);
  // A node opens a stream to a scheduler; nothing if that is dead. Then it asks over the stream; what the scheduler
  // refuses ends the stream.
  std::shared_ptr<Stream> Dial(size_t turn);
  void AskOver(const std::shared_ptr<Stream>& stream, const contract::ClusterRequest& request, Done done);
  // Breaks one of the streams, if there are any: of nodes, the watch, the session.
  void BreakAStream(Rng& rng);

  // --- the operator
  void StartOperator();
  void CrashOperator();
  bool operator_alive() const { return operator_.alive(); }
  const operators::Core& operator_core() const { return operator_.core(); }
  bool has_session() const { return session_open_; }

 private:
  using Host = SimHost<scheduler::Core>;
  // Of a node: the scheduler at the other end, and in which of its lives.
  struct NodeStream : Stream {
    NodeStream(const Stream& stream, size_t to, uint64_t its_life) : Stream(stream), scheduler(to), life(its_life) {}
    const size_t scheduler;
    const uint64_t life;
  };
  struct Process {
    Process(LoopCluster& cluster, size_t index);
    Disk disk;
    Host host;
    std::unique_ptr<store::Mirror> mirror;
    std::unique_ptr<store::Candidate> candidate;
    std::map<contract::RequestId, Done> waiting;
    bool paused = false;
    std::vector<std::function<void()>> held_back;  // what reaches it when the pause ends
    std::vector<std::weak_ptr<Stream>> streams;    // that end here
    // As role/scheduler's hub: changes after `floor` are kept.
    std::optional<contract::Revision> floor;
    std::deque<contract::ObjectChanged> kept;
    std::vector<std::shared_ptr<Stream>> watchers;
  };

  scheduler::Config ConfigOf(size_t i) const;
  // Runs where the process is: at once, when its pause ends, or never if that life is over.
  void Into(size_t i, uint64_t life, std::function<void()> action);
  void OnMirror(size_t i, const store::MirrorEvent& event);
  void Listed(size_t i, contract::Revision revision, std::vector<contract::KeyValue> rows);
  void OnCandidate(size_t i, const store::CandidateEvent& event);
  void StartCall(size_t i, uint64_t life, const scheduler::Call& call);
  void Emit(size_t i, uint64_t life, const scheduler::Effect& effect);
  void Publish(size_t i, const contract::ClusterChange& change);
  // Gives the request to that scheduler, which lives.
  void Serve(size_t i, const contract::ClusterRequest& request, Done done);
  void AskOne(ProcessId from, size_t i, const contract::ClusterRequest& request, Done done);
  void Watch(size_t i, contract::Revision from, const std::shared_ptr<Stream>& stream);
  void DropStreams(Process& process);

  // --- the operator's links
  void OperatorEmits(const operators::Effect& effect);
  void OpenSession();
  void SessionEnded(uint64_t life);
  void ListAndWatch();
  void ListNodes(size_t i, uint64_t number, const std::string& token,
                 const std::shared_ptr<operators::ClusterListed>& listed, contract::Revision from);
  void ListWorkloads(size_t i, uint64_t number, const std::string& token,
                     const std::shared_ptr<operators::ClusterListed>& listed, contract::Revision from);
  void BeginWatch(size_t i, uint64_t number, contract::Revision from);
  void WatchEnded(uint64_t number);
  ProcessId OperatorProcess() const { return ProcessId(options_.processes + 9); }

  Kernel& kernel_;
  Network& network_;
  Rng& rng_;
  const StreamDelays& delays_;
  LoopFleet& fleet_;
  const Options options_;
  std::vector<model::Need> asked_;  // of options_, until the operator was told
  const World world_;
  KernelSchedule schedule_;
  store::MemoryStore store_;
  std::vector<std::unique_ptr<Process>> processes_;
  size_t leader_ = 0;  // whom everybody asks first
  contract::RequestId last_request_ = 0;

  Disk operator_disk_;
  SimHost<operators::Core> operator_;
  std::shared_ptr<LoopFleet::Session> session_;
  bool session_open_ = false;
  Duration session_pause_{};
  std::shared_ptr<Stream> watch_;
  uint64_t watch_number_ = 0;  // of the attempt: what belongs to an earlier one is dropped
  Duration watch_pause_{};
};

}  // namespace muster::sim
