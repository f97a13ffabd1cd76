// Engine: the reference engine's answers, from state that is kept up to date instead of read anew.
//
//   Engine engine(policy);
//   engine.SetCluster("a", {...});  engine.Upsert(machine);  engine.ReplaceNeeds("a", rows, now);   // as things change
//   engine.Decide(now);                                                                             // once a cycle
//
//   for (const NamedAction& action : engine.NamedActions()) ...
//
// Decisions depend on what the engine was told, never on the order in which it was told or on how often it decided.
// Answers name clusters, needs and machines; no id of a table leaves the engine.
// Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "engine/fast/answers.h"
#include "engine/fast/broker_stats.h"
#include "engine/fast/rollup.h"
#include "engine/types.h"
#include "model/machine_digest.h"

namespace muster::engine::fast {

using model::DigestOf;
using model::MachineDigest;

class Cycle;
class Demand;
class Inventory;

class Engine {
 public:
  // `parallel`, which must outlive the engine, decides on how many workers; none: one, in this thread.
  explicit Engine(Policy policy, Parallel* parallel = nullptr);
  ~Engine();

  void Upsert(const model::Machine& machine) { Upsert(machine, DigestOf(machine)); }
  void Upsert(const model::Machine& machine, const MachineDigest& digest);  // as made by DigestOf() when it was decoded
  void Upsert(std::span<const model::Machine> machines, std::span<const MachineDigest> digests);  // a list
  void Remove(std::string_view id);
  void SetCluster(const std::string& cluster, const ClusterState& state);
  // Forgets those of the clusters that it has no machine, no hold and, for some decisions, no demand of. Those that it
  // does not know, or no longer. Costs a walk over machines and needs.
  std::vector<std::string> ForgetClusters(std::span<const std::string> clusters);
  // In place of all holds before. Costs a walk over both, and work for what changed.
  void SetHolds(const Holds& holds);
  // Replaces the cluster's demand. Arrivals are stamped with `now`, or taken as given without it.
  void ReplaceNeeds(const std::string& cluster, const Rollup& rollup, std::optional<WallTime> now);
  // What an earlier life remembered; before the first Decide.
  void Restore(const Memory& memory);

  // `counts_ages`: this cycle adds to the ages of needs that are short (World::counts_ages).
  void Decide(MonoTime now, bool explain = false, bool counts_ages = true);

  // --- what it was told
  // Whether a machine with `resources` brings no more kinds of them than the engine can tell apart. Needs may ask for
  // any. `machine` is its id: what it alone has had so far takes no room.
  bool HasRoomFor(const model::Resources& resources, std::string_view machine = {}) const;
  // As SetCluster last said; nothing of a cluster that was never named.
  std::optional<ClusterState> StateOf(const std::string& cluster) const;

  // --- the last decision
  size_t unsatisfied() const;
  size_t pending() const;  // of them, those that lack only what is on its way, or what the reclaim budget will allow
  std::vector<NamedAction> NamedActions() const;
  std::vector<ShortNeed> ShortNeeds() const;  // in the order of decision
  // What changed since the last call about which needs are short. Names only those; costs a walk over rows of a few
  // bytes for the rest. After every Decide.
  ShortChanges TakeShortChanges(const ShortVisitor& visit);
  // For each profile of a cluster that has shown its needs, as of the last decision.
  std::vector<Available> AvailableTo(const std::string& cluster) const;
  // How many machines needs of each interruption bucket claimed; buckets without any are left out.
  std::map<model::PenaltyBucket, uint64_t> ClaimedByInterruption() const;
  const BrokerStats& broker() const;
  // Clusters that had more to give up than SetCluster allowed.
  uint64_t reclaims_capped() const;
  Decision Explain();  // after Decide(now, true)

  // --- what must survive a restart
  Memory ExportMemory() const;
  // What a restart would lose of the machines whose memory may have changed since the last call; nothing of a machine
  // that went or has nothing to remember.
  std::vector<std::pair<std::string, MachineMemory>> TakeMemoryChanges();
  // Instance types of which a drain ended since the last call, and their means. What Restore said is not told again.
  std::vector<std::pair<std::string, DrainMean>> TakeDrainChanges();

  // The first invariant of a table that does not hold; empty if all do. After Decide, which itself checks it in builds
  // with MUSTER_FAULTS: in every cycle of a small fleet, now and then of a large one.
  std::string Verify() const;

 private:
  friend struct Internals;
  const Inventory& inventory() const { return *inventory_; }
  const Demand& demand() const { return *demand_; }
  void VerifyInDebugBuilds() const;

  const Policy policy_;
  Parallel* parallel_;
  std::unique_ptr<Inventory> inventory_;
  std::unique_ptr<Demand> demand_;
  std::unique_ptr<Cycle> cycle_;
};

}  // namespace muster::engine::fast
