// The fast engine: the reference engine's answers, from state that is kept up to date instead of read anew.
//
//   Engine engine(policy);
//   engine.SetCluster("a", {...});  engine.Upsert(machine);  engine.ReplaceNeeds("a", rows, now);   // as things change
//   engine.Decide(now);                                                                             // once a cycle
//
// Decisions depend on what the engine was told, never on the order in which it was told or on how often it decided.
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
#include "engine/fast/rollup.h"
#include "engine/types.h"
#include "model/machine_digest.h"

namespace muster::engine::fast {

using model::DigestOf;
using model::MachineDigest;

class Cycle;
class Demand;
class Inventory;
struct FastAction;

// An action with the profile of the need it is for, if it is for one.
struct NamedAction {
  Action action;
  std::optional<model::Profile> profile;
};

// A need that the last decision left short.
struct ShortNeed {
  NeedKey key;
  model::Profile profile;
  model::Resources shortage;
  int32_t age = 0;          // cycles in a row
  bool on_its_way = false;  // covered once the machines taken for it have drained
};

// Machines that can serve a profile's need, whoever has them.
struct Available {
  model::Profile profile;
  int64_t idle = 0;
  int64_t speculative = 0;
  bool in_use = false;    // some serve somebody
  model::Money price;     // of the cheapest that is free
  model::Resources each;  // what that one offers
};

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
  // Replaces the cluster's demand. Arrivals are stamped with `now`, or taken as given without it.
  void ReplaceNeeds(const std::string& cluster, const Rollup& rollup, std::optional<WallTime> now);
  // What an earlier life remembered; before the first Decide.
  void Restore(const Memory& memory);

  void Decide(MonoTime now, bool explain = false);

  // Of the last decision. Indexes are good until the next call that changes something.
  const std::vector<FastAction>& actions() const;
  size_t unsatisfied() const;
  const Inventory& inventory() const { return *inventory_; }
  const Demand& demand() const { return *demand_; }
  const Cycle& cycle() const { return *cycle_; }
  Decision Explain();  // after Decide(now, true)
  Memory ExportMemory() const;
  std::vector<NamedAction> NamedActions() const;
  std::vector<ShortNeed> ShortNeeds() const;  // in the order of decision
  // For each profile of a cluster that has shown its needs, as of the last decision.
  std::vector<Available> AvailableTo(const std::string& cluster) const;
  // What a restart would lose of the machines whose memory may have changed since the last call; nothing of a machine
  // that went or has nothing to remember.
  std::vector<std::pair<std::string, MachineMemory>> TakeMemoryChanges();

 private:
  const Policy policy_;
  Parallel* parallel_;
  std::unique_ptr<Inventory> inventory_;
  std::unique_ptr<Demand> demand_;
  std::unique_ptr<Cycle> cycle_;
};

// The reference engine's signature: a fresh engine for one decision.
Decision Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy);

// Brings a long-lived engine to a world that may differ from the last one it was shown in anything.
class Follower {
 public:
  explicit Follower(Policy policy, Parallel* parallel = nullptr) : engine_(policy, parallel) {}
  void Show(const World& world);
  // Rows of the decision as positions in the world last shown.
  Decision Decide(MonoTime now);
  Engine& engine() { return engine_; }

 private:
  Engine engine_;
  std::map<std::string, model::Machine> machines_;
  std::map<std::string, std::vector<size_t>> positions_;  // by cluster: where its rows are in World::needs
  std::map<std::string, ClusterState> clusters_;
};

}  // namespace muster::engine::fast
