// Machines: the machines of the owned set as the provider showed them last, and what the engine is shown of them.
//
// While an operation is under way the engine is shown what the machine will be, so that it decides as if that were so
// already (InProgress).
//
// Invariants:
//   1. A machine is in `bound` of its record's cluster and of no other.
//   2. Counts by kind, type and zone, and the Configured machines of each cluster, are those of the tracked machines.
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

    MUSTER_FIELDS(State, tracked, moment)
  };
  // Of one cluster.
  struct Bound {
    std::set<std::string> machines;
    int64_t configured = 0;  // as the engine is shown
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
  const std::map<MachineKind, uint64_t>& counts() const { return counts_; }
  const std::map<std::string, int64_t>& by_instance_type() const { return by_instance_type_; }
  const std::map<std::string, int64_t>& by_zone() const { return by_zone_; }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void Count(const std::string& id, const Tracked& tracked, int64_t by);

  EngineView& engine_;
  Clusters& clusters_;
  State state_;
  // Derived from operations.
  std::map<std::string, InProgress, std::less<>> in_progress_;
  // Derived from tracked machines and in_progress_.
  std::map<std::string, Bound, std::less<>> bound_;
  std::map<MachineKind, uint64_t> counts_;
  std::map<std::string, int64_t> by_instance_type_;
  std::map<std::string, int64_t> by_zone_;
};

}  // namespace muster::shard
