// Demand: what a native cluster needs of the fleet, from its workloads. Total demand: every workload that is to run,
// placed or not, so that the shard can compare it with everything that is bound.
//
// A need sums the workloads of one profile and group, and its smallest unit is its largest member: no smaller machine
// serves it. So members that no bound node could carry if it were empty are needs of their own, size by size: one that
// no machine could ever carry takes nothing from the others. Gangs stay whole. Three things are more than a sum:
//   1. Members that exclude each other on a host need a machine each, however small they are. A node that has such a
//      member counts whole, once, and a member without a node counts on top.
//   2. Workloads that stay unplaced although enough capacity is bound (it is in pieces too small, or of the wrong
//      shape) are stuck: the demand of their profile is raised by the room that is free, at most one node's, and by
//      what they ask for, so that another machine is bound. The raise stays for a while after the last of them runs,
//      longer each time, and for as long as the machines that it brought could not be emptied: a fleet does not swing.
//      An operator that has just started finds by the same rule that a raise was there.
//      A node that is bound and takes nothing (people have cordoned it, or it does not beat) is capacity to the shard
//      and none to what waits: the raise counts its room too, until the node leaves.
//      What waits because of its neighbours is helped by an empty machine or by none: it raises demand until one that
//      is empty refuses it, and then not again for the hold, longer each time.
//   3. A workload with several alternative lists of requirements is counted under the first that the protocol with
//      the shard can express.
//
// A workload without such a list is left out: it is in no need, because the shard refuses a roll-up in which one
// operator is unknown to it, and with it the demand of the whole cluster. Such a workload still takes its room on
// nodes.
//
// Pure. Thread-safety: none.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/cluster_views.h"
#include "model/need.h"
#include "model/requirement.h"
#include "model/resources.h"

namespace muster::operators {

// The part of a workload that demand reads.
struct DemandUnit {
  model::Profile profile;
  std::string group;
  model::Resources request;
  std::string node;            // empty: none
  bool alone_on_host = false;  // it excludes others of its kind on a host
  bool waits = false;          // the scheduler has tried, no node takes it, and another machine might
  std::string by_neighbours;   // the refusal, if others on the nodes are the reason, whatever room these have
  std::optional<MonoTime> waiting_since;

  MUSTER_FIELDS(DemandUnit, profile, group, request, node, alone_on_host, waits, by_neighbours, waiting_since)
};

// Whether the workload is to run: from its apply until Stopped, Completed, Deleted or finally Failed.
bool CountsAsDemand(const contract::WorkloadView& view);
DemandUnit UnitOf(const contract::WorkloadView& view);

// Why the unit is in no need: bigfleet.v1alpha1 has no number for an operator that it requires, or its need would be
// larger than a shard takes. Either would have the whole roll-up refused. Empty: the unit is counted.
std::string LeftOutBy(const DemandUnit& unit);

// The group of a need whose members are asked for apart from the others of their profile: all are of this size.
std::string GroupOfSize(const model::Resources& request);

// Capacity that is bound to the cluster: a node that its machine backs.
struct BoundNode {
  model::Resources total;
  std::map<std::string, std::string> labels;
  bool usable = true;  // false: it takes nothing that waits, and the shard counts it all the same

  bool operator==(const BoundNode&) const = default;
  MUSTER_FIELDS(BoundNode, total, labels, usable)
};

// A raise of one profile's demand, and why.
struct Correction {
  model::Resources extra;
  std::vector<std::string> stuck;      // workloads, by id
  std::optional<MonoTime> calm_since;  // since when none of the profile is stuck
  Duration hold{};
  std::set<std::string> barred;           // nodes that take nothing, whose room was counted in
  std::optional<MonoTime> useless_until;  // an empty machine refused its workloads: none is asked for before

  MUSTER_FIELDS(Correction, extra, stuck, calm_since, hold, barred, useless_until)
};

class Demand {
 public:
  // `hold` is how long a first correction stays; each further one of the same profile twice as long, up to 16 times.
  Demand(std::string cluster, Duration stuck_after, Duration hold)
      : cluster_(std::move(cluster)), stuck_after_(stuck_after), hold_(hold) {}

  void SetWorkload(const std::string& id, const contract::WorkloadView& view, MonoTime now);
  void RemoveWorkload(const std::string& id) {
    if (units_.erase(id) > 0) summed_.reset();
    held_.erase(id);
  }
  // Forgets every workload that is not listed.
  void RemoveWorkloadsBut(const std::vector<contract::WorkloadView>& listed);
  void SetNode(const std::string& id, BoundNode node);
  void RemoveNode(const std::string& id);

  // What was asked for before, by a Demand that knew the same workloads and nodes: what of it was raised goes on.
  void TakeUp(const std::vector<model::Need>& before, MonoTime now);

  // Raises and lowers corrections. `more_comes`: machines are on their way, so that nothing counts as stuck yet. The
  // profiles whose correction changed, as sentences.
  std::vector<std::string> Review(bool more_comes, MonoTime now);
  // Whether Review has looked for raises of an earlier life.
  bool reviewed() const { return reviewed_; }
  // Workloads that wait for a machine that would not help them, with the refusal, as of the last Review.
  const std::map<std::string, std::string>& helpless() const { return helpless_; }
  // When Review may have something to do next.
  std::optional<MonoTime> NextReview() const;

  // Every need, in the order of model::Aggregate. Added up once, until something that counts has changed; good until
  // the next change.
  const std::vector<model::Need>& Needs() const { return Summed().needs; }

  struct Key {
    std::string fingerprint;
    std::string group;

    auto operator<=>(const Key&) const = default;
    MUSTER_FIELDS(Key, fingerprint, group)
  };
  const std::map<Key, Correction>& corrections() const { return corrections_; }
  size_t workloads() const { return units_.size(); }
  // As the function of this name; empty also for a workload that is not known.
  std::string LeftOutBy(const std::string& id) const;
  // How many workloads are in no need because the shard would refuse it.
  size_t left_out() const { return Summed().left_out; }
  void CheckInvariants() const;

  MUSTER_FIELDS(Demand, cluster_, stuck_after_, hold_, units_, held_, nodes_, corrections_, apart_, reviewed_,
                helpless_)
  Demand() = default;  // for the codec

 private:
  // Room on a node that is no demand.
  struct Held {
    std::string node;
    model::Resources request;

    MUSTER_FIELDS(Held, node, request)
  };
  struct Sum {
    model::Need need;                   // without its correction
    std::set<std::string> whole_nodes;  // of members that are alone on their host
    model::Resources unplaced_alone;
  };
  // What is said of all workloads, derived from units_, nodes_, corrections_ and apart_.
  struct Total {
    std::vector<model::Need> needs;
    size_t left_out = 0;
  };
  const Total& Summed() const;
  Total AddUp() const;
  std::map<Key, Sum> Sums() const;
  // What the need asks for before its correction.
  model::Resources Asked(const Sum& sum) const;
  // Workloads that have waited long enough, by their need.
  struct Waits {
    std::map<Key, std::vector<std::string>> stuck;     // no node has room for them in one piece
    std::map<Key, std::vector<std::string>> helpless;  // their neighbours refuse them an empty node too
  };
  Waits WhatWaits(MonoTime now) const;
  // Whether an empty machine has been seen to refuse the unit.
  bool EmptyOnesRefuse(const DemandUnit& unit, const std::map<std::string, model::Resources>& free) const;
  // What is left of each node that takes something.
  std::map<std::string, model::Resources> Free() const;
  void Raise(const Key& key, const Sum& sum, const std::vector<std::string>& stuck, std::vector<std::string>& changes);
  struct Occupancy;
  class Emptying;
  Occupancy Occupy() const;
  // What must be asked for beyond all requests, so that no node is given back that the sums could do without, and whose
  // workloads would fit nowhere else. Corrections of other needs count, the need's own does not. The emptiest nodes are
  // tried first; once some tens were tried in vain, the fuller ones count as such too: a large cluster does not wait
  // for the search. `occupancy` is made where there is none yet.
  model::Resources RoomToKeep(const Key& key, const std::map<Key, Sum>& sums,
                              std::optional<Occupancy>& occupancy) const;
  // What an earlier life of the operator had raised shows in what is bound.
  void FindRaises(std::optional<Occupancy>& occupancy, MonoTime now, std::vector<std::string>& changes);
  // Of a need of which nothing is stuck.
  void Lower(const Key& key, Correction& correction, bool useless, const std::map<Key, Sum>& sums,
             std::optional<Occupancy>& occupancy, MonoTime now, std::vector<std::string>& changes);
  void ReviewSizes(bool more_comes, MonoTime now, std::vector<std::string>& changes);

  std::string cluster_;
  Duration stuck_after_{};
  Duration hold_{};
  std::map<std::string, DemandUnit> units_;
  std::map<std::string, Held> held_;  // by workloads that are stopped or have failed: the scheduler keeps their room
  std::map<std::string, BoundNode> nodes_;
  std::map<Key, Correction> corrections_;
  std::set<Key> apart_;    // needs without a node for which nothing came: asked for size by size
  bool reviewed_ = false;  // at least once
  std::map<std::string, std::string> helpless_;
  mutable std::optional<Total> summed_;
};

}  // namespace muster::operators
