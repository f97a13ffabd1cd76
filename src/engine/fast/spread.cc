// Needs that spread over domains: one pick at a time, from the cheapest domain that the skew allows.
#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "base/probe.h"
#include "engine/fast/lanes.h"
#include "engine/fast/planner.h"

namespace muster::engine::fast {

using model::MachineState;

SpreadCounts::SpreadCounts(const Fit& fit, const Filter& filter, std::pmr::memory_resource* memory)
    : fit_(fit), skew_(memory), count_(memory) {
  for (size_t c = 0; c < filter.spread.size(); ++c) {
    skew_.push_back(std::max(1, filter.spread[c].max_skew));
    count_.emplace_back(fit.values[c], 0);
  }
}

int64_t SpreadCounts::Min(size_t c) const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t v = 0; v < count_[c].size(); ++v) {
    if (fit_.value_lives[c][v] || MUTANT("fast.dead_values")) least = std::min(least, count_[c][v]);
  }
  return least;
}

bool SpreadCounts::Allows(DomainId domain) const {
  for (size_t c = 0; c < count_.size(); ++c) {
    if (count_[c][fit_.value_of[c][domain]] > Min(c) + skew_[c] - 1) return false;
  }
  return true;
}

void SpreadCounts::Add(DomainId domain, int64_t count) {
  for (size_t c = 0; c < count_.size(); ++c) count_[c][fit_.value_of[c][domain]] += count;
}

bool SpreadCounts::Remove(DomainId domain) {
  for (size_t c = 0; c < count_.size(); ++c) {
    const int64_t before = Min(c);
    --count_[c][fit_.value_of[c][domain]];
    const int64_t after = Min(c);
    bool holds = true;
    for (size_t v = 0; after != before && v < count_[c].size(); ++v) {
      holds = holds && (!fit_.value_lives[c][v] || count_[c][v] <= after + skew_[c]);
    }
    ++count_[c][fit_.value_of[c][domain]];
    if (!holds) return false;
  }
  Add(domain, -1);
  return true;
}

// Groups of one shape that tie.
struct Planner::SpreadKind {
  const Amounts* each = nullptr;
  Cost cost;
  Wide size = 0;
  uint32_t tie = 0;
  int64_t left = 0;
  Tied* tied = nullptr;
  std::span<const GroupId> more;
  TiedWalk* walk = nullptr;  // once a machine was asked for
};

// The candidates of one domain, in lane order.
struct Planner::SpreadLane {
  DomainId domain = kNoId;
  std::pmr::vector<SpreadKind> kinds;
  size_t at = 0;  // kinds before it are used up or of no use any more
  Pool scratch;   // what `more` is of
};

struct Planner::SpreadPick {
  MachineId machine = kNoMachine;
  GroupId group = kNoId;
  DomainId domain = kNoId;
  Cost cost;
  Wide size = 0;
};

Planner::SpreadLanes Planner::EmptyLanes(const Fit& fit) {
  SpreadLanes lanes(&scratch_);
  lanes.reserve(fit.domains.size());
  for (const DomainId d : fit.domains.ids()) {
    lanes.push_back({.domain = d, .kinds = std::pmr::vector<SpreadKind>(&scratch_)});
  }
  return lanes;
}

Planner::SpreadLanes Planner::MakeLanes(const Fit& fit, std::span<const Offerer> offerers,
                                        bool (*ties)(const Inventory&, const Offerer&, const Offerer&)) {
  SpreadLanes lanes = EmptyLanes(fit);
  uint32_t tie = 0;
  for (size_t i = 0; i < offerers.size(); ++i) {
    const Offerer& o = offerers[i];
    if (i > 0 && !ties(inventory_, offerers[i - 1], o)) ++tie;
    SpreadKind kind{
        .each = &each(o.group), .cost = o.cost, .size = o.size, .tie = tie, .left = view_.Remaining(o.group)};
    kind.more = {&o.group, 1};
    if (kind.left > 0) lanes[DomainOf(fit, inventory_.group(o.group).cls).value()].kinds.push_back(kind);
  }
  return lanes;
}

Planner::SpreadLanes Planner::PoolLanes(NeedId n, PoolId of, const Amounts& deficit) {
  SpreadLanes lanes = EmptyLanes(fit(n));
  for (SpreadLane& lane : lanes) {
    uint32_t tie = 0;
    for (const PoolKind& kind : PoolFor(n, of, lane.domain, deficit, lane.scratch).kinds) {
      if (!lane.kinds.empty() && (lane.kinds.back().cost != kind.cost || lane.kinds.back().size != kind.size)) ++tie;
      lane.kinds.push_back({.each = kind.each,
                            .cost = kind.cost,
                            .size = kind.size,
                            .tie = tie,
                            .left = kind.available,
                            .tied = kind.tied,
                            .more = kind.more});
    }
  }
  return lanes;
}

TiedWalk& Planner::WalkOf(SpreadKind& kind) {
  if (kind.walk != nullptr) return *kind.walk;
  if (walks_used_ == walks_.size()) walks_.emplace_back(view_);
  kind.walk = &walks_[walks_used_++];
  kind.walk->Begin(kind.tied, kind.more);
  return *kind.walk;
}

void Planner::EndWalks() {
  for (; walks_used_ > 0; --walks_used_) walks_[walks_used_ - 1].End();
}

Planner::SpreadPicks Planner::TakeSpread(SpreadLanes& lanes, Amounts& shortage, SpreadCounts& counts, size_t most) {
  SpreadPicks picks(&scratch_);
  const auto useful = [&](const SpreadKind& kind) { return kind.left > 0 && IsUseful(*kind.each, shortage, dims()); };
  while (picks.size() < most) {
    SpreadLane* best = nullptr;
    for (SpreadLane& lane : lanes) {
      while (lane.at < lane.kinds.size() && !useful(lane.kinds[lane.at])) ++lane.at;
      if (lane.at == lane.kinds.size() || !counts.Allows(lane.domain)) continue;
      if (best == nullptr || lane.kinds[lane.at].cost < best->kinds[best->at].cost) best = &lane;
    }
    if (best == nullptr) break;
    SpreadKind* head = nullptr;
    for (size_t i = best->at; i < best->kinds.size() && best->kinds[i].tie == best->kinds[best->at].tie; ++i) {
      SpreadKind& kind = best->kinds[i];
      if (!useful(kind)) continue;
      const auto label = [&](SpreadKind& of) { return inventory_.label(WalkOf(of).machine()); };
      if (head == nullptr || label(kind) < label(*head)) head = &kind;
    }
    TiedWalk& walk = WalkOf(*head);
    picks.push_back({.machine = walk.machine(),
                     .group = walk.group(),
                     .domain = best->domain,
                     .cost = head->cost,
                     .size = head->size});
    counts.Add(best->domain, 1);
    Subtract(shortage, *head->each, 1, dims());
    --head->left;
    walk.Step();
  }
  return picks;
}

void Planner::CountTakes(const Fit& fit, std::span<const Take> takes, SpreadCounts& counts) const {
  for (const Take& take : takes) counts.Add(DomainOf(fit, inventory_.group(take.group).cls), take.count);
}

namespace {

// Picks of one group are its first machines, whatever the order they were picked in.
template <class Picks>
void AddTakes(const Picks& picks, std::vector<Take>& takes) {
  for (const auto& pick : picks) {
    const auto known = std::ranges::find(takes, pick.group, &Take::group);
    if (known != takes.end()) {
      ++known->count;
    } else {
      takes.push_back({.group = pick.group, .count = 1});
    }
  }
}

template <class Picks>
void AddPicks(const Picks& picks, Acquisition& acquired) {
  for (const auto& pick : picks) acquired.machines.push_back(pick.machine);
  AddTakes(picks, acquired.takes);
}

}  // namespace

// Beyond its own bound machines.
void Planner::CreditSpread(NeedId n, Plan& plan) {
  CreatingLane(n, kNoId, lane_);
  TakeLane(lane_, TiesInPrice, plan.shortage, plan.credits, nullptr);
  if (IsZero(plan.shortage, dims())) return;
  RestLane(n, kNoId, lane_);
  if (lane_.empty()) return;
  SpreadCounts counts(fit(n), catalogue().filter(fit(n).filter), &scratch_);
  CountTakes(fit(n), plan.credits, counts);
  offerers_.clear();
  for (const GroupId g : lane_) {
    offerers_.push_back({.group = g, .cost = {.micros = catalogue().cls(inventory_.group(g).cls).price}, .size = 0});
  }
  SpreadLanes lanes = MakeLanes(fit(n), offerers_, [](const Inventory& inventory, const Offerer& a, const Offerer& b) {
    return TiesInKeepOrder(inventory, a.group, b.group);
  });
  AddTakes(TakeSpread(lanes, plan.shortage, counts), plan.credits);
  EndWalks();
}

void Planner::AcquireSpread(NeedId n, Plan& plan) {
  Amounts& shortage = plan.shortage;
  SpreadCounts counts(fit(n), catalogue().filter(fit(n).filter), &scratch_);
  CountTakes(fit(n), plan.credits, counts);
  const auto ties = [](const Inventory&, const Offerer& a, const Offerer& b) {
    return a.cost == b.cost && a.size == b.size;
  };
  if (!inventory_.key(need(n).key).idle.empty()) {
    PledgedLane(n, kNoId, offerers_);
    SpreadLanes lanes = MakeLanes(fit(n), offerers_, ties);
    AddPicks(TakeSpread(lanes, shortage, counts), plan.acquired);
    EndWalks();
    if (IsZero(shortage, dims())) return;
  }
  const Amounts deficit = shortage;
  std::pmr::vector<SpreadLanes> pools(&scratch_);
  pools.reserve(kPools);
  for (const PoolId pool : PoolsOf(n)) pools.push_back(PoolLanes(n, pool, deficit));
  SpreadPicks picks(&scratch_);
  const auto take_from = [&](size_t pool, size_t most) {
    const SpreadPicks taken = TakeSpread(pools[pool], shortage, counts, most);
    picks.insert(picks.end(), taken.begin(), taken.end());
    return !taken.empty();
  };
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  for (bool added = true; added;) {
    added = take_from(kIdlePool, kAll);
    added = take_from(kSpeculativePool, kAll) || added;
    for (size_t pool = kInfiniteIdlePool; pool < pools.size() && !added; ++pool) added = take_from(pool, 1);
  }
  EndWalks();
  const SpreadPicks kept = PruneSpread(std::move(picks), deficit, counts);
  AddPicks(kept, plan.acquired);
  shortage = deficit;
  for (const SpreadPick& pick : kept) Subtract(shortage, each(pick.group), 1, dims());
}

// Drops what the rest makes redundant, dearest first, the later in pool order first; after each drop from the start, as
// the skew may have eased.
Planner::SpreadPicks Planner::PruneSpread(SpreadPicks picks, const Amounts& deficit, SpreadCounts& counts) {
  std::ranges::sort(picks, {}, [&](const SpreadPick& pick) {
    return std::tuple(pick.cost.pinned, inventory_.state(pick.machine) != MachineState::kIdle, pick.cost, pick.size,
                      inventory_.label(pick.machine));
  });
  Totals taken{};
  for (const SpreadPick& pick : picks) Add(taken, each(pick.group), 1, dims());
  std::pmr::vector<size_t> order(picks.size(), &scratch_);
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return picks[b].cost < picks[a].cost || (picks[a].cost == picks[b].cost && a > b);
  });
  std::pmr::vector<bool> dropped(picks.size(), false, &scratch_);
  for (size_t at = 0; at < order.size();) {
    const SpreadPick& pick = picks[order[at]];
    const bool redundant = !dropped[order[at]] && Redundant(taken, each(pick.group), deficit, 1, dims()) > 0;
    if (!redundant || !counts.Remove(pick.domain)) {
      ++at;
      continue;
    }
    dropped[order[at]] = true;
    Add(taken, each(pick.group), -1, dims());
    at = 0;
  }
  SpreadPicks kept(&scratch_);
  for (size_t i = 0; i < picks.size(); ++i) {
    if (!dropped[i]) kept.push_back(picks[i]);
  }
  return kept;
}

}  // namespace muster::engine::fast
