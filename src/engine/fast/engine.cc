#include "engine/fast/engine.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/check.h"
#include "engine/fast/cycle.h"

namespace muster::engine::fast {

Engine::Engine(Policy policy, Parallel* parallel)
    : policy_(policy),
      parallel_(parallel),
      inventory_(std::make_unique<Inventory>()),
      demand_(std::make_unique<Demand>(*inventory_)),
      cycle_(std::make_unique<Cycle>(*inventory_, *demand_, policy_)) {}
Engine::~Engine() = default;

void Engine::Upsert(const model::Machine& machine, const MachineDigest& digest) { inventory_->Upsert(machine, digest); }
void Engine::Upsert(std::span<const model::Machine> machines, std::span<const MachineDigest> digests) {
  inventory_->Upsert(machines, digests);
}
void Engine::Remove(std::string_view id) { inventory_->Remove(id); }

void Engine::SetCluster(const std::string& cluster, const ClusterState& state) {
  inventory_->cluster(inventory_->ClusterOf(cluster)).state = state;
}

std::vector<std::string> Engine::ForgetClusters(std::span<const std::string> clusters) {
  Rows<ClusterId, bool> unused;
  unused.resize(inventory_->clusters(), false);
  for (const std::string& name : clusters) {
    if (const ClusterId id = inventory_->FindCluster(name); id != kNoId) unused[id] = true;
  }
  demand_->ForgetClusters(unused);
  std::vector<std::string> gone;
  std::ranges::copy_if(clusters, std::back_inserter(gone),
                       [&](const std::string& name) { return inventory_->FindCluster(name) == kNoId; });
  return gone;
}

void Engine::SetHolds(const Holds& holds) { inventory_->SetHolds(holds); }

void Engine::ReplaceNeeds(const std::string& cluster, const Rollup& rollup, std::optional<WallTime> now) {
  demand_->Replace(inventory_->ClusterOf(cluster), rollup, now);
}

void Engine::Restore(const Memory& memory) {
  inventory_->Restore(memory);
  for (const auto& [key, row] : memory.needs) cycle_->RestoreNeed(inventory_->KeyOf(key), row);
}

void Engine::Decide(MonoTime now, bool explain, bool counts_ages) {
  InlineParallel in_turn;
  cycle_->Run(now, explain, counts_ages, parallel_ != nullptr ? *parallel_ : in_turn);
  VerifyInDebugBuilds();
}

std::string Engine::Verify() const {
  for (const std::string& problem : {inventory_->Verify(), demand_->Verify(), cycle_->Verify()}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

void Engine::VerifyInDebugBuilds() const {
#ifdef MUSTER_FAULTS
  constexpr size_t kRowsACycle = 256;  // on average, so that a large fleet stays usable
  const size_t rows = inventory_->rows() + demand_->rows();
  if (inventory_->cycle() % (1 + rows / kRowsACycle) != 0) return;
  const std::string problem = Verify();
  MUSTER_CHECK(problem.empty(), "after cycle {}: {}", inventory_->cycle(), problem);
#endif
}

size_t Engine::unsatisfied() const { return cycle_->unsatisfied(); }
const BrokerStats& Engine::broker() const { return cycle_->broker(); }
uint64_t Engine::reclaims_capped() const { return cycle_->reclaims_capped(); }
ShortChanges Engine::TakeShortChanges(const ShortVisitor& visit) { return cycle_->TakeShortChanges(visit); }

bool Engine::HasRoomFor(const model::Resources& resources, std::string_view machine) const {
  const Catalogue& catalogue = inventory().catalogue();
  // Its names are nearly always known: then it need not be looked up.
  return catalogue.HasRoomFor(resources, kNoId) || catalogue.HasRoomFor(resources, inventory().ClassOfMachine(machine));
}

std::optional<ClusterState> Engine::StateOf(const std::string& cluster) const {
  const ClusterId id = inventory().FindCluster(cluster);
  return id == kNoId ? std::nullopt : std::optional(inventory().cluster(id).state);
}

std::map<model::PenaltyBucket, uint64_t> Engine::ClaimedByInterruption() const {
  std::map<model::PenaltyBucket, uint64_t> machines;
  cycle_->ForEachClaim([&](const ClaimRow& claim) {
    machines[demand().info(demand().order()[claim.need]->profile).profile.interruption()] += claim.count;
  });
  return machines;
}

Decision Engine::Explain() { return cycle_->Explain(); }

Memory Engine::ExportMemory() const {
  Memory memory;
  for (const MachineId m : inventory().by_id()) {
    MachineMemory row = inventory().MemoryOf(m, false);
    if (row != MachineMemory{}) memory.machines.emplace_hint(memory.machines.end(), inventory().id(m), std::move(row));
  }
  for (const KeyId key : cycle_->remembered()) memory.needs.emplace(inventory().NameOf(key), cycle_->need_memory(key));
  for (const TypeId type : inventory().drains().ids()) {
    const DrainMean& mean = inventory().drains()[type];
    if (mean.drains > 0) memory.drains.emplace(inventory().catalogue().types()[type], mean);
  }
  return memory;
}

std::vector<NamedAction> Engine::NamedActions() const {
  std::vector<NamedAction> named;
  for (const FastAction& action : cycle_->actions()) {
    NamedAction& name = named.emplace_back();
    name.action = cycle_->Name(action);
    if (action.need != kNoId) name.profile = demand().info(demand().order()[action.need]->profile).profile;
  }
  return named;
}

size_t Engine::pending() const {
  return static_cast<size_t>(
      std::ranges::count_if(cycle_->short_needs(), [&](NeedId n) { return cycle_->outcome(n).pending(); }));
}

std::vector<ShortNeed> Engine::ShortNeeds() const {
  std::vector<ShortNeed> needs;
  for (const NeedId n : cycle_->short_needs()) {
    const NeedRow& row = *demand().order()[n];
    needs.push_back({.key = inventory().NameOf(row.key),
                     .profile = demand().info(row.profile).profile,
                     .shortage = demand().NamedAmounts(row, cycle_->outcome(n).shortage, false),
                     .age = cycle_->need_memory(row.key).age_unmet,
                     .pending = cycle_->outcome(n).pending()});
  }
  return needs;
}

std::vector<Available> Engine::AvailableTo(const std::string& cluster) const {
  std::vector<Available> all;
  const Catalogue& catalogue = inventory().catalogue();
  std::set<ProfileId> seen;
  for (const NeedRow& row : demand().NeedsOf(inventory().FindCluster(cluster))) {
    if (!seen.insert(row.profile).second) continue;
    Available& available = all.emplace_back();
    available.profile = demand().info(row.profile).profile;
    std::optional<ClassId> cheapest;
    for (const ClassId c : catalogue.fit_as_is(row.fit).classes) {
      for (const GroupId g : catalogue.cls(c).free) {
        const Group& group = inventory().group(g);
        if (group.size == 0) continue;
        (group.state == model::MachineState::kIdle ? available.idle : available.speculative) += group.size;
        if (!cheapest || catalogue.cls(c).price < catalogue.cls(*cheapest).price) cheapest = c;
      }
      const auto has_machines = [&](GroupId g) { return inventory().group(g).size > 0; };
      available.in_use = available.in_use || std::ranges::any_of(catalogue.cls(c).bound, has_machines);
    }
    if (!cheapest) continue;
    available.price = {.micros = catalogue.cls(*cheapest).price};
    available.each = catalogue.Sparse(catalogue.each(*cheapest));
  }
  return all;
}

std::vector<std::pair<std::string, MachineMemory>> Engine::TakeMemoryChanges() {
  std::vector<std::pair<std::string, MachineMemory>> changes;
  for (const MachineId m : inventory_->TakeRemembered()) {
    const bool went = inventory_->state(m) == model::MachineState::kUnspecified;
    changes.emplace_back(inventory_->id(m), went ? MachineMemory{} : inventory_->MemoryOf(m, true));
  }
  return changes;
}

std::vector<std::pair<std::string, DrainMean>> Engine::TakeDrainChanges() {
  std::vector<std::pair<std::string, DrainMean>> changes;
  for (const TypeId type : inventory_->TakeDrained()) {
    changes.emplace_back(inventory().catalogue().types()[type], inventory().drains()[type]);
  }
  return changes;
}

}  // namespace muster::engine::fast
