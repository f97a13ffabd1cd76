// The operator of a native cluster, as a core. It follows the cluster's scheduler (nodes, workloads) and the session
// with the shard, and holds no state of its own that matters: after a restart it lists the cluster, opens a session,
// and says the whole demand again. A reclaim under way is in the node's record (DrainNode with its instruction).
//
//   demand     every change of a workload, gathered for `settle`, makes a roll-up; every rollup_interval one goes
//   anyway blobs      BootstrapRequest -> GiveBlob reclaim    ReclaimInstruction -> DrainNode for each node ->
//   ReclaimAck once all are cordoned; eviction goes on machines   NodeStateUpdate: a machine that leaves Configured and
//   Draining takes its node along; one that is named as Configured
//              is uncordoned if the fleet had drained it, one that drains unasked is drained here too
//   coming     machines on their way are said to the scheduler (ReportMachines), so that what waits for them evicts
//   nobody
//
// node id = machine id.
//
// What happened to machines while there was no session shows when the shard has named all it has: a node that was a
// machine, does not beat and was not named for a while is deleted.
//
// Invariants: (1) no roll-up before the cluster was listed: an operator that knows nothing must not say "nothing";
// (2) an instruction is acknowledged only when each of its nodes is cordoned or unknown to the scheduler; (3) a node is
// deleted only after its machine was reported in a state that serves nobody, or was not reported any more and does not
// beat, and not once the machine serves or comes again. Thread-safety: none, as for every core.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "core/operators/demand.h"
#include "core/operators/types.h"

namespace muster::operators {

class Core {
 public:
  static constexpr std::string_view kName = "operator";
  using Call = operators::Call;
  using CallDone = operators::CallDone;
  using Event = operators::Event;
  using Effect = operators::Effect;
  using Snapshot = operators::Snapshot;

  explicit Core(Config config);
  static std::optional<Core> Load(std::string_view saved);
  std::string Save() const;

  void Step(const Event& event, Now now, std::vector<Effect>& out);
  std::optional<MonoTime> NextWake() const;
  std::shared_ptr<const Snapshot> View() const;
  void CheckInvariants() const;

 private:
  enum class Job : uint8_t { kDrain, kUncordon, kDelete };
  // What is to be done to a node; a later job takes the place of an earlier one.
  struct NodeJob {
    Job job = Job::kDrain;
    std::string instruction;  // of kDrain
    Duration grace{};
    WallTime deadline;
    std::optional<contract::CallId> call;   // under way
    std::optional<contract::CallId> after;  // of the job that it took the place of: what is said later is done later
    std::optional<MonoTime> not_before;     // after a failure
    bool drained = false;                   // kDrain: the node is cordoned; the job stays for its instruction
    uint64_t order = 0;                     // its number; of a drained node 0: its record was not there, or went

    MUSTER_FIELDS(NodeJob, job, instruction, grace, deadline, call, after, not_before, drained, order)
  };
  struct Reclaim {
    std::vector<std::string> nodes;
    bool acknowledged = false;

    MUSTER_FIELDS(Reclaim, nodes, acknowledged)
  };
  struct Node {
    bool drained = false;  // a drain with an instruction holds it
    bool cordoned = false;
    bool ready = false;
    bool of_fleet = false;  // it was a machine: by its labels, by an instruction, or because the shard said so
    std::optional<MonoTime> deleted;  // when its deletion was answered, though it is still told of
    BoundNode capacity;

    MUSTER_FIELDS(Node, drained, cordoned, ready, of_fleet, deleted, capacity)
  };
  struct State {
    uint64_t layout = 1;  // raised with each other form of the state, an event or an effect
    Config config;
    bool session = false;
    bool listed = false;  // the cluster is known
    Demand demand;
    std::map<std::string, Node> nodes;                      // of the scheduler
    std::map<std::string, model::MachineState> machines;    // as the shard said last
    std::map<std::string, contract::ComingMachine> coming;  // of them those on their way, until they have joined
    std::set<std::string> announced;                        // machines that the shard spoke of in this session
    std::optional<MonoTime> all_announced;                  // since when it has spoken of all that it knows
    std::map<std::string, NodeJob> jobs;                    // by node
    std::map<std::string, Reclaim> reclaims;                // by instruction
    std::optional<MonoTime> rollup_at;
    std::optional<MonoTime> review_at;
    std::optional<MonoTime> report_at;            // when the scheduler is told what comes
    std::optional<contract::CallId> report_call;  // under way
    bool reported = false;                        // the scheduler may hold that something comes
    contract::CallId last_call = 0;
    uint64_t last_order = 0;  // above every order that was given, here or in an earlier life
    int64_t rollups = 0;
    std::string last_echo;

    MUSTER_FIELDS(State, layout, config, session, listed, demand, nodes, machines, announced, all_announced, jobs,
                  reclaims, rollup_at, review_at, last_call, rollups, last_echo, coming, report_at, report_call,
                  reported, last_order)
  };

  explicit Core(State state) : state_(std::move(state)) {}

  void OnListed(const ClusterListed& listed, Now now, std::vector<Effect>& out);
  void OnChanged(const contract::ObjectChanged& change, Now now, std::vector<Effect>& out);
  void OnWorkload(const std::string& id, const contract::WorkloadView& view, Now now, std::vector<Effect>& out);
  void OnNode(const contract::NodeView& node, Now now);
  // Tells the demand what the node is to it.
  void CountNode(const std::string& id);
  bool IsBound(const std::string& id, const Node& node) const;
  void OnReclaim(const contract::ReclaimInstruction& instruction, Now now);
  void OnMachine(const contract::NodeStateUpdate& update, Now now, std::vector<Effect>& out);
  void OnReceived(const contract::ShardMessage& message, Now now, std::vector<Effect>& out);
  void OnCallDone(const CallDone& done, Now now, std::vector<Effect>& out);

  void Gather(Now now);  // a roll-up is due soon
  void SetJob(const std::string& node, NodeJob job);
  // The machine is kept: what was said of giving it up is void, and is not acknowledged.
  void KeepMachine(const std::string& id);
  void DrainUnasked(const std::string& node, Now now);
  // The node's record may be another one from here on, which knows nothing of a drain that was done.
  void ForgetOrder(const std::string& node);
  bool IsVoid(const std::string& node, const NodeJob& job) const;
  // Above the orders of earlier lives too, whether or not they have arrived: the clock says so, unless it was set back.
  uint64_t NextOrder(Now now);
  void StartJobs(Now now, std::vector<Effect>& out);
  void Acknowledge(std::vector<Effect>& out);
  void ReviewDemand(Now now, std::vector<Effect>& out);
  void SendRollup(Now now, std::vector<Effect>& out);
  // The machine is on its way, as this update says; or it is not any more, without one.
  void SetComing(const std::string& id, const contract::NodeStateUpdate* update, Now now);
  void ReportMachines(Now now, std::vector<Effect>& out);
  bool MachinesOnTheirWay() const;
  // When a node whose machine the shard does not name is to be deleted; nothing for any other node.
  std::optional<MonoTime> LeftOverAt(const std::string& id, const Node& node) const;
  void ForgetNodes(Now now);

  State state_;
};

}  // namespace muster::operators
