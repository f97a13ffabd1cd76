#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/probe.h"
#include "engine/reference/cycle.h"
#include "model/quantity.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;
using model::Operator;

NeedRow MakeRow(const Cycle& cycle, model::Need need, std::vector<size_t> rows) {
  NeedRow row;
  row.key = KeyOf(need);
  row.rows = std::move(rows);
  row.aggregate = Dense(cycle, need.aggregate);
  row.min_unit = Dense(cycle, need.min_unit);
  row.shortage = row.aggregate;
  row.cluster = StateOf(cycle, need.cluster);
  for (const model::Requirement& requirement : need.profile.requirements()) {
    if (requirement.op == Operator::kSame) row.same_keys.push_back(requirement.key);
  }
  // [SP.same-wins] a gang ignores its spread; [SP.hard-only] so does everybody a soft one.
  for (const model::Spread& spread : need.profile.spread()) {
    if (row.same_keys.empty() && spread.when == model::WhenUnsatisfiable::kDoNotSchedule) row.spread.push_back(spread);
  }
  row.need = std::move(need);
  return row;
}

// [N.fold] Machines a gang could be folded onto: the cluster's bound ones, those in flight for it, and all free ones.
bool MayHostFold(const MachineRow& row, const NeedRow& gang) {
  switch (row.state()) {
    case MachineState::kConfigured:
    case MachineState::kConfiguring: return row.machine->cluster == gang.key.cluster;
    case MachineState::kIdle:
    case MachineState::kSpeculative: return true;
    // [N.in-flight]
    case MachineState::kCreating:
    case MachineState::kDraining: return row.pledge && row.pledge->cluster == gang.key.cluster;
    default: return false;
  }
}

bool FitsOneMachine(const Cycle& cycle, const NeedRow& gang) {
  for (const MachineIndex m : cycle.by_id) {
    const MachineRow& row = cycle.machines[m];
    if (MayHostFold(row, gang) && CanServe(cycle, gang, m) && Covers(row.allocatable, gang.aggregate)) return true;
  }
  return false;
}

// [N.own-unfolded] Its own machines already cover it in one domain: folding would give them away.
bool IsAssembled(const Cycle& cycle, const NeedRow& gang) {
  std::map<Domain, Amounts> missing;
  for (const MachineIndex m : cycle.by_id) {
    const MachineRow& row = cycle.machines[m];
    const bool own_bound = (row.state() == MachineState::kConfigured || row.state() == MachineState::kConfiguring) &&
                           IsOwn(cycle, gang, m);
    const bool own_creating = row.state() == MachineState::kCreating && row.pledge == gang.key;
    if (!(own_bound || own_creating) || !CanServe(cycle, gang, m)) continue;
    const auto domain = DomainOf(*row.machine, gang.same_keys);
    auto& rest = missing.emplace(*domain, gang.aggregate).first->second;
    SubtractSaturating(rest, row.allocatable);
    if (IsZero(rest)) return true;
  }
  return false;
}

// Same becomes Exists (In where it named values), spread is dropped. [N.folded-profile]
model::Profile FoldedProfile(const model::Profile& profile) {
  model::ProfileParts parts = profile.parts();
  parts.spread.clear();
  for (model::Requirement& requirement : parts.requirements) {
    if (requirement.op != Operator::kSame) continue;
    requirement.op = requirement.values.empty() ? Operator::kExists : Operator::kIn;
  }
  return model::Profile(std::move(parts));
}

std::string AggregateText(const model::Resources& resources) {
  std::string text;
  for (const auto& [name, amount] : resources.entries()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, model::FormatQuantity(amount));
  }
  return text;
}

Amounts Max(const Amounts& a, const Amounts& b) {
  Amounts larger;
  for (size_t d = 0; d < a.size(); ++d) larger.push_back(std::max(a[d], b[d]));
  return larger;
}

int64_t AddCapped(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// One gang more for a folded need.
void AddGang(const Cycle& cycle, NeedRow& folded, const NeedRow& gang) {
  for (size_t d = 0; d < folded.aggregate.size(); ++d) {
    folded.aggregate[d] = AddCapped(folded.aggregate[d], gang.aggregate[d]);
  }
  folded.need.aggregate = Sparse(cycle, folded.aggregate);
  folded.min_unit = Max(folded.min_unit, gang.min_unit);
  folded.need.min_unit = Sparse(cycle, folded.min_unit);
  folded.need.arrival = std::min(folded.need.arrival, gang.need.arrival);
  folded.rows.insert(folded.rows.end(), gang.rows.begin(), gang.rows.end());
  folded.shortage = folded.aggregate;
}

NeedRow FoldOne(const Cycle& cycle, const NeedRow& gang) {
  model::Need need = gang.need;
  need.profile = FoldedProfile(need.profile);
  need.min_unit = model::Max(need.aggregate, need.min_unit);
  // [N.folded-identity] a name that stays the same however many gangs it stands for.
  need.group = MUTANT("rule.folded_identity") ? "fold:" : fmt::format("fold:{}", AggregateText(need.aggregate));
  return MakeRow(cycle, std::move(need), gang.rows);
}

// [O.order] [O.arrival] The one order of all needs.
bool OrderLess(const NeedRow& a, const NeedRow& b) {
  const model::Profile& pa = a.need.profile;
  const model::Profile& pb = b.need.profile;
  const auto precedence_a = std::tuple(pa.priority(), pa.interruption(), pa.reclamation());
  const auto precedence_b = std::tuple(pb.priority(), pb.interruption(), pb.reclamation());
  if (precedence_a != precedence_b) return precedence_a > precedence_b;
  if (a.key == b.key) PROBE("reference.tie.equal_rows");
  return std::tie(a.need.arrival, a.key, a.min_unit, a.aggregate, a.rows) <
         std::tie(b.need.arrival, b.key, b.min_unit, b.aggregate, b.rows);
}

// [O.equal-gangs] Two gangs of one key would trade domains for ever: from the second on each has a name of its own.
void TellApart(NeedRow& gang, std::map<NeedKey, int>& seen) {
  const int count = ++seen[gang.key];
  if (count == 1) return;
  gang.key.group += fmt::format("#{}", count);
  gang.need.group = gang.key.group;
}

// [PL.need-gone] A pledge to a need that is not listed any more ends. [PL.refolded] One to a gang that is folded since,
// or no longer, is still a pledge to it: `now_called` gives the key under which it is decided in this cycle.
void RefreshPledges(Cycle& cycle, const std::map<NeedKey, NeedKey>& now_called) {
  for (MachineRow& row : cycle.machines) {
    const bool holds = row.state() == MachineState::kDraining || row.state() == MachineState::kIdle;
    if (!holds || !row.pledge || cycle.first_of_key.contains(*row.pledge)) continue;
    if (const auto renamed = now_called.find(*row.pledge); renamed != now_called.end()) {
      PROBE("reference.pledge_refolded");
      row.pledge = renamed->second;
    } else {
      PROBE("reference.pledge_ends_gone");
      row.pledge.reset();
    }
  }
}

}  // namespace

// [N.one-list]
void Normalise(Cycle& cycle) {
  std::vector<NeedRow> rows;
  std::map<NeedKey, int> gangs_seen;
  std::map<NeedKey, NeedKey> now_called;                // gangs: a key of another cycle -> the one of this
  std::map<std::pair<NeedKey, Amounts>, size_t> folds;  // position in `rows` of the need that gangs fold into
  for (size_t i = 0; i < cycle.world.needs.size(); ++i) {
    NeedRow row = MakeRow(cycle, cycle.world.needs[i], {i});
    if (row.is_gang()) TellApart(row, gangs_seen);
    if (!row.is_gang()) {
      rows.push_back(std::move(row));
      continue;
    }
    NeedRow folded = FoldOne(cycle, row);
    const bool assembled = IsAssembled(cycle, row);
    if (assembled) PROBE("reference.gang_assembled");
    if (assembled || !FitsOneMachine(cycle, row)) {
      now_called.emplace(folded.key, row.key);
      rows.push_back(std::move(row));
      continue;
    }
    PROBE("reference.fold");
    now_called.emplace(row.key, folded.key);
    const auto [it, is_new] = folds.emplace(std::pair(folded.key, row.aggregate), rows.size());
    if (is_new) {
      rows.push_back(std::move(folded));
    } else {
      AddGang(cycle, rows[it->second], row);
    }
  }
  std::ranges::sort(rows, OrderLess);
  for (NeedRow& row : rows) {
    const NeedKey key = row.key;
    const NeedIndex index = cycle.needs.push_back(std::move(row));
    cycle.first_of_key.emplace(key, index);
  }
  RefreshPledges(cycle, now_called);
}

}  // namespace muster::engine::reference
