#include "cli/what_if_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cli/cluster_names.h"
#include "cli/live_view.h"
#include "cli/plan_view.h"
#include "cli/table.h"
#include "engine/case_run.h"
#include "engine/fast/follower.h"
#include "model/reason.h"

namespace muster::cli {
namespace {

constexpr size_t kMostRows = 20;

bool IsIn(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

model::Money Scaled(model::Money price, int64_t thousandths) {
  __extension__ typedef __int128 Wide;
  return {.micros = static_cast<int64_t>(Wide{price.micros} * thousandths / 1000)};
}

int64_t FactorOf(const Event& event, const std::string& type) {
  for (const auto& [name, factor] : event.prices) {
    if (name == type) return factor;
  }
  return 1000;
}

// --- a plan

// As machines, so that the event's names can be checked.
std::vector<model::Machine> Known(const planner::Request& request) {
  std::vector<model::Machine> machines;
  for (const planner::Candidate& candidate : request.candidates) {
    machines.push_back({.instance_type = candidate.type, .zone = candidate.zone});
  }
  for (const auto& [id, facts] : request.nodes) machines.push_back({.instance_type = facts.type, .zone = facts.zone});
  return machines;
}

void Multiply(const Event& event, planner::Request& request) {
  const int64_t copies = (event.demand + 999) / 1000;
  const auto chosen = [&](const placement::Unit& unit) {
    const model::TextMap::Map& labels = request.world.kinds[unit.kind.value()].labels;
    return event.demand_of.empty() || Selects(event.demand_of, {labels.begin(), labels.end()});
  };
  std::vector<placement::Unit> more;
  const auto copy = [&](const placement::Unit& unit) {
    if (!chosen(unit)) return;
    for (int64_t i = 1; i < copies; ++i) {
      placement::Unit one = unit;
      one.id = fmt::format("{}-what-if-{}", unit.id, i);
      more.push_back(std::move(one));
    }
  };
  for (const placement::PlacedUnit& placed : request.world.placed) copy(placed.unit);
  for (const placement::Unit& unit : request.pending) copy(unit);
  request.pending.insert(request.pending.end(), more.begin(), more.end());
}

// The nodes that go; their units look for others.
std::set<std::string> Lose(const Event& event, planner::Request& request) {
  std::set<std::string> lost;
  for (const auto& [id, facts] : request.nodes) {
    if (IsIn(event.lose_zones, facts.zone) || IsIn(event.drop_types, facts.type)) lost.insert(id);
  }
  for (const std::string& id : lost) request.nodes.erase(id);
  std::erase_if(request.world.nodes, [&](const placement::Node& node) { return lost.contains(node.id); });
  for (const placement::PlacedUnit& placed : request.world.placed) {
    if (lost.contains(placed.node) && !placed.terminating) request.pending.push_back(placed.unit);
  }
  std::erase_if(request.world.placed, [&](const placement::PlacedUnit& placed) { return lost.contains(placed.node); });
  std::erase_if(request.residents, [&](const placement::PlacedUnit& placed) { return lost.contains(placed.node); });
  std::erase_if(request.candidates, [&](const planner::Candidate& candidate) {
    return IsIn(event.lose_zones, candidate.zone) || IsIn(event.drop_types, candidate.type) ||
           IsIn(event.stock_outs, candidate.type);
  });
  for (planner::Candidate& candidate : request.candidates) {
    candidate.price = Scaled(candidate.price, FactorOf(event, candidate.type));
  }
  for (auto& [id, facts] : request.nodes) {
    if (facts.price) facts.price = Scaled(*facts.price, FactorOf(event, facts.type));
  }
  return lost;
}

std::string OrUnknown(const std::optional<model::Money>& cost) {
  return cost ? FormatPrice(*cost) + "/h" : "an unknown price";
}

Document OrNull(const std::optional<model::Money>& cost) { return cost ? Document::Dollars(*cost) : Document::Null(); }

}  // namespace

Result<FileAnswer> WhatIfOfPlan(const PlanQuestion& question, const Event& event) {
  planner::Request before = question.input.request;
  if (Status known = CheckEvent(event, Known(before)); !known.ok()) return std::unexpected(std::move(known));
  if (event.demand % 1000 != 0) return InvalidArgument("--demand: of files it takes whole numbers, such as x3");
  planner::Request after = before;
  const std::set<std::string> lost = Lose(event, after);
  Multiply(event, after);
  MUSTER_ASSIGN_OR_RETURN(const planner::Plan plan_before, RunPlan(before));
  MUSTER_ASSIGN_OR_RETURN(const planner::Plan plan_after, RunPlan(after));

  FileAnswer answer;
  std::map<MachineClass, MachineCount> bought;
  for (const planner::PlannedMachine& machine : plan_before.machines) {
    const planner::Candidate& candidate = before.candidates[machine.candidate];
    MachineCount& count = bought[{.type = candidate.type, .capacity = candidate.capacity, .zone = candidate.zone}];
    ++count.before;
    count.price = candidate.price;
  }
  for (const planner::PlannedMachine& machine : plan_after.machines) {
    const planner::Candidate& candidate = after.candidates[machine.candidate];
    MachineCount& count = bought[{.type = candidate.type, .capacity = candidate.capacity, .zone = candidate.zone}];
    ++count.after;
    count.price = candidate.price;
  }
  answer.text = fmt::format(
      "{} nodes are lost. The rest and what is bought costs {} instead of {}; {} machines are "
      "bought instead of {}.\n",
      lost.size(), OrUnknown(plan_after.cost_after), OrUnknown(plan_before.cost_after), plan_after.machines.size(),
      plan_before.machines.size());
  Rows rows = {{"BOUGHT", "CAPACITY", "ZONE", "WITHOUT", "WITH"}};
  for (const auto& [key, count] : bought) {
    rows.push_back({key.type, std::string(model::CapacityTypeName(key.capacity)), OrDash(key.zone),
                    fmt::to_string(count.before), fmt::to_string(count.after)});
  }
  if (rows.size() > 1) answer.text += FormatTable(rows);
  std::set<std::string> without;
  for (const planner::Unplaced& unit : plan_before.unplaced) without.insert(unit.unit);
  answer.text += fmt::format("{} units fit nowhere instead of {}.\n", plan_after.unplaced.size(), without.size());
  Document unplaced = Document::List();
  size_t shown = 0;
  for (const planner::Unplaced& unit : plan_after.unplaced) {
    unplaced.Add(Document::Map()
                     .Add("unit", unit.unit)
                     .Add("reason", placement::ReasonName(unit.reason))
                     .Add("detail", unit.detail)
                     .Add("before", without.contains(unit.unit)));
    if (without.contains(unit.unit) || ++shown > kMostRows) continue;
    answer.text += fmt::format("  {}: {}\n", Printable(unit.unit), Printable(unit.detail));
  }
  answer.document.Add("nodesLost", static_cast<int64_t>(lost.size()))
      .Add("costBefore", OrNull(plan_before.cost_after))
      .Add("costAfter", OrNull(plan_after.cost_after))
      .Add("machines", MachinesDocument(bought))
      .Add("unplacedBefore", static_cast<int64_t>(without.size()))
      .Add("unplaced", unplaced);
  answer.changes = !lost.empty() || plan_before.cost_after != plan_after.cost_after ||
                   plan_before.unplaced != plan_after.unplaced ||
                   planner::Digest(plan_before) != planner::Digest(plan_after);
  return answer;
}

// --- a case

namespace {

// Cycles in a row without an action, after which a case counts as settled; and how many it is given at most.
constexpr int32_t kQuietCycles = 8;
constexpr int32_t kMostCycles = 4000;

struct CaseEnd {
  model::Money cost;
  std::map<std::string, std::pair<std::string, std::string>> shortfalls;  // need -> (residual, reason)
  std::map<std::string, int64_t> actions;                                 // since the case's own end, by kind
  std::map<MachineClass, int64_t> machines;                               // bound or idle
  std::map<MachineClass, model::Money> prices;                            // of one of them
  bool settled = false;
};

// Every machine that the case adds, as it adds it.
std::vector<model::Machine> MachinesOf(const engine::Case& input) {
  std::vector<model::Machine> machines;
  for (const engine::CaseStep& step : input.steps) {
    for (const engine::CaseMachine& machine : step.add) machines.push_back(machine.machine);
  }
  return machines;
}

engine::Case WithEvent(engine::Case input, const Event& event) {
  engine::CaseStep happens;
  happens.at = input.cycles + 1;
  engine::Holds holds;
  std::map<std::string, std::vector<engine::CaseNeed>> needs;
  std::map<std::string, model::Money> prices;
  std::set<std::string> gone;
  for (const engine::CaseStep& step : input.steps) {
    for (const engine::CaseCluster& cluster : step.clusters) {
      if (cluster.needs) needs[cluster.id] = *cluster.needs;
    }
    for (const engine::CaseMachine& machine : step.add) prices[machine.machine.id] = machine.machine.price_per_hour;
    for (const engine::MachineChange& change : step.change) {
      for (const std::string& id : change.ids) {
        if (change.price) prices[id] = *change.price;
      }
    }
    for (const std::string& id : step.remove) gone.insert(id);
    if (step.holds) holds = *step.holds;
  }
  for (const model::Machine& machine : MachinesOf(input)) {
    if (gone.contains(machine.id)) continue;
    if (IsIn(event.lose_zones, machine.zone) || IsIn(event.drop_types, machine.instance_type)) {
      happens.remove.push_back(machine.id);
    } else if (const int64_t factor = FactorOf(event, machine.instance_type); factor != 1000) {
      happens.change.push_back({.ids = {machine.id}, .price = Scaled(prices[machine.id], factor)});
    }
    if (IsIn(event.stock_outs, machine.instance_type)) holds.classes.insert(engine::StockClassOf(machine));
  }
  if (!event.stock_outs.empty()) happens.holds = holds;
  if (event.demand != 1000) {
    for (auto& [cluster, rows] : needs) {
      for (engine::CaseNeed& row : rows) {
        const std::map<std::string, std::string> labels = {{"cluster", cluster}, {"need", row.name}};
        if (!event.demand_of.empty() && !Selects(event.demand_of, labels)) continue;
        for (const auto& [name, amount] : std::vector(row.need.aggregate.entries())) {
          row.need.aggregate.Set(name, Scaled({.micros = amount}, event.demand).micros);
        }
      }
      happens.clusters.push_back({.id = cluster, .needs = rows});
    }
  }
  input.steps.push_back(std::move(happens));
  return input;
}

CaseEnd RunToTheEnd(const engine::Case& input, int32_t own_cycles) {
  CaseEnd end;
  int32_t quiet = 0;
  // Holds run out and machines are given back only after a while: the wait is made of cycles.
  const Duration longest =
      std::max({input.policy.surplus_hold, input.policy.release_hold_on_demand, input.policy.release_hold_spot});
  const auto wait =
      static_cast<int32_t>(std::min<int64_t>(longest / std::max(input.cycle_every, Duration(1ms)), kMostCycles / 2));
  const int32_t enough = kQuietCycles + wait;
  engine::RunCase(
      input, engine::fast::Decide, std::min(own_cycles + kMostCycles, 10'000), [&](const engine::CaseCycle& cycle) {
        if (cycle.number <= own_cycles || end.settled) return;
        quiet = cycle.decision.actions.empty() ? quiet + 1 : 0;
        for (const engine::Action& action : cycle.decision.actions) {
          ++end.actions[std::string(engine::ActionKindName(action.kind))];
        }
        end.settled = quiet >= enough;
        end.cost = cycle.cost_after;
        end.shortfalls.clear();
        end.machines.clear();
        for (size_t i = 0; i < cycle.decision.needs.size(); ++i) {
          const engine::NeedVerdict& verdict = cycle.decision.needs[i];
          if (verdict.satisfied || verdict.pending) continue;
          const std::string name =
              verdict.rows.empty() ? verdict.need.profile.fingerprint() : cycle.row_names[verdict.rows.front()];
          end.shortfalls[name] = {verdict.residual.ToString(), std::string(model::ReasonName(verdict.reason))};
        }
        for (const model::Machine& machine : cycle.world.machines) {
          if (machine.state == model::MachineState::kSpeculative) continue;
          const MachineClass key{
              .type = machine.instance_type, .capacity = machine.capacity_type, .zone = machine.zone};
          ++end.machines[key];
          end.prices[key] = machine.price_per_hour;
        }
      });
  return end;
}

}  // namespace

Result<FileAnswer> WhatIfOfCase(const engine::Case& input, const Event& event) {
  if (Status known = CheckEvent(event, MachinesOf(input)); !known.ok()) return std::unexpected(std::move(known));
  const CaseEnd before = RunToTheEnd(input, input.cycles);
  const CaseEnd after = RunToTheEnd(WithEvent(input, event), input.cycles);

  FileAnswer answer;
  answer.text = CostChange(before.cost, after.cost) + ".\n";
  std::map<MachineClass, MachineCount> machines;
  for (const auto& [key, count] : before.machines) {
    machines[key] = {.before = count, .after = 0, .price = before.prices.at(key)};
  }
  for (const auto& [key, count] : after.machines) {
    machines[key].after = count;
    machines[key].price = after.prices.at(key);
  }
  Rows rows = {{"TYPE", "CAPACITY", "ZONE", "WITHOUT", "WITH"}};
  for (const auto& [key, count] : machines) {
    if (count.before == count.after) continue;
    rows.push_back({key.type, std::string(model::CapacityTypeName(key.capacity)), OrDash(key.zone),
                    fmt::to_string(count.before), fmt::to_string(count.after)});
  }
  if (rows.size() > 1) answer.text += FormatTable(rows);
  Document actions = Document::Map();
  std::vector<std::string> parts;
  for (const auto& [kind, count] : after.actions) {
    actions.Add(kind, count);
    parts.push_back(fmt::format("{} {}", count, kind));
  }
  if (!parts.empty()) answer.text += fmt::format("On the way: {}.\n", fmt::join(parts, ", "));
  Document shortfalls = Document::List();
  answer.text +=
      after.shortfalls.empty()
          ? "No need is short.\n"
          : fmt::format("{} would be short:\n",
                        after.shortfalls.size() == 1 ? "1 need" : fmt::format("{} needs", after.shortfalls.size()));
  for (const auto& [need, why] : after.shortfalls) {
    const bool was = before.shortfalls.contains(need);
    answer.text += fmt::format("  {}: short of {}, {}{}\n", Printable(need), why.first,
                               model::ReasonSentence(model::FindReason(why.second).value_or(model::Reason::kNone)),
                               was ? ", as without it" : "");
    shortfalls.Add(
        Document::Map().Add("need", need).Add("residual", why.first).Add("reason", why.second).Add("before", was));
  }
  const bool settled = before.settled && after.settled;
  if (!settled) answer.text += "This is not the end of it: the case did not come to rest.\n";
  answer.document.Add("settled", settled)
      .Add("costBefore", Document::Dollars(before.cost))
      .Add("costAfter", Document::Dollars(after.cost))
      .Add("machines", MachinesDocument(machines))
      .Add("actions", actions)
      .Add("shortfalls", shortfalls);
  answer.changes =
      before.cost != after.cost || before.machines != after.machines || before.shortfalls != after.shortfalls;
  return answer;
}

}  // namespace muster::cli
