#include "engine/fast/engine.h"

#include <algorithm>
#include <set>

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

void Engine::ReplaceNeeds(const std::string& cluster, const Rollup& rollup, std::optional<WallTime> now) {
  demand_->Replace(inventory_->ClusterOf(cluster), rollup, now);
}

void Engine::Restore(const Memory& memory) {
  inventory_->Restore(memory);
  for (const auto& [key, row] : memory.needs) cycle_->RestoreNeed(inventory_->KeyOf(key), row);
}

void Engine::Decide(MonoTime now, bool explain) {
  InlineParallel in_turn;
  cycle_->Run(now, explain, parallel_ != nullptr ? *parallel_ : in_turn);
}
const std::vector<FastAction>& Engine::actions() const { return cycle_->actions(); }
size_t Engine::unsatisfied() const { return cycle_->unsatisfied(); }
Decision Engine::Explain() { return cycle_->Explain(); }

Memory Engine::ExportMemory() const {
  Memory memory;
  for (const MachineId m : inventory().by_id()) {
    MachineMemory row = inventory().MemoryOf(m, false);
    if (row != MachineMemory{}) memory.machines.emplace_hint(memory.machines.end(), inventory().id(m), std::move(row));
  }
  for (const KeyId key : cycle_->remembered()) memory.needs.emplace(inventory().NameOf(key), cycle_->need_memory(key));
  for (size_t i = 0; i < inventory().drains().size(); ++i) {
    if (inventory().drains()[i].drains > 0)
      memory.drains.emplace(inventory().catalogue().drain_types()[i], inventory().drains()[i]);
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

std::vector<ShortNeed> Engine::ShortNeeds() const {
  std::vector<ShortNeed> needs;
  const Catalogue& catalogue = inventory().catalogue();
  for (const NeedId n : cycle_->short_needs()) {
    const NeedRow& row = *demand().order()[n];
    needs.push_back({.key = inventory().NameOf(row.key),
                     .profile = demand().info(row.profile).profile,
                     .shortage = catalogue.Sparse(cycle_->outcome(n).shortage),
                     .age = cycle_->need_memory(row.key).age_unmet,
                     .on_its_way = cycle_->outcome(n).on_its_way});
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

void Follower::Show(const World& world) {
  std::set<std::string_view> here;
  for (const model::Machine& machine : world.machines) {
    here.insert(machine.id);
    const auto [it, is_new] = machines_.emplace(machine.id, machine);
    if (!is_new && it->second == machine) continue;
    it->second = machine;
    engine_.Upsert(machine);
  }
  for (auto it = machines_.begin(); it != machines_.end();) {
    if (here.contains(it->first)) {
      ++it;
      continue;
    }
    engine_.Remove(it->first);
    it = machines_.erase(it);
  }
  for (auto it = clusters_.begin(); it != clusters_.end();) {
    if (world.clusters.contains(it->first)) {
      ++it;
      continue;
    }
    engine_.SetCluster(it->first, {.session = false, .gate_open = false});
    it = clusters_.erase(it);
  }
  for (const auto& [name, state] : world.clusters) {
    clusters_[name] = state;
    engine_.SetCluster(name, state);
  }
  struct Rows {
    std::vector<model::Need> needs;
    std::vector<uint64_t> digests;
  };
  std::map<std::string, Rows> rows;
  for (const auto& [name, positions] : positions_) rows[name];
  positions_.clear();
  for (size_t i = 0; i < world.needs.size(); ++i) {
    const model::Need& need = world.needs[i];
    rows[need.cluster].needs.push_back(need);
    rows[need.cluster].digests.push_back(RowDigest(need));
    positions_[need.cluster].push_back(i);
  }
  for (const auto& [name, list] : rows) {
    engine_.ReplaceNeeds(name, {.rows = list.needs, .digests = list.digests}, std::nullopt);
  }
}

Decision Follower::Decide(MonoTime now) {
  engine_.Decide(now, true);
  Decision decision = engine_.Explain();
  for (NeedVerdict& verdict : decision.needs) {
    const std::vector<size_t>& positions = positions_.at(verdict.need.cluster);
    for (size_t& row : verdict.rows) row = positions[row];
  }
  return decision;
}

Decision Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy) {
  Follower follower(policy);
  follower.engine().Restore(memory);
  follower.Show(world);
  Decision decision = follower.Decide(now);
  memory = follower.engine().ExportMemory();
  return decision;
}

}  // namespace muster::engine::fast
