// Phase 1 with several workers: the deterministic broker.
//
// Needs that are short speculate in windows. Needs that read the same buckets (instance types) form a chain and are
// planned by one worker, one after the other, each seeing what those before it would take; other chains are planned at
// the same time by others. A plan is a proposal: the broker accepts it tentatively in the order of arrival;
// a need of strictly higher precedence that wants an accepted machine displaces, any other has a conflict. Then the
// window is settled in the order of needs: a proposal that still stands and whose buckets moved by nothing but what it
// saw is committed, every other need is planned again in its turn. So the answer is that of one pass in order, however
// the workers ran.
#include <algorithm>
#include <map>

#include "base/probe.h"
#include "engine/fast/cycle.h"

namespace muster::engine::fast {
namespace {

constexpr size_t kSmallestWindow = 8;
constexpr size_t kLargestWindow = 4096;

}  // namespace

bool Cycle::MaySpeculate(NeedId n) const {
  return progress_[n] == Progress::kCredited && Acquires(n) && !IsZero(outcomes_[n].shortage, dims());
}

void Cycle::ServeBySpeculation(Parallel& parallel) {
  sequence_.assign(catalogue().types().size(), 0);
  winner_.resize(inventory_.rows());
  size_t size = kSmallestWindow;
  std::vector<NeedId> window;
  for (NeedId n(0); progress_.Has(n);) {
    // A window ends before a need that must be served whole in its turn.
    window.clear();
    NeedId end = n;
    for (; progress_.Has(end) && window.size() < size; end = After(end)) {
      if (progress_[end] == Progress::kWaiting) break;
      if (MaySpeculate(end)) window.push_back(end);
    }
    const uint64_t moved_before = Moved();
    Speculate(window, parallel);
    size_t next = 0;
    for (; n != end; n = After(n)) {
      if (next < proposals_.size() && proposals_[next].need == n) {
        SettleProposal(proposals_[next++], parallel);
      } else if (MaySpeculate(n)) {
        PlanInTurn(n, plans_[0], parallel);
      }
      EndTurn(n);
    }
    const uint64_t moved = Moved() - moved_before;
    if (moved * 4 > window.size()) {
      size = std::max(size / 2, kSmallestWindow);
    } else if (window.size() == size) {
      size = std::min(size * 2, kLargestWindow);
    }
    if (progress_.Has(n) && progress_[n] == Progress::kWaiting) {
      if (!Settle(n)) PlanInTurn(n, plans_[0], parallel);
      EndTurn(n);
      n = After(n);
    }
  }
  sequence_.clear();
  for (const FastAction& action : actions_) winner_[action.machine] = kNoId;
}

void Cycle::Speculate(std::span<const NeedId> window, Parallel& parallel) {
  proposals_.resize(0);
  if (window.size() < kSmallestWindow) return;
  std::map<std::vector<TypeId>, std::vector<NeedId>> chains;  // by the buckets they read
  for (const NeedId n : window) chains[fit(n).types].push_back(n);
  if (chains.size() == 1) return;  // nothing to do side by side
  proposals_.resize(window.size());
  std::map<NeedId, Proposal*> of_need;
  for (size_t i = 0; i < window.size(); ++i) {
    proposals_[i].need = window[i];
    of_need[window[i]] = &proposals_[i];
  }
  const size_t workers = std::min(planners_.size(), chains.size());
  std::vector<std::vector<Proposal*>> work(workers);
  size_t turn = 0;
  for (const auto& [types, needs] : chains) {
    for (const NeedId n : needs) work[turn % workers].push_back(of_need.at(n));
    ++turn;
  }
  for (auto& chain : work) std::ranges::sort(chain, {}, &Proposal::need);
  tentative_.resize(inventory_.rows());
  parallel.For(workers, [&](size_t worker) { SpeculateChain(worker, work[worker], parallel); });
  for (const Proposal& proposal : proposals_) {
    for (const MachineId m : proposal.plan.acquired.machines) tentative_[m] = kNoId;
  }
}

void Cycle::SpeculateChain(size_t worker, std::span<Proposal* const> chain, Parallel& parallel) {
  Planner& planner = *planners_[worker];
  planner.view().BeginPrivate();
  Rows<TypeId, uint64_t> moved;  // by this worker's own plans
  moved.resize(sequence_.size());
  for (Proposal* proposal : chain) {
    const NeedId n = proposal->need;
    Plan& plan = proposal->plan;
    BeginFromCredit(n, plan);
    for (const TypeId type : fit(n).types) proposal->read.push_back(sequence_[type] + moved[type]);
    const uint64_t began = parallel.Nanos();
    planner.Acquire(n, plan);
    proposal->nanos = parallel.Nanos() - began;
    for (const Take& take : plan.acquired.takes) planner.view().Claim(take.group, take.count);
    for (const TypeId type : fit(n).types) ++moved[type];
    parallel.OneAtATime([&] { Submit(*proposal); });
  }
  planner.view().EndPrivate();
}

// The broker's door: one proposal at a time.
void Cycle::Submit(Proposal& proposal) {
  const uint64_t precedence = need(proposal.need).precedence;
  const auto holder = [&](MachineId m) -> Proposal* {
    const NeedId n = tentative_[m];
    return n == kNoId ? nullptr : &*std::ranges::lower_bound(proposals_, n, {}, &Proposal::need);
  };
  ModeStats& mode = ModeOf(proposal.need);
  ++mode.proposals;
  mode.nanos += proposal.nanos;
  for (const MachineId m : proposal.plan.acquired.machines) {
    const Proposal* other = holder(m);
    if (other != nullptr && need(other->need).precedence >= precedence) proposal.rejected = true;
  }
  if (proposal.rejected) return;
  for (const MachineId m : proposal.plan.acquired.machines) {
    if (Proposal* other = holder(m); other != nullptr) {
      other->displaced = true;
      for (const MachineId taken : other->plan.acquired.machines) tentative_[taken] = kNoId;
    }
    tentative_[m] = proposal.need;
  }
}

bool Cycle::StillHolds(const Proposal& proposal) const {
  const std::vector<TypeId>& types = fit(proposal.need).types;
  for (size_t i = 0; i < types.size(); ++i) {
    if (sequence_[types[i]] != proposal.read[i] && !MUTANT("fast.moves_ignored")) return false;
  }
  return true;
}

bool Cycle::IsOvertaken(const Proposal& proposal) const {
  return std::ranges::any_of(proposal.plan.acquired.machines, [&](MachineId m) {
    const NeedId winner = winner_[m];
    return winner != kNoId && need(winner).precedence > need(proposal.need).precedence;
  });
}

void Cycle::TellPlanTime(NeedId n, uint64_t nanos, Parallel& parallel) const {
  parallel.Took(need(n).is_gang ? "proposal.all-or-nothing" : "proposal.incremental", nanos);
}

void Cycle::SettleProposal(Proposal& proposal, Parallel& parallel) {
  const NeedId n = proposal.need;
  TellPlanTime(n, proposal.nanos, parallel);
  const uint64_t machines = proposal.plan.acquired.machines.size();
  ModeStats& mode = ModeOf(n);
  // Refused, or overtaken: by a need of higher precedence that took one of its machines, or by a move it has not seen.
  if (proposal.displaced || (!proposal.rejected && !StillHolds(proposal) && IsOvertaken(proposal))) {
    ++mode.displacements;
    stats_.accepted_claims += machines;
    stats_.displaced_claims += machines;
  } else if (proposal.rejected || !StillHolds(proposal)) {
    ++mode.conflicts;
  } else {
    stats_.accepted_claims += machines;
    CommitAcquisition(n, proposal.plan);
    Bump(fit(n), 1);
    return;
  }
  ++mode.retries;
  PlanInTurn(n, plans_[0], parallel);
}

void Cycle::PlanInTurn(NeedId n, Plan& plan, Parallel& parallel) {
  Planner& planner = *planners_[0];
  const uint64_t began = parallel.Nanos();
  if (progress_[n] == Progress::kCredited) {
    BeginFromCredit(n, plan);
    planner.Acquire(n, plan);
  } else {
    planner.Whole(n, plan);
    CommitCredit(n, plan, 0);
  }
  CommitAcquisition(n, plan);
  ModeStats& mode = ModeOf(n);
  ++mode.proposals;
  const uint64_t nanos = parallel.Nanos() - began;
  mode.nanos += nanos;
  TellPlanTime(n, nanos, parallel);
  stats_.accepted_claims += plan.acquired.machines.size();
  if (!MUTANT("fast.retry_unnoticed")) Bump(fit(n), kPoison);
}

// A plan that begins with what the need was credited.
void Cycle::BeginFromCredit(NeedId n, Plan& plan) const {
  plan.Clear(need(n).aggregate);
  plan.shortage = outcomes_[n].shortage;
  for (ClaimId c = outcomes_[n].first_claim; c != kNoId; c = claims_[c].next_of_need) {
    plan.credits.push_back({.group = claims_[c].group, .count = claims_[c].count});
  }
}

void Cycle::Bump(const Fit& classes, uint64_t by) {
  for (const TypeId type : classes.types) sequence_[type] += by;
}

}  // namespace muster::engine::fast
