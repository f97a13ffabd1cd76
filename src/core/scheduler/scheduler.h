// Scheduler: keeps every workload of a cluster as it is wanted: on a node, running, stopped or gone. docs/scheduler.md
// tells it in prose.
//
// Core joins the parts (parts.h) and holds no state of its own. An event is handed to the part that it is about, which
// takes note; a wake then decides everything that is to be decided, together: requests that arrived in a burst are
// placed in one batch and committed in few transactions. What was decided is durable before an agent or a client is
// told of it.
//
// Invariants, each kept by the part in brackets:
//   1. Every write compares the revision of its key, and the key of the election. [drafts]
//   2. The requests of the workloads on a node are within its total, drafts included. [rooms]
//   3. Agents are asked to change something from durable records alone, one call at a time for a workload on a node,
//   and
//      a few at a time for a node. [reconciler, agent_calls]
//   4. A workload moves only if its node is unavailable, refused it, is drained, or its room is needed by a higher
//      priority; ages count from the start, the lead, and the return of the store. [node_health, evictions, placements]
//   5. What the store does not hold is not deleted in masses. [orphans]
//   6. Reads show what is durable. [views, queries]
//   7. While the store does not answer, or another scheduler leads, nothing is called, moved or written. [standing]
// Thread-safety: none, as for every core.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/scheduler/snapshot.h"
#include "core/scheduler/types.h"

namespace muster::scheduler {

struct ObjectId;
struct Parts;
struct Resolved;
struct StepContext;
class StoreCopy;

class Core {
 public:
  static constexpr std::string_view kName = "scheduler";
  using Call = scheduler::Call;
  using CallDone = scheduler::CallDone;
  using Event = scheduler::Event;
  using Effect = scheduler::Effect;
  using Snapshot = scheduler::Snapshot;

  explicit Core(Config config);
  static std::optional<Core> Load(std::string_view saved);
  std::string Save() const;
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;
  ~Core();

  void Step(const Event& event, Now now, std::vector<Effect>& out);
  std::optional<MonoTime> NextWake() const;
  std::shared_ptr<const Snapshot> View() const;
  void CheckInvariants() const;

  // For tests and the simulator.
  const StoreCopy& copy() const;
  const Parts& parts() const { return *parts_; }

 private:
  explicit Core(std::unique_ptr<Parts> parts);

  // The step.
  void Handle(const Event& event, StepContext& ctx);
  void Advance(StepContext& ctx);
  void EndWaits(MonoTime now);
  void RunPass(StepContext& ctx);
  void SyncDrafts();
  // Events that more than one part must hear of.
  void OnAsked(const Asked& asked, StepContext& ctx);
  void OnReport(const contract::ReportMachines& report, const Asked& asked, StepContext& ctx);
  void OnCallDone(const CallDone& done, StepContext& ctx);
  void OnCommitDone(const contract::CommitDone& done, StepContext& ctx);
  void OnResolved(std::vector<Resolved> objects, StepContext& ctx);
  void OnListed(const StoreListed& listed, StepContext& ctx);
  void OnAnotherStore(const StoreListed& listed, StepContext& ctx);
  void OnStoreLost(const StoreLost& lost, StepContext& ctx);
  void OnLeadership(const LeadershipChanged& changed, StepContext& ctx);
  // What follows when the store shows something, a node is lost, an object is free again.
  void TakeChanges(StepContext& ctx);
  void OnNodeLost(const std::string& node);
  void OnFree(const ObjectId& object);
  std::optional<ObjectId> SetOf(const ObjectId& object) const;
  void Resume(Now now);
  void Suspend(StepContext& ctx);

  std::unique_ptr<Parts> parts_;
};

}  // namespace muster::scheduler
