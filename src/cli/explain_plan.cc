#include "cli/explain_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/plan_view.h"
#include "cli/table.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/text_scalars.h"
#include "placement/fast/placer.h"

namespace muster::cli {
namespace {

using placement::Kind;
using planner::Candidate;

// A unit of the request, and where it runs now.
struct UnitRow {
  const placement::Unit* unit = nullptr;
  std::string_view node;  // empty: pending
};

std::string RequestText(const Kind& kind) {
  std::string text = kind.request.ToString();
  const int64_t milli = int64_t{kind.devices.whole} * 1000 + kind.devices.milli;
  if (milli > 0) text += fmt::format(" devices={}", model::FormatQuantityFor("devices", milli));
  return text;
}

class Explainer {
 public:
  Explainer(const PlanQuestion& question, const planner::Plan& plan)
      : question_(question), request_(question.input.request), plan_(plan), kept_(request_) {
    for (const placement::PlacedUnit& placed : request_.world.placed) {
      units_[placed.unit.id] = {&placed.unit, placed.node};
    }
    for (const placement::Unit& unit : request_.pending) units_[unit.id] = {&unit, ""};
    for (const planner::PlannedMachine& machine : plan_.machines) machines_[machine.id] = &machine;
    for (const planner::Assignment& assignment : plan_.assignments) {
      place_of_[assignment.unit] = assignment.node;
      units_on_[assignment.node].push_back(assignment.unit);
    }
    for (const placement::PlacedUnit& placed : request_.world.placed) {
      if (!kept_.Has(placed.node)) continue;
      if (place_of_.emplace(placed.unit.id, placed.node).second) units_on_[placed.node].push_back(placed.unit.id);
    }
  }

  Result<std::string> Explain(const std::string& name) const {
    if (const auto unit = units_.find(name); unit != units_.end()) return OfUnit(unit->second);
    if (const auto machine = machines_.find(name); machine != machines_.end()) return OfMachine(*machine->second);
    if (const auto node = request_.nodes.find(name); node != request_.nodes.end()) return OfNode(name, node->second);
    std::vector<std::string> names;
    for (const auto& [id, row] : units_) names.emplace_back(id);
    for (const auto& [id, row] : machines_) names.emplace_back(id);
    const std::string nearest = model::NearestName(name, names);
    return Error(
        Code::kNotFound,
        fmt::format("the plan has no unit, machine or node {}{}; muster plan -o json lists them", model::Quoted(name),
                    nearest.empty() ? "" : fmt::format(", but {}", model::Quoted(nearest))));
  }

 private:
  const Kind& KindOf(const placement::Unit& unit) const { return request_.world.kinds[unit.kind.value()]; }

  std::string OfUnit(const UnitRow& row) const {
    const Kind& kind = KindOf(*row.unit);
    const auto owner = question_.input.unit_owner.find(row.unit->id);
    std::string text = fmt::format(
        "unit {}{} asks for {}\n", row.unit->id,
        owner == question_.input.unit_owner.end() ? "" : fmt::format(" of {}", owner->second), RequestText(kind));
    text += row.node.empty() ? "  it has no node now\n" : fmt::format("  it runs on {} now\n", row.node);
    if (const auto place = place_of_.find(row.unit->id); place != place_of_.end()) {
      text += fmt::format("  the plan has it on {}\n", Describe(std::string(place->second)));
      const size_t others = units_on_.at(place->second).size() - 1;
      text += others == 0 ? "  alone\n" : fmt::format("  with {} other unit{}\n", others, others == 1 ? "" : "s");
    }
    for (const planner::Unplaced& unplaced : plan_.unplaced) {
      if (unplaced.unit != row.unit->id) continue;
      text += fmt::format("  it cannot be placed: {}{}\n", placement::ReasonSentence(unplaced.reason),
                          unplaced.detail.empty() ? "" : fmt::format(" ({})", unplaced.detail));
      if (!unplaced.nearest_type.empty()) {
        text += fmt::format("  nearest is {}: {}\n", unplaced.nearest_type, unplaced.nearest_needs);
      }
    }
    return text + Candidates(kind);
  }

  // How many of the candidates would take the unit if it were alone, and what refuses the others.
  std::string Candidates(Kind kind) const {
    kind.spread.clear();
    kind.colocate.clear();
    kind.exclude.clear();
    placement::World world;
    world.kinds = {kind};
    for (size_t i = 0; i < request_.candidates.size(); ++i) {
      const Candidate& candidate = request_.candidates[i];
      world.nodes.push_back({.id = fmt::format("{:06}", i),
                             .labels = candidate.labels,
                             .taints = candidate.taints,
                             .total = candidate.allocatable,
                             .devices = candidate.devices});
    }
    placement::fast::Placer placer;
    placer.Load(world);
    struct Group {
      int64_t count = 0;
      std::string detail;
    };
    int64_t fits = 0;
    std::map<placement::Reason, Group> refused;
    for (const placement::NodeVerdict& verdict : placer.Feasible(placement::KindIndex(0))) {
      if (verdict.reason == placement::Reason::kNone) {
        ++fits;
        continue;
      }
      Group& group = refused[verdict.reason];
      if (group.count++ == 0) group.detail = verdict.detail;
    }
    std::string text = fmt::format("  {} of {} candidates (type, zone, terms and pool) would take it alone\n", fits,
                                   request_.candidates.size());
    for (const auto& [reason, group] : refused) {
      text += fmt::format("  {} would not: {}, such as \"{}\"\n", group.count, placement::ReasonSentence(reason),
                          group.detail);
    }
    return text;
  }

  std::string Describe(const std::string& id) const {
    const auto machine = machines_.find(id);
    if (machine == machines_.end()) return fmt::format("{}, which is there already", id);
    const Candidate& candidate = request_.candidates[machine->second->candidate];
    return fmt::format("{}: {} in {}, {}, pool {}, {}/h", id, candidate.type, OrDash(candidate.zone),
                       model::CapacityTypeName(candidate.capacity), candidate.pool, FormatPrice(candidate.price));
  }

  std::string OfMachine(const planner::PlannedMachine& machine) const {
    std::string text = fmt::format("machine {}\n", Describe(machine.id));
    if (machine.from_replay) text += "  added because a default scheduler would have left units pending\n";
    return text + Load(machine.id, request_.candidates[machine.candidate].allocatable);
  }

  std::string OfNode(const std::string& id, const planner::NodeFacts& facts) const {
    std::string text = fmt::format("node {}: {} in {}, {}, {}\n", id, OrDash(facts.type), OrDash(facts.zone),
                                   model::CapacityTypeName(facts.capacity),
                                   facts.price ? FormatPrice(*facts.price) + "/h" : "price unknown");
    text += facts.stays_because.empty() ? "  it may go\n" : fmt::format("  it has to stay: {}\n", facts.stays_because);
    if (!kept_.Has(id)) return text + "  the ideal fleet is planned without it\n";
    const auto node = std::ranges::find(request_.world.nodes, id, &placement::Node::id);
    return text + Load(id, model::SubtractSaturating(node->total, node->reserved));
  }

  // How full it is, and with what.
  std::string Load(const std::string& id, const model::Resources& allocatable) const {
    const auto units = units_on_.find(id);
    if (units == units_on_.end()) return "  nothing is on it\n";
    model::Resources sum;
    int64_t devices = 0;
    Rows rows = {{"UNIT", "REQUEST"}};
    for (const std::string_view unit : units->second) {
      const Kind& kind = KindOf(*units_.at(std::string(unit)).unit);
      if (const auto added = model::Add(sum, kind.request)) sum = *added;
      devices += int64_t{kind.devices.whole} * 1000 + kind.devices.milli;
      rows.push_back({std::string(unit), RequestText(kind)});
    }
    std::string text;
    for (const auto& [name, amount] : allocatable.entries()) {
      if (sum.Get(name) == 0) continue;
      text += fmt::format("  {}: {} of {} ({:.0f}%)\n", name, model::FormatQuantityFor(name, sum.Get(name)),
                          model::FormatQuantityFor(name, amount),
                          100.0 * static_cast<double>(sum.Get(name)) / static_cast<double>(amount));
    }
    if (devices > 0) text += fmt::format("  devices: {}\n", model::FormatQuantityFor("devices", devices));
    return text + FormatTable(rows);
  }

  const PlanQuestion& question_;
  const planner::Request& request_;
  const planner::Plan& plan_;
  const planner::KeptNodes kept_;
  std::map<std::string, UnitRow> units_;
  std::map<std::string, const planner::PlannedMachine*> machines_;
  std::map<std::string, std::string_view> place_of_;
  std::map<std::string_view, std::vector<std::string_view>> units_on_;
};

}  // namespace

Result<std::string> ExplainInPlan(const PlanQuestion& question, const planner::Plan& plan, const std::string& name) {
  return Explainer(question, plan).Explain(name);
}

Result<int> ExplainPlan(const PlanFlags& flags, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(PlanQuestion question, ReadPlanQuestion(flags));
  MUSTER_ASSIGN_OR_RETURN(const planner::Plan plan, RunPlan(question.input.request));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ExplainInPlan(question, plan, name));
  Print(text);
  return kOk;
}

}  // namespace muster::cli
