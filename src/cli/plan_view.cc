#include "cli/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "cli/table.h"
#include "model/quantity.h"
#include "placement/reason.h"

namespace muster::cli {
namespace {

using model::Money;

constexpr int64_t kHoursPerMonth = 730;
constexpr size_t kMostRows = 20;   // of a list on the first screen
constexpr size_t kMostNotes = 12;  // about the input

std::string Thousands(int64_t number) {
  std::string digits = fmt::to_string(number);
  for (ptrdiff_t at = static_cast<ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string Count(int64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", Thousands(number), thing, number == 1 ? "" : "s");
}

// Units of one owner and reason are one line.
struct UnplacedRow {
  std::string first;
  int64_t count = 0;
  const planner::Unplaced* unplaced = nullptr;
};

std::vector<UnplacedRow> GroupUnplaced(const PlanQuestion& question, const planner::Plan& plan) {
  std::vector<UnplacedRow> rows;
  std::map<std::tuple<std::string, placement::Reason, std::string>, size_t> known;
  for (const planner::Unplaced& unplaced : plan.unplaced) {
    const auto owner = question.input.unit_owner.find(unplaced.unit);
    const std::string group = owner == question.input.unit_owner.end() ? unplaced.unit : owner->second;
    const auto [at, is_new] = known.emplace(std::tuple(group, unplaced.reason, unplaced.detail), rows.size());
    if (is_new) rows.push_back({.first = unplaced.unit, .unplaced = &unplaced});
    ++rows[at->second].count;
  }
  return rows;
}

std::string MachinesTable(const planner::Request& request, const planner::Plan& plan) {
  struct Row {
    int64_t count = 0;
    int64_t units = 0;
    Money price;
  };
  std::map<std::string_view, int64_t> units_on;
  for (const planner::Assignment& assignment : plan.assignments) ++units_on[assignment.node];
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Row> groups;
  for (const planner::PlannedMachine& machine : plan.machines) {
    const planner::Candidate& candidate = request.candidates[machine.candidate];
    Row& row = groups[{candidate.pool, candidate.type, candidate.zone,
                       std::string(model::CapacityTypeName(candidate.capacity))}];
    ++row.count;
    row.units += units_on[machine.id];
    row.price = candidate.price;
  }
  Rows rows = {{"MACHINES", "TYPE", "ZONE", "CAPACITY", "POOL", "UNITS", "$/H EACH", "$/H"}};
  for (const auto& [key, row] : groups) {
    const auto& [pool, type, zone, capacity] = key;
    rows.push_back({Thousands(row.count), type, OrDash(zone), capacity, pool, Thousands(row.units),
                    FormatPrice(row.price), FormatPrice({row.price.micros * row.count})});
  }
  return FormatTable(rows);
}

std::string UtilisationTable(const planner::Plan& plan) {
  Rows rows = {{"RESOURCE", "REQUESTED", "ALLOCATABLE", "USED"}};
  for (const planner::Utilisation& row : plan.utilisation) {
    if (row.requested == 0 || row.allocatable == 0) continue;
    const double share = 100.0 * static_cast<double>(row.requested) / static_cast<double>(row.allocatable);
    const auto amount = [&](int64_t milli) {
      if (row.resource == "memory" || row.resource.contains("storage")) {
        return fmt::format("{:.1f}Gi", static_cast<double>(milli) / 1000 / (1 << 30));
      }
      return fmt::format("{:.1f}", static_cast<double>(milli) / 1000);
    };
    rows.push_back({row.resource, amount(row.requested), amount(row.allocatable), fmt::format("{:.0f}%", share)});
  }
  return rows.size() == 1 ? "" : FormatTable(rows);
}

std::string UnplacedTable(const PlanQuestion& question, const planner::Plan& plan) {
  const std::vector<UnplacedRow> groups = GroupUnplaced(question, plan);
  Rows rows = {{"CANNOT BE PLACED", "UNITS", "REASON", "WHAT WOULD TAKE IT"}};
  for (const UnplacedRow& row : groups) {
    if (rows.size() > kMostRows) break;
    const planner::Unplaced& unplaced = *row.unplaced;
    const std::string reason =
        unplaced.detail.empty() ? std::string(placement::ReasonSentence(unplaced.reason)) : unplaced.detail;
    const std::string nearest = unplaced.nearest_needs.empty()
                                    ? unplaced.nearest_type
                                    : fmt::format("{}: {}", unplaced.nearest_type, unplaced.nearest_needs);
    rows.push_back({row.first, Thousands(row.count), reason, OrDash(nearest)});
  }
  std::string text = FormatTable(rows);
  if (groups.size() >= rows.size()) text += fmt::format("{} more; -o json has all\n", groups.size() - rows.size() + 1);
  return text;
}

std::string UnitsLine(const kube::PlanInput& input) {
  std::string text = Count(input.units, "unit");
  if (input.pending > 0) text += fmt::format(", {} of them pending", Thousands(input.pending));
  if (input.daemon_pods > 0) {
    text +=
        fmt::format("; {} of DaemonSets and static pods, counted with their nodes", Count(input.daemon_pods, "pod"));
  }
  if (input.terminating_pods > 0)
    text += fmt::format("; {} terminating, not counted", Count(input.terminating_pods, "pod"));
  return text;
}

std::string Saving(Money before, Money after) {
  const Money saved{before.micros - after.micros};
  const auto month = [](Money money) { return Thousands(money.micros * kHoursPerMonth / 1'000'000); };
  if (saved.micros == 0) return "the same.";
  const double share =
      100.0 * static_cast<double>(std::abs(saved.micros)) / static_cast<double>(std::max<int64_t>(1, before.micros));
  const Money size{std::abs(saved.micros)};
  return fmt::format("{} {} ({:.0f}%, about ${} a month).", FormatPrice(size), saved.micros > 0 ? "less" : "more",
                     share, month(size));
}

// The sentence people came for.
std::string Headline(const PlanQuestion& question, const planner::Plan& plan) {
  const kube::PlanInput& input = question.input;
  const auto machines = static_cast<int64_t>(plan.machines.size());
  const bool whole = plan.unplaced.empty();
  if (!whole && (input.nodes == 0 || machines > 0 || input.request.keep != planner::Keep::kNodes)) {
    return fmt::format("{} cannot be placed; {} would carry the rest for {}/h{}.",
                       Count(static_cast<int64_t>(plan.unplaced.size()), "unit"), Count(machines, "machine"),
                       FormatPrice(plan.cost_machines),
                       plan.cost_before ? fmt::format("; you pay {}/h", FormatPrice(*plan.cost_before)) : "");
  }
  if (input.nodes == 0) {
    return fmt::format("{} would carry it for {}/h.", Count(machines, "machine"), FormatPrice(plan.cost_machines));
  }
  if (input.request.keep == planner::Keep::kNodes) {
    if (machines == 0) {
      if (!plan.unplaced.empty()) return "No machine of the catalogue would take what has no node.";
      if (input.pending == 0) return "Every unit has a node: nothing to buy.";
      return fmt::format("There is room for {} on the nodes: nothing to buy.", Count(input.pending, "pending unit"));
    }
    return fmt::format(
        "{} more would take what is pending, for {}/h{}.", Count(machines, "machine"), FormatPrice(plan.cost_machines),
        plan.cost_before && plan.cost_after
            ? fmt::format(": {}/h instead of {}/h", FormatPrice(*plan.cost_after), FormatPrice(*plan.cost_before))
            : "");
  }
  const auto fixed = static_cast<int64_t>(input.fixed.size());
  const std::string kept = fmt::format("{} that {}", Count(fixed, "node"), fixed == 1 ? "stays" : "stay");
  std::string fleet = Count(machines, "machine");
  if (fixed > 0) fleet = machines == 0 ? kept : fmt::format("{}, besides {},", fleet, kept);
  if (!plan.cost_before || !plan.cost_after) {
    return fmt::format("{} would carry it for {}/h; what you pay now, and so the saving, is unknown.", fleet,
                       FormatPrice(plan.cost_after.value_or(plan.cost_machines)));
  }
  return fmt::format("You pay {}/h; {} would carry it for {}/h: {}", FormatPrice(*plan.cost_before), fleet,
                     FormatPrice(*plan.cost_after), Saving(*plan.cost_before, *plan.cost_after));
}

// About the plan, besides what the input is noted for.
std::vector<std::string> PlanNotes(const PlanQuestion& question, const planner::Plan& plan) {
  std::vector<std::string> notes;
  const std::vector<std::string>& unpriced = plan.unpriced_nodes;
  if (!unpriced.empty()) {
    std::set<std::string> types;
    for (const std::string& id : unpriced) {
      const auto facts = question.input.request.nodes.find(id);
      if (facts != question.input.request.nodes.end()) types.insert(OrDash(facts->second.type));
    }
    notes.push_back(fmt::format("the catalogue has no price for {}, among them {}{}",
                                Count(static_cast<int64_t>(unpriced.size()), "node"), unpriced.front(),
                                types.empty() ? "" : fmt::format("; types {}", fmt::join(types, ", "))));
  }
  if (plan.replay.done && plan.replay.machines_added > 0) {
    notes.push_back(
        fmt::format("a default scheduler would have left {} pending on the tightest machines: {} for {}/h were added; "
                    "--exact leaves "
                    "them out",
                    Count(plan.replay.pending_at_first, "unit"), Count(plan.replay.machines_added, "machine"),
                    FormatPrice(plan.replay.cost_added)));
  }
  if (plan.replay.pending_at_last > 0) {
    notes.push_back(fmt::format(
        "{0} would stay pending under a default scheduler{1}: where it puts the others, rules between units or full "
        "nodes keep {2} out; muster explain --plan UNIT shows where the plan has {2}",
        Count(plan.replay.pending_at_last, "unit"),
        plan.replay.machines_added > 0 ? ", in spite of the added machines" : "",
        plan.replay.pending_at_last == 1 ? "it" : "them"));
  }
  if (plan.stopped_early) notes.emplace_back("the search was stopped by the clock: another run may find another plan");
  if (question.input.nodes > 0) {
    notes.emplace_back(
        "a dump is a moment, not the peak: plan with a dump of your busiest hour, and leave room to grow");
  }
  notes.push_back(PriceNote(question));
  return notes;
}

Document MachineDocument(const planner::PlannedMachine& machine, const planner::Candidate& candidate,
                         const std::vector<std::string_view>& units) {
  Document document = Document::Map();
  document.Add("id", machine.id)
      .Add("type", candidate.type)
      .Add("zone", candidate.zone)
      .Add("pool", candidate.pool)
      .Add("capacityType", model::CapacityTypeName(candidate.capacity))
      .Add("price", Document::Dollars(candidate.price))
      .Add("fromReplay", machine.from_replay);
  Document list = Document::List();
  for (const std::string_view unit : units) list.Add(unit);
  document.Add("units", std::move(list));
  return document;
}

Document OrNull(const std::optional<Money>& money) { return money ? Document::Dollars(*money) : Document::Null(); }

}  // namespace

std::string FormatPrice(Money money) {
  const bool negative = money.micros < 0;
  const int64_t thousandths = (std::abs(money.micros) + 500) / 1000;
  const std::string whole = Thousands(thousandths / 1000);
  const int64_t rest = thousandths % 1000;
  const std::string decimals = rest % 10 == 0 ? fmt::format("{:02}", rest / 10) : fmt::format("{:03}", rest);
  return fmt::format("{}${}.{}", negative ? "-" : "", whole, decimals);
}

std::string InputNotes(const PlanQuestion& question) {
  const std::vector<std::string>& notes = question.input.notes;
  std::string text;
  for (size_t i = 0; i < notes.size() && i < kMostNotes; ++i) text += fmt::format("* {}\n", notes[i]);
  if (notes.size() > kMostNotes) text += fmt::format("* {} more; -o json has all\n", notes.size() - kMostNotes);
  return text;
}

std::string PriceNote(const PlanQuestion& question) {
  return fmt::format("prices: {}; spot is never priced as on-demand", question.catalogue_source);
}

bool HasChanges(const PlanQuestion& question, const planner::Plan& plan) {
  if (!plan.unplaced.empty()) return true;
  if (question.input.request.keep == planner::Keep::kNodes) return !plan.machines.empty();
  if (!plan.machines.empty() && question.input.pending > 0) return true;
  if (!plan.cost_before || !plan.cost_after) {
    return !plan.machines.empty() || question.input.nodes > static_cast<int64_t>(question.input.fixed.size());
  }
  return *plan.cost_after < *plan.cost_before;
}

std::string PlanTable(const PlanQuestion& question, const planner::Plan& plan) {
  std::string text = fmt::format("{}\n", UnitsLine(question.input));
  if (question.input.nodes > 0) {
    text += fmt::format("{}, {}\n", Count(question.input.nodes, "node"),
                        plan.cost_before ? FormatPrice(*plan.cost_before) + "/h" : "price unknown");
  }
  text += fmt::format("\n{}\n", Headline(question, plan));
  if (!plan.machines.empty()) text += "\n" + MachinesTable(question.input.request, plan);
  if (const std::string table = UtilisationTable(plan); !table.empty()) text += "\n" + table;
  if (!plan.unplaced.empty()) text += "\n" + UnplacedTable(question, plan);
  if (!plan.machines.empty() && question.input.request.keep == planner::Keep::kNone && plan.lower_bound.micros > 0) {
    text += fmt::format("\nNo machines of this catalogue with that capacity cost less than {}/h.\n",
                        FormatPrice(plan.lower_bound));
  }
  text += "\n";
  text += InputNotes(question);
  for (const std::string& note : PlanNotes(question, plan)) text += fmt::format("* {}\n", note);
  return text;
}

Document PlanDocument(const PlanQuestion& question, const planner::Plan& plan) {
  const kube::PlanInput& input = question.input;
  Document root = Document::Map();
  root.Add("keep", planner::KeepName(input.request.keep))
      .Add("units", input.units)
      .Add("pending", input.pending)
      .Add("nodes", input.nodes)
      .Add("withoutRequests", input.without_requests)
      .Add("costBefore", OrNull(plan.cost_before))
      .Add("costAfter", OrNull(plan.cost_after))
      .Add("costMachines", Document::Dollars(plan.cost_machines))
      .Add("lowerBound", Document::Dollars(plan.lower_bound));
  std::map<std::string_view, std::vector<std::string_view>> units_on;
  for (const planner::Assignment& assignment : plan.assignments) units_on[assignment.node].push_back(assignment.unit);
  Document machines = Document::List();
  for (const planner::PlannedMachine& machine : plan.machines) {
    machines.Add(MachineDocument(machine, input.request.candidates[machine.candidate], units_on[machine.id]));
  }
  root.Add("machines", std::move(machines));
  Document unplaced = Document::List();
  for (const planner::Unplaced& unit : plan.unplaced) {
    Document row = Document::Map();
    row.Add("unit", unit.unit)
        .Add("reason", placement::ReasonName(unit.reason))
        .Add("detail", unit.detail)
        .Add("nearestType", unit.nearest_type)
        .Add("nearestNeeds", unit.nearest_needs);
    unplaced.Add(std::move(row));
  }
  root.Add("unplaced", std::move(unplaced));
  Document utilisation = Document::Map();
  for (const planner::Utilisation& row : plan.utilisation) {
    Document amounts = Document::Map();
    amounts.Add("requested", model::FormatQuantityFor(row.resource, row.requested))
        .Add("allocatable", model::FormatQuantityFor(row.resource, row.allocatable));
    utilisation.Add(row.resource, std::move(amounts));
  }
  root.Add("utilisation", std::move(utilisation));
  Document replay = Document::Map();
  replay.Add("done", plan.replay.done)
      .Add("pendingAtFirst", plan.replay.pending_at_first)
      .Add("pendingAtLast", plan.replay.pending_at_last)
      .Add("machinesAdded", plan.replay.machines_added)
      .Add("costAdded", Document::Dollars(plan.replay.cost_added));
  root.Add("replay", std::move(replay));
  Document notes = Document::List();
  for (const std::string& note : question.input.notes) notes.Add(note);
  for (const std::string& note : PlanNotes(question, plan)) notes.Add(note);
  root.Add("notes", std::move(notes));
  root.Add("digest", fmt::format("{:016x}", planner::Digest(plan)));
  return root;
}

}  // namespace muster::cli
