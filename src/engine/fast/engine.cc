#include "engine/fast/engine.h"

#include <algorithm>
#include <set>

#include "engine/fast/cycle.h"

namespace muster::engine::fast {

Engine::Engine(Policy policy, Parallel* parallel)
    : policy_(policy), parallel_(parallel), cycle_(std::make_unique<Cycle>(inventory_, demand_, policy_)) {}
Engine::~Engine() = default;

void Engine::Upsert(const model::Machine& machine, const MachineDigest& digest) { inventory_.Upsert(machine, digest); }
void Engine::Remove(std::string_view id) { inventory_.Remove(id); }

void Engine::SetCluster(const std::string& cluster, const ClusterState& state) {
  inventory_.cluster(inventory_.ClusterOf(cluster)).state = state;
}

void Engine::ReplaceNeeds(const std::string& cluster, const Rollup& rollup, std::optional<WallTime> now) {
  demand_.Replace(inventory_.ClusterOf(cluster), rollup, now);
}

void Engine::Restore(const Memory& memory) {
  inventory_.Restore(memory);
  for (const auto& [key, row] : memory.needs) cycle_->RestoreNeed(inventory_.KeyOf(key), row);
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
  for (const MachineId m : inventory_.by_id()) {
    MachineMemory row;
    const model::MachineState state = inventory_.state(m);
    if (const StampId stamp = inventory_.stamp_of(m); stamp != kNoStamp) {
      const Stamp& s = inventory_.stamp(stamp);
      row.attribution = model::Attribution{.fingerprint = inventory_.fingerprint(s.profile),
                                           .group = s.group,
                                           .priority = s.priority,
                                           .interruption = s.interruption,
                                           .reclamation = s.reclamation};
    }
    if (inventory_.pledge_of(m) != kNoId) row.pledge = inventory_.NameOf(inventory_.pledge_of(m));
    const std::optional<MonoTime> since = inventory_.since(m);
    switch (state) {
      case model::MachineState::kConfigured: row.unclaimed_since = since; break;
      case model::MachineState::kIdle: row.idle_since = since; break;
      case model::MachineState::kDraining: row.draining_since = since; break;
      default: break;
    }
    if (row != MachineMemory{}) memory.machines.emplace_hint(memory.machines.end(), inventory_.id(m), std::move(row));
  }
  for (const KeyId key : cycle_->remembered()) memory.needs.emplace(inventory_.NameOf(key), cycle_->need_memory(key));
  for (size_t i = 0; i < inventory_.drains().size(); ++i) {
    if (inventory_.drains()[i].drains > 0)
      memory.drains.emplace(inventory_.catalogue().drain_types()[i], inventory_.drains()[i]);
  }
  return memory;
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
