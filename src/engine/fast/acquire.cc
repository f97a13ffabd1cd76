// What a need takes of free machines: those pledged to it, then the best cover of the Idle pool, then of the
// Speculative.
#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "base/probe.h"
#include "engine/fast/planner.h"

namespace muster::engine::fast {
namespace {

using model::MachineState;

Cost CostOf(const Class& c, model::PenaltyBucket bucket) {
  if (c.probability == 0) return {.micros = c.price};
  const model::Penalty penalty = model::UpperBound(bucket);
  if (penalty.pinned) return {.pinned = true, .micros = c.price};
  return {.micros = c.price + static_cast<int64_t>(Wide{c.probability} * penalty.finite.micros / 1'000'000)};
}

// Pool order; kinds that tie in it lie side by side by their shape.
bool KindLess(const PoolKind& a, const PoolKind& b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  if (a.size != b.size && !MUTANT("fast.pool_order")) return a.size < b.size;
  return a.shape < b.shape;
}

bool TieInPool(const PoolKind& a, const PoolKind& b) { return a.cost == b.cost && a.size == b.size; }

}  // namespace

bool Planner::IsPledgedTo(NeedId n, GroupId g) const {
  if (view_.Remaining(g) == 0 || view_.pledge_ended(g) || !fit(n).Has(inventory_.group(g).cls)) return false;
  return view_.held_for(g) == kNoId || view_.held_for(g) == n;
}

Cost Planner::CostTo(NeedId n, ClassId c) const { return CostOf(catalogue().cls(c), BucketOf(n)); }

model::PenaltyBucket Planner::BucketOf(NeedId n) const { return demand_.info(need(n).profile).profile.interruption(); }

void Planner::TakePledged(NeedId n, DomainId domain, Amounts& shortage, Acquisition& plan) {
  PledgedLane(n, domain, offerers_);
  for (size_t i = 0; i < offerers_.size() && !IsZero(shortage, dims());) {
    lane_.clear();
    const Offerer& first = offerers_[i];
    for (; i < offerers_.size() && offerers_[i].cost == first.cost && offerers_[i].size == first.size; ++i) {
      lane_.push_back(offerers_[i].group);
    }
    TakeTied(lane_, shortage, plan.takes, &plan.machines);
  }
}

void Planner::PlanAcquisition(NeedId n, Amounts& shortage, DomainId domain, Acquisition& plan) {
  if (inventory_.key_state(need(n).key).has_pledges) {
    TakePledged(n, domain, shortage, plan);
    if (IsZero(shortage, dims())) return;
  }
  const Amounts deficit = shortage;
  Pool idle_scratch;
  Pool& idle = PoolFor(n, kIdlePool, domain, deficit, idle_scratch);
  // What most needs come to.
  if (const auto one = CoverOfOneKind(idle.kinds, idle.mixed, true, deficit, dims()); one && one->second > 0) {
    const auto& [kind, count] = *one;
    Subtract(shortage, *idle.kinds[kind].each, count, dims());
    if (IsZero(shortage, dims())) return NameKind(idle.kinds[kind], count, plan.machines, &plan.takes);
    shortage = deficit;
  }
  CoverOfPools(n, domain, idle, shortage, plan);
}

// Each pool covers what it can of what the pools before it left; then all are pruned together.
void Planner::CoverOfPools(NeedId n, DomainId domain, Pool& idle, Amounts& shortage, Acquisition& plan) {
  const Amounts deficit = shortage;
  std::array<Pool, kPools> scratch;
  std::array<Pool*, kPools> pools{};
  std::pmr::vector<PoolCover> covers(&scratch_);
  covers.reserve(kPools);
  for (const PoolId pool : PoolsOf(n)) {
    pools[covers.size()] = pool == kIdlePool ? &idle : &PoolFor(n, pool, domain, shortage, scratch[covers.size()]);
    Pool& here = *pools[covers.size()];
    PoolCover& cover = covers.emplace_back(
        PoolCover{.pool = View(here, StateOf(pool) == MachineState::kIdle), .counts = Counts(&scratch_)});
    if (!here.kinds.empty()) cover.counts = BestCover(cover.pool, shortage, dims());
    for (const auto& [k, count] : cover.counts) Subtract(shortage, *here.kinds[k].each, count, dims());
    if (IsZero(shortage, dims())) break;
  }
  PruneTogether(covers, deficit, dims());
  shortage = deficit;
  for (const size_t i : {kIdlePool, kInfiniteIdlePool, kSpeculativePool, kInfiniteSpeculativePool}) {
    if (i >= covers.size()) continue;
    for (const auto& [k, count] : covers[i].counts) Subtract(shortage, *pools[i]->kinds[k].each, count, dims());
    NamePicks(*pools[i], covers[i].counts, plan);
  }
}

void Planner::FreeOfferers(NeedId n, MachineState state, DomainId domain, std::vector<Offerer>& out) const {
  const Fit& classes = fit(n);
  for (const ClassId c : domain == kNoId ? classes.classes : classes.in_domain[domain]) {
    if (state == MachineState::kSpeculative && catalogue().cls(c).out_of_stock) continue;
    for (const GroupId g : catalogue().cls(c).free) {
      const Group& group = inventory_.group(g);
      if (group.state != state || group.pledge != kNoId || group.hold != HoldSets::kNone || group.size == 0) continue;
      out.push_back({.group = g, .cost = CostTo(n, c), .size = catalogue().shape_of(c).size});
    }
  }
}

bool Planner::MayUse(NeedId n, const Group& group, DomainId domain) const {
  if (group.size == 0 || !fit(n).Has(group.cls)) return false;
  return domain == kNoId || DomainOf(fit(n), group.cls) == domain;
}

// Machines that are on hold for other clusters.
void Planner::HeldOfferers(NeedId n, MachineState state, DomainId domain, std::vector<Offerer>& out) const {
  for (const GroupId g : inventory_.held_free()) {
    const Group& group = inventory_.group(g);
    if (group.state != state || group.pledge != kNoId || !MayUse(n, group, domain)) continue;
    if (state == MachineState::kSpeculative && catalogue().cls(group.cls).out_of_stock) continue;
    if (inventory_.IsOnHold(group, need(n).cluster)) continue;
    out.push_back({.group = g, .cost = CostTo(n, group.cls), .size = catalogue().shape_of(group.cls).size});
  }
}

// Idle first, then Speculative, each in pool order, as far as groups tell.
void Planner::OnHold(NeedId n, DomainId domain, std::vector<Offerer>& out) const {
  out.clear();
  for (const GroupId g : inventory_.held_free()) {
    const Group& group = inventory_.group(g);
    if (!MayUse(n, group, domain) || !inventory_.IsOnHold(group, need(n).cluster)) continue;
    if (group.state == MachineState::kSpeculative && catalogue().cls(group.cls).out_of_stock) continue;
    const bool pledged = group.pledge != kNoId && !view_.pledge_ended(g);
    if (pledged && view_.held_for(g) != kNoId && view_.held_for(g) != n) continue;
    Offerer offerer{.group = g, .cost = CostTo(n, group.cls), .size = catalogue().shape_of(group.cls).size};
    offerer.cost.reserved = pledged && group.pledge != need(n).key;
    out.push_back(offerer);
  }
  std::ranges::sort(out, {}, [&](const Offerer& o) {
    return std::tuple(inventory_.group(o.group).state != MachineState::kIdle, o.cost, o.size, o.group);
  });
}

// Idle machines pledged to others: a last resort, or free like any other where the pledge has just ended.
void Planner::PledgedOfferers(NeedId n, DomainId domain, std::vector<Offerer>& out) const {
  for (const GroupId g : inventory_.pledged_idle()) {
    const Group& group = inventory_.group(g);
    if (!MayUse(n, group, domain) || inventory_.IsOnHold(group, need(n).cluster)) continue;
    const bool ended = view_.pledge_ended(g);
    if (!ended && (group.pledge == need(n).key || MUTANT("fast.missed_pledge"))) continue;
    if (!ended && view_.held_for(g) != kNoId && view_.held_for(g) != n) continue;
    Offerer offerer{.group = g, .cost = CostTo(n, group.cls), .size = catalogue().shape_of(group.cls).size};
    offerer.cost.reserved = !ended;
    out.push_back(offerer);
  }
}

void Planner::Offerers(NeedId n, MachineState state, DomainId domain, std::vector<Offerer>& out) const {
  out.clear();
  FreeOfferers(n, state, domain, out);
  HeldOfferers(n, state, domain, out);
  if (state == MachineState::kIdle) PledgedOfferers(n, domain, out);
}

PoolKind Planner::KindOf(const Offerer& offerer) const {
  return {
      .shape = catalogue().cls(inventory_.group(offerer.group).cls).shape, .cost = offerer.cost, .size = offerer.size};
}

void Planner::FillPool(std::vector<Offerer>& offerers, Pool& pool) const {
  std::ranges::sort(offerers, [&](const Offerer& a, const Offerer& b) {
    const PoolKind x = KindOf(a);
    const PoolKind y = KindOf(b);
    return KindLess(x, y) || (!KindLess(y, x) && a.group < b.group);
  });
  pool.kinds.clear();
  for (const Offerer& offerer : offerers) {
    const PoolKind kind = KindOf(offerer);
    if (pool.kinds.empty() || KindLess(pool.kinds.back(), kind)) {
      if (pool.tied.size() == pool.kinds.size()) pool.tied.push_back(std::make_unique<Tied>());
      Tied& tied = *pool.tied[pool.kinds.size()];
      tied.Clear();
      pool.kinds.push_back(kind);
      pool.kinds.back().tied = &tied;
    }
    pool.kinds.back().tied->groups.push_back(offerer.group);
  }
  pool.mixed = std::ranges::adjacent_find(pool.kinds, TieInPool) != pool.kinds.end();
}

// The pool without what is pledged or on hold for somebody: kept from need to need and cycle to cycle.
Planner::Pool& Planner::FreePool(NeedId n, PoolId of, DomainId domain) {
  if (sweeps_ != catalogue().sweeps()) pools_.clear();
  sweeps_ = catalogue().sweeps();
  KeptPools& kept = pools_[uint64_t{need(n).fit.value()} << 8 | uint64_t{of} << 6 | static_cast<uint64_t>(BucketOf(n))];
  const size_t classes = fit(n).classes.size();
  if (kept.version != inventory_.supply_version() || (kept.classes != classes && !MUTANT("fast.stale_pool_domains"))) {
    kept.version = inventory_.supply_version();
    kept.classes = classes;
    ++kept.filling;
  }
  const size_t at = domain == kNoId ? 0 : domain.value() + size_t{1};
  if (kept.pools.size() <= at) kept.pools.resize(at + 1);
  if (kept.pools[at] == nullptr) kept.pools[at] = std::make_unique<Pool>();
  Pool& pool = *kept.pools[at];
  if (pool.filling != kept.filling) {
    pool.filling = kept.filling;
    offerers_.clear();
    FreeOfferers(n, StateOf(of), domain, offerers_);
    std::erase_if(offerers_, [&](const Offerer& o) { return o.cost.pinned != IsInfinite(of); });
    FillPool(offerers_, pool);
  }
  return pool;
}

// The pool with what is left of it now. Of a kind no more is counted than the deficit can use, and one.
Planner::Pool& Planner::PoolFor(NeedId n, PoolId of, DomainId domain, const Amounts& deficit, Pool& scratch) {
  Pool* pool = &FreePool(n, of, domain);
  offerers_.clear();
  HeldOfferers(n, StateOf(of), domain, offerers_);
  if (StateOf(of) == MachineState::kIdle) PledgedOfferers(n, domain, offerers_);
  std::erase_if(offerers_, [&](const Offerer& o) { return o.cost.pinned != IsInfinite(of); });
  if (!offerers_.empty()) {
    scratch.kinds = pool->kinds;
    for (const Offerer& offerer : offerers_) {
      const PoolKind kind = KindOf(offerer);
      auto at = std::ranges::lower_bound(scratch.kinds, kind, KindLess);
      if (at == scratch.kinds.end() || KindLess(kind, *at)) at = scratch.kinds.insert(at, kind);
      at->more.push_back(offerer.group);
    }
    scratch.mixed = std::ranges::adjacent_find(scratch.kinds, TieInPool) != scratch.kinds.end();
    pool = &scratch;
  }
  for (PoolKind& kind : pool->kinds) {
    kind.each = &catalogue().shape(kind.shape).each;  // shapes move in memory when one comes
    const int64_t enough =
        pool->mixed ? std::numeric_limits<int64_t>::max() : UsefulCount(*kind.each, deficit, dims()) + 1;
    kind.available = kind.tied == nullptr ? 0 : kind.tied->Count(view_, enough);
    for (const GroupId g : kind.more) kind.available += view_.Remaining(g);
  }
  return *pool;
}

void Planner::FillStretches(Pool& pool) {
  pool.stretches.clear();
  int64_t position = 0;
  for (uint32_t k = 0; k < pool.kinds.size();) {
    uint32_t end = k + 1;
    while (pool.mixed && end < pool.kinds.size() && TieInPool(pool.kinds[k], pool.kinds[end])) ++end;
    if (end == k + 1) {
      pool.stretches.push_back({.kind = k, .ordinal = 0, .position = position, .count = pool.kinds[k].available});
      position += pool.kinds[k].available;
      k = end;
      continue;
    }
    merge_.Clear();
    std::vector<uint32_t> kind_of;
    std::vector<int64_t> ordinals(end - k, 0);
    const auto add = [&](uint32_t kind, std::span<const GroupId> groups) {
      for (const GroupId g : groups) {
        merge_.Add(g);
        kind_of.push_back(kind);
      }
    };
    for (uint32_t t = k; t < end; ++t) {
      if (pool.kinds[t].tied != nullptr) add(t, pool.kinds[t].tied->groups);
      add(t, pool.kinds[t].more);
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

CoverPool Planner::View(Pool& pool, bool idle) {
  FillStretches(pool);
  return {.kinds = pool.kinds,
          .stretches = pool.stretches,
          .mixed = pool.mixed,
          .idle = idle,
          .labels =
              [this, &pool](uint32_t kind, int64_t count) {
                std::vector<MachineId> machines;
                NameKind(pool.kinds[kind], count, machines, nullptr);
                std::vector<uint64_t> labels;
                for (const MachineId m : machines) labels.push_back(inventory_.label(m));
                return labels;
              },
          .memory = &scratch_};
}

void Planner::NameKind(const PoolKind& kind, int64_t count, std::vector<MachineId>& names, std::vector<Take>* takes) {
  if (kind.more.empty() && (count == 1 || kind.tied->groups.size() == 1)) {
    const GroupId g = kind.tied->groups.size() == 1 ? kind.tied->groups[0] : kind.tied->First(view_);
    IdSet::Cursor cursor = view_.FirstUnclaimed(g);
    for (int64_t i = 0; i < count; ++i) names.push_back(view_.Next(g, cursor));
    if (takes != nullptr) takes->push_back({.group = g, .count = static_cast<uint32_t>(count)});
    return;
  }
  const size_t first = takes == nullptr ? 0 : takes->size();
  walk_.Begin(kind.tied, kind.more);
  for (int64_t i = 0; i < count; ++i, walk_.Step()) {
    names.push_back(walk_.machine());
    if (takes == nullptr) continue;
    while (takes->size() <= first + walk_.source()) takes->push_back({.group = walk_.groups()[takes->size() - first]});
    ++(*takes)[first + walk_.source()].count;
  }
  walk_.End();
  if (takes != nullptr) std::erase_if(*takes, [](const Take& take) { return take.count == 0; });
}

void Planner::NamePicks(const Pool& pool, const Counts& counts, Acquisition& plan) {
  for (size_t i = 0; i < counts.size();) {
    const size_t first = plan.machines.size();
    const PoolKind& kind = pool.kinds[counts[i].first];
    size_t end = i;
    for (; end < counts.size(); ++end) {
      const PoolKind& next = pool.kinds[counts[end].first];
      if (!TieInPool(kind, next)) break;
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
