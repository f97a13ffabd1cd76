#include <algorithm>
#include <set>
#include <tuple>

#include "base/probe.h"
#include "engine/bind_stamp.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;

std::vector<std::string> Dimensions(const World& world) {
  std::set<std::string> names;
  const auto add = [&](const model::Resources& resources) {
    for (const auto& [name, amount] : resources.entries()) names.insert(name);
  };
  for (const model::Machine& machine : world.machines) add(machine.EffectiveAllocatable());
  for (const model::Need& need : world.needs) {
    add(need.aggregate);
    add(need.min_unit);
  }
  return {names.begin(), names.end()};
}

bool IsBound(MachineState state) {
  return state == MachineState::kConfigured || state == MachineState::kConfiguring || state == MachineState::kDraining;
}

// What memory still says about a machine in this state. [M.memory] [PL.creating] [PL.ends]
MachineMemory Refresh(const model::Machine& machine, const MachineMemory& old, MonoTime now) {
  MachineMemory fresh;
  switch (machine.state) {
    case MachineState::kConfigured: fresh.unclaimed_since = old.unclaimed_since; break;
    case MachineState::kCreating: fresh.pledge = old.pledge; break;
    case MachineState::kDraining:
      fresh.pledge = old.pledge;
      fresh.draining_since = old.draining_since.value_or(now);
      fresh.instead = old.instead;
      break;
    case MachineState::kIdle:
      if (!MUTANT("rule.pledgee_first")) fresh.pledge = old.pledge;
      fresh.idle_since = old.idle_since.value_or(now);
      break;
    default: break;
  }
  // [M.attribution] what the need that claimed it last was, starting from the stamp it was bound with.
  if (IsBound(machine.state)) {
    fresh.attribution = old.attribution ? old.attribution : DecodeBindStamp(machine.shard_metadata);
  }
  return fresh;
}

// [P2.drain-mean] A drain that ended tells how long drains of this type take.
void LearnDrain(const model::Machine& machine, const MachineMemory& old, Cycle& cycle) {
  if (!old.draining_since || machine.state != MachineState::kIdle) return;
  PROBE("reference.drain_learnt");
  DrainMean& mean = cycle.memory.drains[machine.instance_type];
  mean.total_millis += std::chrono::duration_cast<std::chrono::milliseconds>(cycle.now - *old.draining_since).count();
  ++mean.drains;
}

// [A.size]
void SetSizes(Cycle& cycle) {
  Amounts largest(cycle.dimensions.size(), 0);
  for (const MachineRow& row : cycle.machines) {
    if (row.state() == MachineState::kFailed) continue;
    for (size_t d = 0; d < largest.size(); ++d) largest[d] = std::max(largest[d], row.allocatable[d]);
  }
  for (MachineRow& row : cycle.machines) {
    for (size_t d = 0; d < largest.size(); ++d) {
      if (largest[d] > 0) row.size += Ratio(row.allocatable[d], largest[d]);
    }
  }
}

// [P1.keep-order] Configured before Configuring, cheap before dear, costly to take away before others, then by id.
// [M.moment] whose it was when the cycle began.
bool KeepLess(const MachineRow& a, const MachineRow& b) {
  if (a.state() != b.state()) return a.state() == MachineState::kConfigured;
  const auto price_a = a.machine->price_per_hour;
  const auto price_b = b.machine->price_per_hour;
  if (price_a != price_b) return price_a < price_b;
  if (a.keep.reclamation != b.keep.reclamation) return a.keep.reclamation > b.keep.reclamation;
  PROBE("reference.tie.keep_order");
  return a.machine->id < b.machine->id;
}

void FillLists(Cycle& cycle) {
  for (uint32_t i = 0; i < cycle.machines.size(); ++i) cycle.by_id.push_back(MachineIndex(i));
  const auto row = [&](MachineIndex m) -> const MachineRow& { return cycle.machines[m]; };
  std::ranges::sort(cycle.by_id, {}, [&](MachineIndex m) -> const std::string& { return row(m).machine->id; });
  for (const MachineIndex m : cycle.by_id) {
    switch (row(m).state()) {
      case MachineState::kConfigured:
      case MachineState::kConfiguring:
        if (!row(m).machine->cluster.empty()) cycle.bound[row(m).machine->cluster].push_back(m);
        break;
      case MachineState::kIdle: cycle.idle.push_back(m); break;
      case MachineState::kSpeculative: cycle.speculative.push_back(m); break;
      case MachineState::kCreating: cycle.creating.push_back(m); break;
      default: break;
    }
  }
  for (auto& [cluster, list] : cycle.bound) {
    std::ranges::sort(list, [&](MachineIndex a, MachineIndex b) { return KeepLess(row(a), row(b)); });
  }
  std::ranges::stable_sort(cycle.creating, {}, [&](MachineIndex m) { return row(m).machine->price_per_hour; });
}

}  // namespace

Cycle Prepare(const World& world, const Memory& memory, MonoTime now, const Policy& policy) {
  Cycle cycle{.world = world, .policy = policy, .now = now, .memory = {.drains = memory.drains}};
  cycle.memory.needs = memory.needs;
  cycle.dimensions = Dimensions(world);
  for (const model::Machine& machine : world.machines) {
    const auto known = memory.machines.find(machine.id);
    const MachineMemory old = known == memory.machines.end() ? MachineMemory{} : known->second;
    LearnDrain(machine, old, cycle);
    const MachineMemory fresh = Refresh(machine, old, now);
    MachineRow row{.machine = &machine, .allocatable = Dense(cycle, machine.EffectiveAllocatable())};
    row.attributed = fresh.attribution.has_value();
    row.attribution = fresh.attribution.value_or(model::Attribution{});
    row.keep = row.attribution;
    row.pledge = fresh.pledge;
    row.instead = fresh.instead;
    cycle.memory.machines[machine.id] = fresh;
    cycle.machines.push_back(std::move(row));
  }
  SetSizes(cycle);
  FillLists(cycle);
  for (const auto& [cluster, state] : world.clusters) cycle.reclaims_left[cluster] = state.reclaims_allowed;
  return cycle;
}

ClusterState StateOf(const Cycle& cycle, const std::string& cluster) {
  const auto it = cycle.world.clusters.find(cluster);
  ClusterState state =
      it == cycle.world.clusters.end() ? ClusterState{.session = false, .gate_open = false} : it->second;
  if (MUTANT("rule.pause")) state.paused = false;
  return state;
}

// [A.units]
Amounts Dense(const Cycle& cycle, const model::Resources& resources) {
  Amounts amounts;
  for (const std::string& name : cycle.dimensions) amounts.push_back(resources.Get(name));
  return amounts;
}

model::Resources Sparse(const Cycle& cycle, const Amounts& amounts) {
  model::Resources resources;
  for (size_t d = 0; d < amounts.size(); ++d) resources.Set(cycle.dimensions[d], amounts[d]);
  return resources;
}

bool IsZero(const Amounts& amounts) {
  return std::ranges::all_of(amounts, [](int64_t amount) { return amount == 0; });
}

bool Covers(const Amounts& supply, const Amounts& demand) {
  for (size_t d = 0; d < demand.size(); ++d) {
    if (supply[d] < demand[d]) return false;
  }
  return true;
}

// [A.saturate]
void SubtractSaturating(Amounts& from, const Amounts& amount) {
  for (size_t d = 0; d < from.size(); ++d) from[d] -= std::min(from[d], amount[d]);
}

// [M.useful]
bool IsUseful(const Amounts& allocatable, const Amounts& shortage) {
  for (size_t d = 0; d < shortage.size(); ++d) {
    if (shortage[d] > 0 && allocatable[d] > 0) return true;
  }
  return false;
}

}  // namespace muster::engine::reference
