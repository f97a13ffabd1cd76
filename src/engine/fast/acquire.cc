// What a need takes of free machines: those pledged to it, then the best cover of the Idle pool, then of the
// Speculative.
#include <algorithm>
#include <tuple>

#include "base/probe.h"
#include "engine/fast/planner.h"

namespace muster::engine::fast {
namespace {

using model::MachineState;

bool TiesInPool(const Inventory& inventory, GroupId a, GroupId b) {
  const Catalogue& catalogue = inventory.catalogue();
  const ClassId x = inventory.group(a).cls;
  const ClassId y = inventory.group(b).cls;
  return catalogue.cls(x).price == catalogue.cls(y).price && catalogue.shape_of(x).size == catalogue.shape_of(y).size;
}

Cost CostOf(const Class& c, MachineState state, model::PenaltyBucket bucket) {
  if (state == MachineState::kIdle || c.probability == 0) return {.micros = c.price};
  const model::Penalty penalty = model::UpperBound(bucket);
  if (penalty.pinned) return {.pinned = true, .micros = c.price};
  return {.micros = c.price + static_cast<int64_t>(Wide{c.probability} * penalty.finite.micros / 1'000'000)};
}

}  // namespace

bool Planner::IsPledgedTo(NeedId n, GroupId g) const {
  if (sight_.Remaining(g) == 0 || sight_.pledge_ended(g) || !fit(n).Has(inventory_.group(g).cls)) return false;
  return sight_.held_for(g) == kNoId || sight_.held_for(g) == n;
}

void Planner::PledgedLane(NeedId n, uint32_t domain, std::vector<GroupId>& lane) const {
  lane.clear();
  for (const GroupId g : inventory_.key(need(n).key).idle) {
    if (!IsPledgedTo(n, g)) continue;
    if (domain == kNoId || DomainOf(fit(n), inventory_.group(g).cls) == domain) lane.push_back(g);
  }
  std::ranges::sort(lane, {}, [&](GroupId g) {
    const ClassId c = inventory_.group(g).cls;
    return std::tuple(catalogue().cls(c).price, catalogue().shape_of(c).size, g);
  });
}

void Planner::PlanAcquisition(NeedId n, Amounts& shortage, uint32_t domain, Acquisition& plan) {
  if (!inventory_.key(need(n).key).idle.empty()) {
    PledgedLane(n, domain, lane_);
    TakeLane(lane_, TiesInPool, shortage, plan.takes, &plan.machines);
    if (IsZero(shortage, dims())) return;
  }
  const Amounts deficit = shortage;
  Pool idle_scratch;
  const Pool& idle = PoolFor(n, MachineState::kIdle, domain, idle_scratch);
  const CoverPool idle_view = View(idle, true);
  Counts of_idle = BestCover(idle_view, deficit, dims());
  for (const auto& [k, count] : of_idle) Subtract(shortage, *idle.kinds[k].each, count, dims());
  if (IsZero(shortage, dims())) {
    NamePicks(idle, of_idle, plan);
    return;
  }
  Pool speculative_scratch;
  const Pool& speculative = PoolFor(n, MachineState::kSpeculative, domain, speculative_scratch);
  const CoverPool speculative_view = View(speculative, false);
  Counts of_speculative = BestCover(speculative_view, shortage, dims());
  PruneTogether(idle_view, of_idle, speculative_view, of_speculative, deficit, dims());
  shortage = deficit;
  for (const auto& [k, count] : of_idle) Subtract(shortage, *idle.kinds[k].each, count, dims());
  for (const auto& [k, count] : of_speculative) Subtract(shortage, *speculative.kinds[k].each, count, dims());
  NamePicks(idle, of_idle, plan);
  NamePicks(speculative, of_speculative, plan);
}

void Planner::Offerers(NeedId n, MachineState state, uint32_t domain, std::vector<Offerer>& out) const {
  const Fit& classes = fit(n);
  const model::PenaltyBucket bucket = demand_.info(need(n).profile).profile.interruption();
  const auto add = [&](GroupId g, ClassId c, bool reserved) {
    Cost cost = CostOf(catalogue().cls(c), state, bucket);
    cost.reserved = reserved;
    out.push_back({.group = g, .cost = cost, .size = catalogue().shape_of(c).size});
  };
  const auto consider = [&](ClassId c) {
    for (const GroupId g : catalogue().cls(c).free) {
      const Group& group = inventory_.group(g);
      if (group.state != state || group.pledge != kNoId || group.size == 0) continue;
      add(g, c, false);
    }
  };
  out.clear();
  for (const ClassId c : domain == kNoId ? classes.classes : classes.in_domain[domain]) consider(c);
  if (state != MachineState::kIdle) return;
  // Pledged to others: a last resort, or free like any other where the pledge has just ended.
  for (const GroupId g : inventory_.pledged_idle()) {
    const Group& group = inventory_.group(g);
    if (group.size == 0 || !classes.Has(group.cls)) continue;
    if (domain != kNoId && DomainOf(classes, group.cls) != domain) continue;
    if (sight_.pledge_ended(g)) {
      add(g, group.cls, false);
    } else if (group.pledge != need(n).key && !MUTANT("fast.missed_pledge") &&
               (sight_.held_for(g) == kNoId || sight_.held_for(g) == n)) {
      add(g, group.cls, true);
    }
  }
}

void Planner::FillPool(std::vector<Offerer>& offerers, Pool& pool) const {
  const auto shape = [&](const Offerer& o) { return catalogue().cls(inventory_.group(o.group).cls).shape; };
  std::ranges::sort(offerers, [&](const Offerer& a, const Offerer& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    if (a.size != b.size && !MUTANT("fast.pool_order")) return a.size < b.size;
    if (shape(a) != shape(b)) return shape(a) < shape(b);
    return a.group < b.group;
  });
  pool.kinds.clear();
  pool.mixed = false;
  for (const Offerer& o : offerers) {
    if (!pool.kinds.empty()) {
      PoolKind& last = pool.kinds.back();
      const bool ties = last.cost == o.cost && last.size == o.size;
      if (ties && last.shape == shape(o)) {
        last.groups.push_back(o.group);
        continue;
      }
      pool.mixed = pool.mixed || ties;
    }
    const ShapeId s = shape(o);
    pool.kinds.push_back({.shape = s,
                          .each = &catalogue().each(inventory_.group(o.group).cls),
                          .cost = o.cost,
                          .size = o.size,
                          .available = 0,
                          .groups = {o.group}});
  }
}

// The pool with what is left of it now. Without pledges around it is kept from need to need and cycle to cycle.
const Planner::Pool& Planner::PoolFor(NeedId n, MachineState state, uint32_t domain, Pool& scratch) {
  Pool* pool = &scratch;
  const bool pledges = state == MachineState::kIdle && !inventory_.pledged_idle().empty();
  if (domain != kNoId || pledges) {
    Offerers(n, state, domain, offerers_);
    FillPool(offerers_, scratch);
  } else {
    const auto bucket = state == MachineState::kIdle
                            ? uint64_t{0}
                            : uint64_t{1} + static_cast<uint64_t>(demand_.info(need(n).profile).profile.interruption());
    CachedPool& cached = pools_[uint64_t{need(n).fit} << 8 | bucket];
    if (cached.version != inventory_.supply_version()) {
      cached.version = inventory_.supply_version();
      Offerers(n, state, kNoId, offerers_);
      FillPool(offerers_, cached.pool);
    }
    pool = &cached.pool;
  }
  for (PoolKind& kind : pool->kinds) {
    kind.each = &catalogue().each(inventory_.group(kind.groups[0]).cls);  // shapes move in memory when one comes
    kind.available = 0;
    for (const GroupId g : kind.groups) kind.available += sight_.Remaining(g);
  }
  FillStretches(*pool);
  return *pool;
}

void Planner::FillStretches(Pool& pool) {
  pool.stretches.clear();
  int64_t position = 0;
  for (uint32_t k = 0; k < pool.kinds.size();) {
    uint32_t end = k + 1;
    while (pool.mixed && end < pool.kinds.size() && pool.kinds[end].cost == pool.kinds[k].cost &&
           pool.kinds[end].size == pool.kinds[k].size) {
      ++end;
    }
    if (end == k + 1) {
      pool.stretches.push_back({.kind = k, .ordinal = 0, .position = position, .count = pool.kinds[k].available});
      position += pool.kinds[k].available;
      k = end;
      continue;
    }
    merge_.Clear();
    std::vector<uint32_t> kind_of;
    std::vector<int64_t> ordinals(end - k, 0);
    for (uint32_t t = k; t < end; ++t) {
      for (const GroupId g : pool.kinds[t].groups) {
        merge_.Add(g);
        kind_of.push_back(t);
      }
    }
    for (; !merge_.empty(); merge_.Step(), ++position) {
      const uint32_t kind = kind_of[merge_.source()];
      if (!pool.stretches.empty() && pool.stretches.back().kind == kind) {
        ++pool.stretches.back().count;
      } else {
        pool.stretches.push_back({.kind = kind, .ordinal = ordinals[kind - k], .position = position, .count = 1});
      }
      ++ordinals[kind - k];
    }
    k = end;
  }
}

CoverPool Planner::View(const Pool& pool, bool idle) {
  return {.kinds = pool.kinds,
          .stretches = pool.stretches,
          .mixed = pool.mixed,
          .idle = idle,
          .labels = [this, &pool](uint32_t kind, int64_t count) {
            std::vector<MachineId> machines;
            NameKind(pool.kinds[kind], count, machines, nullptr);
            std::vector<uint64_t> labels;
            for (const MachineId m : machines) labels.push_back(inventory_.label(m));
            return labels;
          }};
}

void Planner::NameKind(const PoolKind& kind, int64_t count, std::vector<MachineId>& names, std::vector<Take>* takes) {
  if (kind.groups.size() == 1) {
    const GroupId g = kind.groups[0];
    IdSet::Cursor cursor = sight_.FirstUnclaimed(g);
    for (int64_t i = 0; i < count; ++i) names.push_back(sight_.Next(g, cursor));
    if (takes != nullptr) takes->push_back({.group = g, .count = static_cast<uint32_t>(count)});
    return;
  }
  if (count == 1) {  // the first machine of all: no need for a heap
    MachineId best = kNoMachine;
    GroupId of = kNoId;
    for (const GroupId g : kind.groups) {
      if (sight_.Remaining(g) == 0) continue;
      IdSet::Cursor cursor = sight_.FirstUnclaimed(g);
      const MachineId m = sight_.Next(g, cursor);
      if (best != kNoMachine && inventory_.label(m) > inventory_.label(best)) continue;
      best = m;
      of = g;
    }
    names.push_back(best);
    if (takes != nullptr) takes->push_back({.group = of, .count = 1});
    return;
  }
  merge_.Clear();
  for (const GroupId g : kind.groups) merge_.Add(g);
  const size_t first = takes == nullptr ? 0 : takes->size();
  if (takes != nullptr) {
    for (const GroupId g : kind.groups) takes->push_back({.group = g, .count = 0});
  }
  for (int64_t i = 0; i < count; ++i) {
    names.push_back(merge_.machine());
    if (takes != nullptr) ++(*takes)[first + merge_.source()].count;
    merge_.Step();
  }
  if (takes != nullptr) std::erase_if(*takes, [](const Take& take) { return take.count == 0; });
}

void Planner::NamePicks(const Pool& pool, const Counts& counts, Acquisition& plan) {
  for (size_t i = 0; i < counts.size();) {
    const size_t first = plan.machines.size();
    const PoolKind& kind = pool.kinds[counts[i].first];
    size_t end = i;
    for (; end < counts.size(); ++end) {
      const PoolKind& next = pool.kinds[counts[end].first];
      if (next.cost != kind.cost || next.size != kind.size) break;
      NameKind(next, counts[end].second, plan.machines, &plan.takes);
    }
    if (end > i + 1) {  // kinds that tie go by id
      std::ranges::sort(plan.machines.begin() + static_cast<ptrdiff_t>(first), plan.machines.end(), {},
                        [&](MachineId m) { return inventory_.label(m); });
    }
    i = end;
  }
}

}  // namespace muster::engine::fast
