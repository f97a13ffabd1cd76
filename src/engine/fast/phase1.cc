// Phase 1: needs in order, each from what its cluster has and then from what is free.
#include <algorithm>
#include <limits>

#include "base/probe.h"
#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::MachineState;

Cycle::Cycle(Inventory& inventory, Demand& demand, const Policy& policy)
    : Tables(inventory, demand),
      policy_(policy),
      merge_(planners_.emplace_back(std::make_unique<Planner>(inventory, demand, policy, need_memory_))->view()),
      held_(planners_[0]->scratch()),
      offers_of_(planners_[0]->scratch()) {
  plans_.resize(1);
}

void Cycle::Run(MonoTime now, bool explain, bool counts_ages, Parallel& parallel) {
  Laps laps(parallel);
  counts_ages_ = counts_ages;
  counted_ += counts_ages ? 1 : 0;
  Begin(now, explain);
  laps.Ended("snapread");
  if (parallel.width() == 1 || policy_.phase1_retries == 0) {
    ServeInTurn();
  } else {
    CreditSideBySide(parallel);
    ServeBySpeculation(parallel);
  }
  laps.Ended("phase1");
  Phase2();
  laps.Ended("phase2");
  Reclaim();
  Release();
  laps.Ended("phase3");
  Finish();
  laps.Ended("emit");
}

void Cycle::Begin(MonoTime now, bool explain) {
  now_ = now;
  explain_ = explain;
  inventory_.BeginCycle(now);
  demand_.BeginCycle();
  RefreshPledges();
  PrepareFits();
  const auto& order = demand_.order();
  outcomes_.resize(order.size());
  progress_.assign(order.size(), Progress::kWaiting);
  served_.clear();
  short_.clear();
  surplus_.resize(inventory_.clusters());
  if (gangs_.size() < demand_.gangs()) gangs_.resize(demand_.gangs());
  claims_.Clear();
  for (auto& shelf : restamps_) shelf.clear();
  actions_.clear();
  ended_.clear();
  held_.clear();
  stats_ = {};
  reclaims_capped_ = 0;
  reclaims_left_.resize(inventory_.clusters());
  for (const ClusterId c : reclaims_left_.ids()) reclaims_left_[c] = inventory_.cluster(c).state.reclaims_allowed;
  age_before_.clear();
  if (explain) {
    for (const NeedRow* row : order) age_before_.Add(planners_[0]->MemoryOf(row->key).age_unmet);
  }
  for (auto& planner : planners_) planner->set_explain(explain);
}

void Cycle::RefreshPledges() {
  bool changed = false;
  for (const KeyId id : inventory_.pledged_keys()) {
    if (demand_.IsListed(id)) continue;
    const KeyId called = demand_.CurrentKeyOf(id);
    const KeyId pledge = called == id || MUTANT("fast.pledge_not_renamed") ? KeyId() : called;
    inventory_.key(id).ForEachPledged([&](GroupId g) {
      inventory_.ForEachMember(g, [&](MachineId m) {
        inventory_.SetPledge(m, pledge);
        changed = true;
      });
    });
  }
  if (changed) inventory_.Update();
}

// Fits learn about new classes here, so that planners may share them.
void Cycle::PrepareFits() {
  const auto prepare = [&](const NeedRow& row) {
    if (row.is_gang || row.spreads) {
      inventory_.catalogue().FitWithDomains(row.fit);
    } else {
      inventory_.catalogue().fit(row.fit);
    }
  };
  const std::tuple seen(catalogue().classes(), catalogue().live_version(), demand_.fits_version());
  if (seen != prepared_) {
    prepared_ = seen;
    for (const NeedRow* row : demand_.order()) prepare(*row);
    return;
  }
  for (const ClusterId c : demand_.normalised()) {
    for (const NeedRow& row : demand_.NeedsOf(c)) prepare(row);
  }
}

// A fleet at rest: the need takes of its own groups what it took last time, without opening them.
bool Cycle::Settle(NeedId n) {
  if (explain_ || !inventory_.Settle(demand_.keys()[n])) return false;
  progress_[n] = Progress::kSettled;
  return true;
}

void Cycle::ServeInTurn() {
  Plan& plan = plans_[0];
  for (const NeedId n : progress_.ids()) {
    if (!Settle(n)) {
      planners_[0]->Whole(n, plan);
      CommitCredit(n, plan, 0);
      CommitAcquisition(n, plan);
    }
    EndTurn(n);
  }
  stats_.accepted_claims = stats_.claimed;
}

// Clusters share nothing when they credit what they have. A cluster stops at its first gang that depends on free
// machines: from there on its needs are served in turn.
void Cycle::CreditSideBySide(Parallel& parallel) {
  const size_t workers = std::min<size_t>(parallel.width(), ClaimLog::kShelves - 1);
  while (planners_.size() < workers) {
    planners_.push_back(std::make_unique<Planner>(inventory_, demand_, policy_, need_memory_));
    planners_.back()->set_explain(explain_);
  }
  plans_.resize(std::max(plans_.size(), workers));
  const size_t clusters = inventory_.clusters();
  parallel.For(workers, [&](size_t worker) {
    for (size_t c = worker * clusters / workers; c < (worker + 1) * clusters / workers; ++c) {
      CreditCluster(ClusterId::Of(c), *planners_[worker], plans_[worker], static_cast<uint32_t>(worker + 1));
    }
  });
}

void Cycle::CreditCluster(ClusterId cluster, Planner& planner, Plan& plan, uint32_t shelf) {
  for (const NeedRow& row : demand_.NeedsOf(cluster)) {
    if (Settle(row.id)) continue;
    if (!planner.Credit(row.id, plan)) return;
    CommitCredit(row.id, plan, shelf);
    progress_[row.id] = Progress::kCredited;
  }
}

void Cycle::CommitCredit(NeedId n, const Plan& plan, uint32_t shelf) {
  Outcome& outcome = outcomes_[n];
  NeedRow& row = *demand_.order()[n];
  outcome = {.shortage = plan.shortage, .gang = row.gang};
  for (const Take& take : plan.credits) Claim(n, take, shelf);
  const bool settles = plan.settles && !demand_.HasEqualRows(row.cluster);
  inventory_.AllowSettling(row.key, settles);
  if (settles) KeepSettled(row, plan.credits);
  if (!row.is_gang) return;
  gangs_[outcome.gang] = plan.gang;
  outcome.parked = plan.gang.parked;
  outcome.satisfiable = plan.gang.satisfiable;
  outcome.hopeful = plan.gang.hopeful;
  for (const GroupId g : plan.gang.holds) inventory_.Open(g).held_for = n;
  for (const GroupId g : plan.gang.keeps) Keep(n, g);
}

// What is left of the group stays with its gang: as if it were claimed, but by no claim.
void Cycle::Keep(NeedId n, GroupId g) {
  Group& group = inventory_.Open(g);
  group.kept = true;
  group.held_for = n;
  group.claimed = group.size;
}

void Cycle::KeepSettled(NeedRow& row, std::span<const Take> takes) {
  if (row.last_take == nullptr) row.last_take = std::make_unique<LastTake>();
  LastTake& last_take = *row.last_take;
  last_take.in_order = true;
  const Fit& classes = catalogue().fit_as_is(row.fit);
  for (const GroupId g : inventory_.key(row.key).own) {
    Group& group = inventory_.group(g);
    group.settled = 0;
    if (!classes.Has(group.cls)) continue;
    for (size_t d = 0; d < dims(); ++d) {
      if (row.aggregate[d] > 0 && inventory_.each(group)[d] == 0) last_take.in_order = false;
    }
  }
  last_take.taken = {};
  last_take.least.v.fill(std::numeric_limits<int64_t>::max());
  for (const Take& take : takes) {
    Group& group = inventory_.group(take.group);
    group.settled = take.count;
    for (size_t d = 0; d < dims(); ++d) {
      const int64_t each = inventory_.each(group)[d];
      int64_t all = 0;
      if (__builtin_mul_overflow(each, int64_t{take.count}, &all) ||
          __builtin_add_overflow(last_take.taken[d], all, &last_take.taken[d])) {
        last_take.in_order = false;
      }
      last_take.least[d] = std::min(last_take.least[d], each);
    }
  }
}

void Cycle::CommitAcquisition(NeedId n, const Plan& plan) {
  outcomes_[n].shortage = plan.shortage;
  for (const Take& take : plan.acquired.takes) Claim(n, take, 0);
  for (const MachineId m : plan.acquired.machines) {
    const bool idle = inventory_.state(m) == MachineState::kIdle;
    actions_.push_back({.kind = idle ? ActionKind::kBootstrap : ActionKind::kProvision,
                        .reason = idle ? model::Reason::kAcquireIdle : model::Reason::kAcquireSpeculative,
                        .machine = m,
                        .need = n});
    if (!sequence_.empty()) winner_[m] = n;
  }
  stats_.claimed += plan.acquired.machines.size();
}

void Cycle::Claim(NeedId n, const Take& take, uint32_t shelf) {
  Group& group = inventory_.Open(take.group);
  Outcome& outcome = outcomes_[n];
  const ClaimId row = claims_.Add(shelf, {.need = n,
                                          .group = take.group,
                                          .first = group.claimed,
                                          .count = take.count,
                                          .next_of_need = outcome.first_claim});
  outcome.first_claim = row;
  if (group.last_claim == kNoId) {
    group.first_claim = row;
  } else {
    claims_[group.last_claim].next_of_group = row;
  }
  group.last_claim = row;
  if (!MUTANT("fast.double_claim")) group.claimed += take.count;
  if (group.owner != kNoId && group.stamp != need(n).stamp) restamps_[shelf].push_back(row);
  if (group.owner != kNoId && group.owner != need(n).key) surplus_[group.cluster].shared = true;
  switch (group.state) {
    case MachineState::kIdle: outcome.bootstraps += take.count; break;
    case MachineState::kSpeculative: outcome.provisions += take.count; break;
    case MachineState::kCreating: outcome.creating += take.count; break;
    default: outcome.credited += take.count; break;
  }
}

bool Cycle::IsCovered(NeedId n) const {
  if (progress_[n] == Progress::kSettled) return true;
  return IsZero(progress_[n] == Progress::kWaiting ? need(n).aggregate : outcomes_[n].shortage, dims());
}

void Cycle::EndTurn(NeedId n) {
  const auto& order = demand_.order();
  if (progress_[n] != Progress::kSettled) {
    progress_[n] = Progress::kDone;
    served_.push_back(n);
    if (!IsZero(outcomes_[n].shortage, dims())) short_.push_back(n);
  }
  if (!inventory_.key_state(demand_.keys()[n]).has_pledges) return;
  const bool last_of_key = !order.Has(After(n)) || order[After(n)]->key != order[n]->key;
  if (last_of_key) EndPledges(n);
}

// What becomes of the pledges to a key once its last row had its turn. All machines of a group share their fate.
void Cycle::EndPledges(NeedId n) {
  const KeyId id = need(n).key;
  bool covered = true;
  const NeedRow* first = nullptr;
  for (const NeedRow& row : demand_.NeedsOf(need(n).cluster)) {
    if (row.key != id) continue;
    if (first == nullptr) first = &row;
    covered = covered && IsCovered(row.id);
  }
  const auto can_serve = [&](ClassId c) {
    return std::ranges::any_of(demand_.NeedsOf(need(n).cluster),
                               [&](const NeedRow& row) { return row.key == id && fit(row.id).Has(c); });
  };
  const bool acquires = Acquires(n);
  inventory_.key(id).ForEachPledged([&](GroupId g) {
    Group& group = inventory_.Open(g);
    if (inventory_.Remaining(g) == 0 || group.pledge_ended) return;
    bool ends = covered;
    if (first->is_gang) {
      ends = ends || (acquires && group.held_for == kNoId);
    } else {
      ends = ends || !can_serve(group.cls) || (acquires && group.state == MachineState::kIdle);
    }
    if (!ends || MUTANT("fast.pledge_never_ends")) return;
    group.pledge_ended = true;
    group.held_for = kNoId;
    ended_.push_back(g);
    if (!sequence_.empty()) sequence_[catalogue().cls(group.cls).type] += kPoison;
  });
}

}  // namespace muster::engine::fast
