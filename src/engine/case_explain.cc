#include "engine/case_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/arithmetic.h"
#include "engine/case_print.h"
#include "engine/text_table.h"
#include "model/names.h"
#include "model/requirement.h"
#include "model/text_scalars.h"

namespace muster::engine {
namespace {

using model::MachineState;
using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kShownNames = 12;

bool IsOnHold(const Holds& holds, const model::Machine& machine, const std::string& cluster) {
  const bool out_of_stock =
      machine.state == MachineState::kSpeculative && holds.classes.contains(StockClassOf(machine));
  return out_of_stock || holds.machines.contains(machine.id) || holds.pairs.contains({machine.id, cluster});
}

Result<size_t> FindNeed(const CaseCycle& cycle, std::string_view name) {
  const auto& needs = cycle.decision.needs;
  std::vector<std::string> known = NeedNames(cycle);
  for (size_t i = 0; i < needs.size(); ++i) {
    const auto is_row = [&](size_t row) { return cycle.row_names[row] == name; };
    if (known[i] == name || std::ranges::any_of(needs[i].rows, is_row)) return i;
  }
  const std::string nearest = model::NearestName(name, known);
  return InvalidArgument(fmt::format("no need is called {} in cycle {}; {}", model::Quoted(name), cycle.number,
                                     nearest.empty() ? fmt::format("there are: {}", JoinNames(known, kShownNames))
                                                     : fmt::format("did you mean {}?", model::Quoted(nearest))));
}

std::string Asks(const NeedVerdict& verdict) {
  const model::Profile& profile = verdict.need.profile;
  std::string text = verdict.need.aggregate.ToString();
  if (!verdict.need.min_unit.empty()) {
    text += fmt::format(" in units of up to {}", verdict.need.min_unit.ToString());
  }
  return text + fmt::format(", priority {}, interruption penalty {}, reclamation penalty {}", profile.priority(),
                            model::BucketLabel(profile.interruption()), model::BucketLabel(profile.reclamation()));
}

std::string Requires(const model::Profile& profile) {
  std::vector<std::string> parts;
  for (const model::Requirement& requirement : profile.requirements()) parts.push_back(model::ToString(requirement));
  for (const model::Spread& spread : profile.spread()) {
    parts.push_back(fmt::format("spread over {} with skew {}, {}", spread.topology_key, spread.max_skew,
                                model::WhenUnsatisfiableName(spread.when)));
  }
  return parts.empty() ? "nothing of a machine" : JoinNames(parts);
}

std::string VerdictText(const NeedVerdict& verdict) {
  if (verdict.satisfied) return "covered";
  if (verdict.pending) {
    return fmt::format("waits for {}: {}", verdict.residual.ToString(), model::ReasonSentence(verdict.reason));
  }
  return fmt::format("short of {} for {} cycle{}: {}", verdict.residual.ToString(), verdict.age,
                     verdict.age == 1 ? "" : "s", model::ReasonSentence(verdict.reason));
}

void AddClaims(const CaseCycle& cycle, size_t need, Rows& rows) {
  for (const ClaimKind kind :
       {ClaimKind::kCredit, ClaimKind::kCreating, ClaimKind::kBootstrap, ClaimKind::kProvision}) {
    std::vector<std::string> machines;
    for (const Claim& claim : cycle.decision.claims) {
      if (claim.need == need && claim.kind == kind) machines.push_back(claim.machine);
    }
    if (!machines.empty()) rows.push_back({std::string(ClaimKindName(kind)), JoinNames(machines, kShownNames)});
  }
}

void AddDomains(const NeedVerdict& verdict, Rows& rows) {
  for (const DomainScore& score : verdict.domains) {
    const bool chosen = verdict.domain == score.domain;
    rows.push_back({chosen ? "domain" : "runner-up",
                    fmt::format("{}: holds {}.{} % of the gang{}", score.domain, score.coverage_per_mille / 10,
                                score.coverage_per_mille % 10, score.satisfiable ? ", enough" : "")});
  }
  const auto same = [&](const DomainScore& score) { return score.domain == verdict.domain; };
  if (verdict.domain && std::ranges::none_of(verdict.domains, same)) {
    rows.push_back({"domain", *verdict.domain + ": what is promised to the gang lies there"});
  }
  if (verdict.parked) rows.push_back({"parked", "it was tried in vain for a while and nothing has come since"});
}

// Machines that could serve the need and do not, by what became of them: who won.
void AddLostSupply(const CaseCycle& cycle, size_t need, Rows& rows) {
  const Decision& decision = cycle.decision;
  const std::vector<std::string> names = NeedNames(cycle);
  std::map<std::string_view, const model::Machine*> by_id;
  for (const model::Machine& machine : cycle.world.machines) by_id.emplace(machine.id, &machine);
  std::map<std::string, std::vector<std::string>> unused;
  for (const MachineVerdict& verdict : decision.machines) {
    const model::Machine& machine = *by_id.at(verdict.machine);
    if (verdict.need == need || Obstacle(machine, decision.needs[need].need)) continue;
    std::string why(model::ReasonSentence(verdict.reason));
    if (verdict.need) {
      const model::Need& winner = decision.needs[*verdict.need].need;
      why = fmt::format("{} (priority {}, cluster {}): {}", names[*verdict.need], winner.profile.priority(),
                        winner.cluster, model::ReasonSentence(verdict.reason));
    }
    unused[fmt::format("{}, {}", model::StateName(machine.state), why)].push_back(verdict.machine);
  }
  for (const auto& [why, machines] : unused) {
    rows.push_back({"not used", fmt::format("{}: {}", JoinNames(machines, kShownNames), why)});
  }
}

void AddTaken(const CaseCycle& cycle, size_t need, Rows& rows) {
  const NeedKey key = KeyOf(cycle.decision.needs[need].need);
  for (const Action& action : cycle.decision.actions) {
    const bool takes = action.kind == ActionKind::kPreempt || action.kind == ActionKind::kReclaim;
    if (!takes || action.need != key) continue;
    rows.push_back({"takes", fmt::format("{} of {} with {} of grace: {}", action.machine, action.cluster,
                                         model::FormatDuration(action.grace), model::ReasonSentence(action.reason))});
  }
  std::set<std::string> taken_now;
  for (const Action& action : cycle.decision.actions) taken_now.insert(action.machine);
  for (const MachineVerdict& verdict : cycle.decision.machines) {
    if (verdict.reason != model::Reason::kPledged || verdict.need != need || taken_now.contains(verdict.machine))
      continue;
    rows.push_back({"promised", verdict.machine + ": comes to it, or waits for it, from an earlier cycle"});
  }
}

// What buying this machine costs the need: its price, and the risk as this need bears it.
std::string BuyingCost(const model::Machine& machine, const model::Need& need) {
  const Cost cost = EffectiveCost(machine, need.profile.interruption());
  const std::string price = model::FormatMoney({cost.micros}) + "/h";
  if (cost.pinned) return price + ", but it may be interrupted: the last choice";
  return cost.micros == machine.price_per_hour.micros ? price : price + ", the risk of losing it included";
}

// What there is to buy, cheapest first in the eyes of this need.
void AddBuyingCosts(const CaseCycle& cycle, const model::Need& need, Rows& rows) {
  std::map<std::pair<Cost, std::string>, std::string> offers;  // by cost, then instance type
  for (const model::Machine& machine : cycle.world.machines) {
    if (machine.state != MachineState::kSpeculative || Obstacle(machine, need)) continue;
    const std::string& name = machine.instance_type.empty() ? machine.id : machine.instance_type;
    const Cost cost = EffectiveCost(machine, need.profile.interruption());
    offers.try_emplace({cost, name}, fmt::format("{}: {}", name, BuyingCost(machine, need)));
  }
  size_t shown = 0;
  for (const auto& [key, text] : offers) {
    if (++shown > kShownNames) break;
    rows.push_back({"to buy", text});
  }
}

// Why a need did or did not get this machine, in the order of decision.
std::string OfNeed(const CaseCycle& cycle, size_t index, const model::Machine& machine, const MachineVerdict& verdict) {
  const NeedVerdict& need = cycle.decision.needs[index];
  for (const Claim& claim : cycle.decision.claims) {
    if (claim.need != index || claim.machine != machine.id) continue;
    const bool buys = claim.kind == ClaimKind::kProvision;
    return fmt::format("claims it ({}){}", ClaimKindName(claim.kind),
                       buys ? ", which costs it " + BuyingCost(machine, need.need) : "");
  }
  if (verdict.need == index) return std::string(model::ReasonSentence(verdict.reason));
  if (const auto obstacle = Obstacle(machine, need.need)) return *obstacle;
  if (machine.state == MachineState::kFailed || machine.state == MachineState::kDeleting) {
    return fmt::format("a machine that is {} serves nobody", model::StateName(machine.state));
  }
  if (!machine.cluster.empty() && machine.cluster != need.need.cluster) {
    return need.satisfied
               ? "bound to another cluster, and not needed: the need is covered"
               : "bound to another cluster, and not to be had: " + std::string(model::ReasonSentence(need.reason));
  }
  if (need.satisfied) return "not needed: the need is covered without it";
  if (IsOnHold(cycle.world.holds, machine, need.need.cluster)) {
    return "on hold: it may not be acquired for the need for now";
  }
  if (verdict.need && *verdict.need < index) return "an earlier need has it";
  return "the need is short: " + std::string(model::ReasonSentence(need.reason));
}

std::string Describe(const model::Machine& machine) {
  std::vector<std::string> parts = {std::string(model::StateName(machine.state))};
  if (!machine.cluster.empty()) parts.push_back("bound to " + machine.cluster);
  if (!machine.instance_type.empty()) parts.push_back(machine.instance_type);
  if (!machine.zone.empty()) parts.push_back("zone " + machine.zone);
  parts.emplace_back(model::CapacityTypeName(machine.capacity_type));
  parts.push_back(model::FormatMoney(machine.price_per_hour) + "/h");
  parts.push_back(machine.EffectiveAllocatable().ToString());
  return JoinNames(parts);
}

}  // namespace

std::optional<std::string> Obstacle(const model::Machine& machine, const model::Need& need) {
  for (const model::Requirement& requirement : need.profile.requirements()) {
    const auto value = machine.Attribute(requirement.key);
    if (model::Matches(requirement, value)) continue;
    return fmt::format("it requires {}, the machine has {}", model::ToString(requirement),
                       value ? model::Quoted(*value) : "no such key");
  }
  const model::Resources missing = model::SubtractSaturating(need.min_unit, machine.EffectiveAllocatable());
  if (!missing.empty()) return fmt::format("one unit does not fit: {} too little", missing.ToString());
  for (const model::Spread& spread : need.profile.spread()) {
    const bool binds = spread.when == model::WhenUnsatisfiable::kDoNotSchedule;
    if (binds && !machine.Attribute(spread.topology_key)) {
      return fmt::format("it spreads over {}, which the machine lacks", spread.topology_key);
    }
  }
  return std::nullopt;
}

Result<std::string> ExplainNeed(const CaseCycle& cycle, std::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const size_t index, FindNeed(cycle, name));
  const NeedVerdict& verdict = cycle.decision.needs[index];
  const std::string full_name = NeedNames(cycle)[index];
  Rows rows = {{"asks for", Asks(verdict)}, {"requires", Requires(verdict.need.profile)}};
  if (verdict.need.group.starts_with("fold:")) {
    rows.push_back(
        {"folded", fmt::format("{} gang{} that fit{} one machine each: {}", verdict.rows.size(),
                               verdict.rows.size() == 1 ? "" : "s", verdict.rows.size() == 1 ? "s" : "", full_name)});
  }
  rows.push_back({"verdict", VerdictText(verdict)});
  AddClaims(cycle, index, rows);
  rows.push_back(
      {"supply", fmt::format("machines that can serve it: {} idle, {} speculative, {} configured", verdict.supply.idle,
                             verdict.supply.speculative, verdict.supply.configured) +
                     (verdict.supply.on_hold == 0 ? "" : fmt::format(", {} of them on hold", verdict.supply.on_hold))});
  AddBuyingCosts(cycle, verdict.need, rows);
  AddDomains(verdict, rows);
  AddTaken(cycle, index, rows);
  if (verdict.lost > 0) rows.push_back({"loses", fmt::format("{} of its machines in this cycle", verdict.lost)});
  if (!verdict.satisfied) AddLostSupply(cycle, index, rows);
  return fmt::format("need {} of cluster {}, cycle {}\n", full_name, verdict.need.cluster, cycle.number) +
         AlignRows(rows, "  ");
}

Result<std::string> ExplainMachine(const CaseCycle& cycle, std::string_view id) {
  const auto& machines = cycle.world.machines;
  const auto machine = std::ranges::find(machines, id, &model::Machine::id);
  if (machine == machines.end()) {
    std::vector<std::string> ids;
    for (const model::Machine& known : machines) ids.push_back(known.id);
    const std::string nearest = model::NearestName(id, ids);
    return InvalidArgument(
        fmt::format("there is no machine {} in cycle {}{}", model::Quoted(id), cycle.number,
                    nearest.empty() ? "" : fmt::format("; did you mean {}?", model::Quoted(nearest))));
  }
  const auto verdict = std::ranges::find(cycle.decision.machines, id, &MachineVerdict::machine);
  Rows rows = {{"is", Describe(*machine)}};
  const auto action = std::ranges::find(cycle.decision.actions, id, &Action::machine);
  if (action != cycle.decision.actions.end()) {
    rows.push_back(
        {"action", fmt::format("{}: {}", ActionKindName(action->kind), model::ReasonSentence(action->reason))});
  } else {
    rows.push_back({"no action", std::string(model::ReasonSentence(verdict->reason))});
  }
  const std::vector<std::string> names = NeedNames(cycle);
  Rows needs;
  for (size_t i = 0; i < names.size(); ++i) {
    needs.push_back({names[i], fmt::format("priority {}", cycle.decision.needs[i].need.profile.priority()),
                     OfNeed(cycle, i, *machine, *verdict)});
  }
  return fmt::format("machine {}, cycle {}\n", id, cycle.number) + AlignRows(rows, "  ") +
         (needs.empty() ? "" : "  needs, in the order they were served\n") + AlignRows(needs, "    ");
}

}  // namespace muster::engine
