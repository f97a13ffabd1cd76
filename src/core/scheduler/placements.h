// Placements: the workloads that want a node, placed together once a step; those that wait for one; and those that wait
// for others to leave.
//
// A wait ends when its back-off does, and at once when a node or room came. A workload that has waited long enough may
// evict others, unless a machine comes that could take it: it is nominated for the room, its victims are evicted, and
// it gets the node when the last of them has left. A nomination that can no longer be carried out is withdrawn. Members
// of a gang evict others together, or not at all.
//
// Invariants: (1) a nominated workload has no node, or one that is not available; (2) nominations are those that hold
// room.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "core/scheduler/coming_machines.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/node_health.h"
#include "core/scheduler/rooms.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/transitions.h"

namespace muster::scheduler {

class Placements {
 public:
  struct Nomination {
    std::string node;
    std::set<std::string> victims;
    std::string revision;  // of the workload that the room is for

    MUSTER_FIELDS(Nomination, node, victims, revision)
  };
  struct State {
    std::set<std::string> wanted;             // to be placed in this step
    std::map<std::string, MonoTime> waiting;  // since when
    std::map<std::string, Nomination> nominations;

    MUSTER_FIELDS(State, wanted, waiting, nominations)
  };

  Placements(const Config& config, const StoreCopy& copy, Drafts& drafts, const NodeHealth& health, Rooms& rooms,
             Transitions& transitions, const ComingMachines& coming, State state);

  void Want(const std::string& workload) { state_.wanted.insert(workload); }
  // It is in a back-off that another life of the scheduler began: it waits from here on, if it is for a node.
  void Await(const std::string& workload, MonoTime now);
  // The workload is gone, or wants no node any more.
  void Forget(const std::string& workload);
  void Run(StepContext& ctx);
  bool IsNominated(const std::string& workload) const { return state_.nominations.contains(workload); }
  // When a waiting workload may evict others, as far as is known now. Nothing if that time has passed, or it does not
  // wait.
  std::optional<MonoTime> PreemptAt(const std::string& workload, Now now) const;

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  using Messages = std::map<std::string, std::string>;  // of refusals, by the kind that is refused
  bool NeedsNode(const WorkloadRecord& record) const;
  // Whether it has waited long enough to evict others.
  bool MayEvict(const std::string& workload, const StepContext& ctx) const;
  // What no node takes as it is.
  std::vector<placement::Outcome> PlaceEvicting(std::vector<placement::Outcome> refused, StepContext& ctx);
  // The members of the set that wait; if not all of them get a node, those of `refused` that are members.
  std::vector<placement::Outcome> PlaceGang(const std::string& gang, const std::vector<placement::Outcome>& refused,
                                            StepContext& ctx);
  void RunNominations(StepContext& ctx);
  bool CarryOut(const std::string& workload, Nomination& nomination, StepContext& ctx);
  void ReturnVictim(const std::string& workload, const std::string& node);
  void EvictVictims(const std::string& workload, const Nomination& nomination, StepContext& ctx);
  void SetBudgets();
  // `victims` must leave the node before.
  void Settle(const placement::Outcome& outcome, const std::set<std::string>& victims, Messages& messages,
              StepContext& ctx);
  // Why no node takes it, node by node.
  const std::string& MessageOf(const WorkloadRecord& record, Messages& messages, WallTime wall);

  const Config& config_;
  const StoreCopy& copy_;
  Drafts& drafts_;
  const NodeHealth& health_;
  Rooms& rooms_;
  Transitions& transitions_;
  const ComingMachines& coming_;
  State state_;
};

}  // namespace muster::scheduler
