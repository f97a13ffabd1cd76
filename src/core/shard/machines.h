// Machines: the machines of the owned set as the provider showed them last, and what the engine is shown of them.
//
// While an operation is under way the engine is shown what the machine will be, so that it decides as if that were so
// already (InProgress). A machine that is set aside is shown as one between two states: it counts for whom it is bound
// or pledged to, and nothing can be decided about it.
//
// Invariants:
//   1. A machine is in `bound` of its record's cluster and of no other.
//   2. Counts by kind, type and zone, and the Configured, Configuring and Failed machines of each cluster, are those of
//      the tracked machines.
//   3. A tracked machine that was fenced is set aside, also if it was missing or dropped meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "contract/provider.h"
#include "core/shard/clusters.h"
#include "core/shard/snapshot.h"
#include "model/machine.h"

namespace muster::shard {

class EngineView;

// Reads and transitions are numbered in the order they were begun: a read tells nothing about a machine whose
// transition began or ended after it.
using Moment = uint64_t;

struct Tracked {
  contract::MachineRecord record;  // as the provider showed it last
  Moment not_before = 0;           // a read begun before this is stale
  Moment listed = 0;               // the list that showed it last
  uint64_t sweep = 0;              // the last full sweep that showed it
  MonoTime moving_since;           // when its transition was first seen; zero: not moving, or adopted so
  bool missed = false;             // a read showed something while a transition call was open

  MUSTER_FIELDS(Tracked, record, not_before, listed, sweep, moving_since, missed)
};

// Why nothing may be done with a machine, whatever its record says. Stored in journals: numbers stay.
enum class SetAside : uint8_t {
  kNo = 0,
  kMissing = 1,  // the provider no longer shows it
  kFenced = 2,   // the provider fenced a call for it
  kFailing = 3,  // the provider says that it is Failed, as it does of many others
};

// What an operation makes of its machine.
struct InProgress {
  model::MachineState from = model::MachineState::kUnspecified;
  model::MachineState to = model::MachineState::kUnspecified;
  std::string cluster;                          // Configuring: the cluster it will be bound to
  std::map<std::string, std::string> metadata;  // Configuring: its metadata then
  bool calling = false;                         // the provider was called and has not answered
};

class Machines {
 public:
  using Table = std::map<std::string, Tracked, std::less<>>;
  struct State {
    Table tracked;
    Moment moment = 0;
    std::map<std::string, SetAside, std::less<>> set_aside;  // tracked machines
    std::set<std::string, std::less<>> fenced;               // machines, also such as are not tracked any more

    MUSTER_FIELDS(State, tracked, moment, set_aside, fenced)
  };
  // Of one cluster.
  struct Bound {
    std::set<std::string> machines;
    int64_t configured = 0;  // as the engine is shown
    int64_t failed = 0;      // the same
    // Those that are being configured for the cluster, or about to be; without those that are set aside.
    std::set<std::string> configuring;
  };

  // What is referred to outlives this.
  Machines(EngineView& engine, Clusters& clusters, State state);
  // After a load: counts and the engine's inventory, from the tracked machines and the operations under way.
  void Rebuild(std::map<std::string, InProgress, std::less<>> in_progress);

  const Table& tracked() const { return state_.tracked; }
  Tracked* Find(const std::string& id);
  const Tracked* Find(const std::string& id) const;
  Moment NextMoment() { return ++state_.moment; }

  void Add(Tracked tracked);
  // The provider shows another record. The engine is shown it by the next PublishToEngine.
  void SetRecord(const std::string& id, Tracked& tracked, contract::MachineRecord record);
  void Remove(const std::string& id);

  // kMissing, kFailing, or kNo: the machine is as its record says again, unless it was fenced.
  void Put(const std::string& id, SetAside why);
  // A call for the machine was fenced, tracked or not: until Unfence it is set aside whenever it is tracked.
  void Fence(const std::string& id);
  void Unfence();
  size_t fenced() const { return state_.fenced.size(); }
  SetAside AsideOf(const std::string& id) const;
  const std::map<std::string, SetAside, std::less<>>& set_aside() const { return state_.set_aside; }

  void SetInProgress(const std::string& id, InProgress in_progress);
  void SetCalling(const std::string& id);
  void ClearInProgress(const std::string& id);
  // Whether the provider was called for the machine and has not answered.
  bool IsCalling(const std::string& id) const;

  // The record as the engine is to see it.
  model::MachineState StateForEngine(const std::string& id, const Tracked& tracked) const;
  model::Machine MachineForEngine(const std::string& id, const Tracked& tracked) const;
  void PublishToEngine(const std::string& id, const Tracked& tracked);

  // Machines bound to the cluster; empty if there are none.
  const Bound& BoundTo(const std::string& cluster) const;
  // How many are being configured for the cluster since `since` or before; what was adopted so, from `adopted` on.
  int64_t ConfiguringSince(const std::string& cluster, MonoTime since, MonoTime adopted) const;
  // Those that have machines, or soon will.
  void AddClusters(Clusters::Names& used) const;
  // The cluster has none.
  void ForgetCluster(const std::string& cluster) { bound_.erase(cluster); }
  const std::map<MachineKind, uint64_t>& counts() const { return counts_; }
  // Machines that cost money: all but those that could be bought and those being given back.
  int64_t Costly() const;
  // Machines that cost money and will, unless something happens to them: none that may be on its way to Speculative.
  int64_t staying() const { return staying_; }
  const std::map<std::string, int64_t>& by_instance_type() const { return by_instance_type_; }
  const std::map<std::string, int64_t>& by_zone() const { return by_zone_; }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void Count(const std::string& id, const Tracked& tracked, int64_t by);
  Bound& BoundOf(const std::string& cluster);
  // For which cluster the machine is being configured, or about to be; empty if for none, or it is set aside.
  std::string ConfiguringFor(const std::string& id, const Tracked& tracked) const;
  // What is under way on the machine; null if nothing is, or its record no longer fits that.
  const InProgress* UnderWay(const std::string& id, const Tracked& tracked) const;

  EngineView& engine_;
  Clusters& clusters_;
  State state_;
  // Derived from operations.
  std::map<std::string, InProgress, std::less<>> in_progress_;
  // Derived from tracked machines and in_progress_.
  std::map<std::string, Bound, std::less<>> bound_;
  std::map<MachineKind, uint64_t> counts_;
  int64_t staying_ = 0;
  std::map<std::string, int64_t> by_instance_type_;
  std::map<std::string, int64_t> by_zone_;
};

}  // namespace muster::shard
