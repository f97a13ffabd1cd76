// Needs that spread over domains. [SP.skew] Machines are counted per domain, from what the need has bound already.
#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;

std::vector<std::string> KeysOf(const NeedRow& need) {
  std::vector<std::string> keys;
  for (const model::Spread& spread : need.spread) keys.push_back(spread.topology_key);
  return keys;
}

// The next machine to take: of each allowed domain the first useful candidate, of those the cheapest, then the smaller
// domain. `candidates` are in pool or keep order; positions in `done` are passed over. [SP.cheapest-head]
std::optional<size_t> NextPick(const Cycle& cycle, const NeedRow& need, const std::vector<Candidate>& candidates,
                               const std::vector<bool>& done, const Amounts& shortage, const SpreadCounts& counts) {
  const std::vector<std::string> keys = KeysOf(need);
  std::map<Domain, size_t> heads;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const MachineRow& row = cycle.machines[candidates[i].machine];
    if (done[i] || !IsUseful(row.allocatable, shortage) || !counts.Allows(*row.machine)) continue;
    heads.emplace(*DomainOf(*row.machine, keys), i);
  }
  std::optional<size_t> best;
  for (const auto& [domain, i] : heads) {
    if (!best || candidates[i].cost < candidates[*best].cost) best = i;
  }
  return best;
}

// Takes picks while there are any, at most so many; returns them in the order taken.
std::vector<Candidate> TakeSpread(const Cycle& cycle, const NeedRow& need, const std::vector<Candidate>& candidates,
                                  Amounts& shortage, SpreadCounts& counts,
                                  size_t most = std::numeric_limits<size_t>::max()) {
  std::vector<Candidate> picks;
  std::vector<bool> done(candidates.size(), false);
  while (picks.size() < most) {
    const auto next = NextPick(cycle, need, candidates, done, shortage, counts);
    if (!next) break;
    const MachineRow& row = cycle.machines[candidates[*next].machine];
    done[*next] = true;
    counts.Add(*row.machine);
    SubtractSaturating(shortage, row.allocatable);
    picks.push_back(candidates[*next]);
  }
  return picks;
}

// [SP.credit]
void Credit(Cycle& cycle, NeedIndex index, SpreadCounts& counts) {
  const NeedRow& need = cycle.needs[index];
  std::vector<Candidate> others;
  for (const MachineIndex m : OwnFirst(cycle, need, cycle.bound[need.key.cluster])) {
    const MachineRow& row = cycle.machines[m];
    // [SP.own-free] The skew does not bind what the need already has: it would be taken away and bought again.
    const bool free_of_skew = IsOwn(cycle, need, m) && !MUTANT("rule.skew_own");
    if (!free_of_skew) {
      others.push_back({.machine = m, .cost = {.micros = row.machine->price_per_hour.micros}});
    } else if (IsUseful(row.allocatable, need.shortage)) {
      counts.Add(*row.machine);
      ClaimCredit(cycle, index, m);
    }
  }
  // [SP.creating] What is being made for it comes before what others use: it has a place of its own in the spread.
  for (const MachineIndex m : OwnCreating(cycle, need)) {
    const MachineRow& row = cycle.machines[m];
    if (!IsUseful(row.allocatable, need.shortage)) continue;
    counts.Add(*row.machine);
    ClaimCredit(cycle, index, m);
  }
  Amounts shortage = need.shortage;
  for (const Candidate& pick : TakeSpread(cycle, need, others, shortage, counts)) {
    ClaimCredit(cycle, index, pick.machine);
  }
}

void Acquire(Cycle& cycle, NeedIndex index, SpreadCounts& counts) {
  const NeedRow& need = cycle.needs[index];
  Amounts shortage = need.shortage;
  for (const Candidate& pick : TakeSpread(cycle, need, PledgedIdle(cycle, index, {}), shortage, counts)) {
    ClaimAcquisition(cycle, index, pick.machine);
  }
  const Amounts deficit = shortage;
  auto pools = Pools(cycle, index, {});
  std::vector<Candidate> picks;
  const auto take_from = [&](std::vector<Candidate>& pool, size_t most) {
    const std::vector<Candidate> taken = TakeSpread(cycle, need, pool, shortage, counts, most);
    for (const Candidate& pick : taken) {
      picks.push_back(pick);
      std::erase_if(pool, [&](const Candidate& c) { return c.machine == pick.machine; });
    }
    return !taken.empty();
  };
  // [SP.repeat] A pick in one pool may make room for another in the other.
  // [P1.infinite-last] What costs infinitely much is taken one at a time, when nothing else may be.
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  for (bool added = true; added;) {
    added = take_from(pools[0], kAll);
    added = take_from(pools[1], kAll) || added;
    added = added || take_from(pools[2], 1) || take_from(pools[3], 1);
  }
  // Pool order: as the pools are used, each as Pool() orders it.
  const auto order = [&](const Candidate& c) {
    const MachineRow& row = cycle.machines[c.machine];
    return std::tuple(c.cost.pinned, row.state() != MachineState::kIdle, c.cost, row.size,
                      std::string_view(row.machine->id));
  };
  std::ranges::sort(picks, [&](const Candidate& a, const Candidate& b) { return order(a) < order(b); });
  picks = Prune(cycle, std::move(picks), deficit,
                [&](const Candidate& c) { return counts.Remove(*cycle.machines[c.machine].machine); });
  for (const Candidate& pick : picks) ClaimAcquisition(cycle, index, pick.machine);
}

}  // namespace

void ServeSpread(Cycle& cycle, NeedIndex index) {
  SpreadCounts counts(cycle, cycle.needs[index]);
  Credit(cycle, index, counts);
  if (cycle.needs[index].cluster.acquires() && !IsZero(cycle.needs[index].shortage)) Acquire(cycle, index, counts);
}

// [SP.domains]
SpreadCounts::SpreadCounts(const Cycle& cycle, const NeedRow& need) {
  for (const model::Spread& spread : need.spread) {
    constraints_.push_back({.key = spread.topology_key, .skew = std::max(1, spread.max_skew)});
  }
  // [SP.domains] A domain whose machines are all too small could never be filled: it does not hold the others back.
  const std::vector<std::string> keys = KeysOf(need);
  for (uint32_t i = 0; i < cycle.machines.size(); ++i) {
    const MachineRow& row = cycle.machines[MachineIndex(i)];
    if (row.state() == MachineState::kFailed || !CanServe(cycle, need, MachineIndex(i))) continue;
    const Domain domain = *DomainOf(*row.machine, keys);
    for (size_t c = 0; c < constraints_.size(); ++c) constraints_[c].count.emplace(domain[c], 0);
  }
}

int64_t SpreadCounts::Constraint::Min() const {
  return std::ranges::min_element(count, {}, [](const auto& entry) { return entry.second; })->second;
}

bool SpreadCounts::Allows(const model::Machine& machine) const {
  return std::ranges::all_of(constraints_, [&](const Constraint& constraint) {
    const auto value = machine.Attribute(constraint.key);
    return constraint.count.at(std::string(*value)) <= constraint.Min() + constraint.skew - 1;
  });
}

void SpreadCounts::Add(const model::Machine& machine) {
  for (Constraint& constraint : constraints_) ++constraint.count.at(std::string(*machine.Attribute(constraint.key)));
}

// [SP.prune]
bool SpreadCounts::Remove(const model::Machine& machine) {
  for (const Constraint& constraint : constraints_) {
    Constraint without = constraint;
    --without.count.at(std::string(*machine.Attribute(constraint.key)));
    if (without.Min() == constraint.Min()) continue;
    PROBE("reference.spread_prune_checked");
    for (const auto& [value, count] : without.count) {
      if (count > without.Min() + constraint.skew) return false;
    }
  }
  for (Constraint& constraint : constraints_) --constraint.count.at(std::string(*machine.Attribute(constraint.key)));
  return true;
}

}  // namespace muster::engine::reference
