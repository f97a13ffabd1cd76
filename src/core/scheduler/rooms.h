// Rooms: who has which room on which node, as the placer sees it, and what is left.
//
// A workload holds the room of its request on the node that its record names, in the store or in a draft: from the
// decision on, and until the store no longer says so. If both differ it holds both, the room in the store under the
// unit "<id>@", and that of a commit whose outcome is not known under "<id>?". A workload that completed holds nothing.
// A nominated workload holds the room that its victims will leave.
//
// To the placer, workloads that are alike are one kind, and what it knows of a kind it knows of all of them. The label
// with a workload's set, which tells one that is no member of a set from all others, is therefore given to the placer
// for those alone whose label a rule reads: their own, or one of another workload that names them.
//
// Invariants: (1) the holds of a workload follow from its record, its draft and its nomination; (2) the reserved
// amounts of a node are the sum of its holds; (3) the requests of the records on a node, but for those that leave it,
// are within its total, unless the node came back smaller.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/store_copy.h"
#include "placement/fast/placer.h"
#include "placement/types.h"

namespace muster::scheduler {

// What placement reads of a workload. It goes to none of `avoided`.
placement::Kind KindOfWorkload(const WorkloadRecord& record, bool may_preempt,
                               const std::vector<std::string>& avoided = {});

// What is known of a node besides its record.
struct NodeNow {
  bool available = false;  // its agent can be reached
  bool fresh = false;      // its heartbeats are recent
  model::Resources used;
};

// Whether the machine could take the workload once it is a node with nothing else on it.
bool CouldTake(const contract::ComingMachine& machine, const WorkloadRecord& record);

class Rooms {
 public:
  struct Hold {
    std::string node;
    std::vector<int32_t> devices;
    bool terminating = false;
    std::string basis;  // the revisions it was made for
    model::Resources request;

    MUSTER_FIELDS(Hold, node, devices, terminating, basis, request)
  };
  struct State {
    std::map<std::string, Hold, std::less<>> holds;             // by unit
    std::map<std::string, std::string, std::less<>> nominated;  // node by workload
    std::set<std::string, std::less<>> shrunk;                  // nodes that came back smaller
    bool node_came = false;
    bool room_came = false;

    MUSTER_FIELDS(State, holds, nominated, shrunk, node_came, room_came)
  };

  Rooms(const Config& config, const StoreCopy& copy, const Drafts& drafts, State state);

  // The node is as its record and `now` say, or gone.
  void SyncNode(const std::string& id, const NodeNow& now);
  // The same after a heartbeat, which changes no record.
  void SyncHeard(const std::string& id, const NodeNow& now);
  // The workload holds what it should.
  void SyncWorkload(const std::string& id);

  struct Wanted {
    std::string workload;
    bool may_preempt = false;
  };
  // Places workloads by priority, then age; outcomes in the same order. Who is placed holds its room; the caller edits
  // its draft, and syncs those that were not placed, and the victims.
  std::vector<placement::Outcome> Place(const std::vector<Wanted>& wanted, WallTime wall);
  // Undoes the last Place: who was placed holds nothing, and the victims hold what they held. The caller syncs the
  // workloads that were to be placed.
  void TakeBack(const std::vector<placement::Outcome>& outcomes);
  void Nominate(const std::string& workload, const std::string& node);
  void Withdraw(const std::string& workload);
  void SetBudget(const std::string& set, int64_t allowed);

  // What the placer knows the workload as: what is alike is refused alike.
  placement::Kind KindAsPlaced(const WorkloadRecord& record, WallTime wall);
  // For every node, the first filter that refuses the kind. Costs a text for every node.
  std::vector<placement::NodeVerdict> Explain(const placement::Kind& kind);
  // How often that was asked.
  uint64_t explained() const { return explained_; }
  // Whether a workload that holds `before` on the node could hold `after` there.
  bool FitsInstead(const std::string& node, const model::Resources& before, const model::Resources& after) const;
  model::Resources Reserved(std::string_view node) const;
  // Since TakeCame: a node that takes workloads came or changed; room was left, or a node takes none any more.
  bool node_came() const { return state_.node_came; }
  bool room_came() const { return state_.room_came; }
  void TakeCame() { state_.node_came = state_.room_came = false; }
  size_t kinds() const { return placer_.kinds(); }

  const State& state() const { return state_; }
  // After a load: the placer is filled with the saved holds. SyncNode must have been called for every node.
  void Refill();
  void CheckInvariants() const;

 private:
  bool KeepsRules(const WorkloadRecord& next) const;
  std::vector<std::string> AvoidedBy(const WorkloadRecord& record, WallTime wall) const;
  void SetHold(const std::string& unit, const WorkloadRecord* record, const std::string& node, std::string basis,
               const model::Resources& request, bool terminating);
  void Add(const std::string& unit, const WorkloadRecord& record, Hold hold);
  void Drop(const std::string& unit);
  void ForgetKinds();
  // The kind as it is given to the placer. NoteRules has been called with every kind that is there.
  placement::Kind Alike(placement::Kind kind, const WorkloadRecord& record) const;
  void NoteRules(const placement::Kind& kind);
  void AddAgain(const std::string& unit);
  bool ForgetNames();
  const WorkloadRecord* RecordOf(const std::string& unit) const;

  const Config& config_;
  const StoreCopy& copy_;
  const Drafts& drafts_;
  State state_;
  bool filled_;  // the placer has the holds
  // Derived.
  placement::fast::Placer placer_;
  std::set<std::string, std::less<>> named_;  // what rules name as the set of others
  bool all_named_ = false;                    // by a rule that could mean any of them
  size_t names_after_forgetting_ = 0;         // and once the batch that was to be placed then was noted
  std::map<std::string, placement::Node, std::less<>> nodes_;  // as the placer has them
  std::map<std::string, std::map<std::string, int64_t>, std::less<>> reserved_;
  std::map<std::string, Hold> lifted_;  // of the victims of the last Place
  uint64_t explained_ = 0;
  std::map<std::string, int64_t> budgets_;  // by set: what may be evicted, less the victims since
};

}  // namespace muster::scheduler
