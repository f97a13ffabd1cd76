#include "cli/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/explain_offers.h"
#include "cli/plan_view.h"
#include "cli/table.h"
#include "model/reason.h"

namespace muster::cli {
namespace {

constexpr size_t kMostRows = 20;

std::string Plural(int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string MachinesTable(const std::map<MachineClass, MachineCount>& machines) {
  Rows rows = {{"TYPE", "CAPACITY", "ZONE", "NOW", "THEN", "$/H EACH"}};
  for (const auto& [key, count] : machines) {
    if (count.before == count.after) continue;
    rows.push_back({key.type, std::string(model::CapacityTypeName(key.capacity)), OrDash(key.zone),
                    fmt::to_string(count.before), fmt::to_string(count.after),
                    count.after == 0 ? "-" : FormatPrice(count.price)});
  }
  return rows.size() == 1 ? "" : FormatTable(rows);
}

std::string NodeText(const std::string& node, const LiveOutcome& outcome) {
  const auto fresh = outcome.node_names.find(node);
  return fresh == outcome.node_names.end() ? node : fmt::format("a new machine, {}", fresh->second);
}

std::string MoveText(const Move& move, const LiveOutcome& outcome) {
  if (move.gone) return move.before.empty() ? "end" : fmt::format("end on {}", move.before);
  if (move.after.empty()) return fmt::format("from {} to no node", move.before);
  if (move.before.empty()) return fmt::format("to {}", NodeText(move.after, outcome));
  return fmt::format("from {} to {}", move.before, NodeText(move.after, outcome));
}

// Moves that read alike are one line: "web-3 and 4 more: starts on ...".
std::string MovesText(const LiveOutcome& outcome) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  std::map<std::string, size_t> known;
  int64_t starts = 0;
  int64_t moves = 0;
  int64_t ends = 0;
  for (const Move& move : outcome.moves) {
    (move.gone || move.after.empty() ? ends : move.before.empty() ? starts : moves)++;
    const std::string text = MoveText(move, outcome);
    const auto [at, fresh] = known.emplace(text, groups.size());
    if (fresh) groups.push_back({text, {}});
    groups[at->second].second.push_back(move.workload);
  }
  if (groups.empty()) return "No workload moves.\n";
  std::ranges::stable_sort(groups, [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() > b.second.size() : a.first < b.first;
  });
  std::string text = fmt::format("{} start, {} move, {} end or lose their node:\n", starts, moves, ends);
  for (size_t i = 0; i < std::min(groups.size(), kMostRows); ++i) {
    const auto& [what, names] = groups[i];
    text += fmt::format("  {}{}: {}\n", Printable(names.front()),
                        names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1), Printable(what));
  }
  if (groups.size() > kMostRows) text += fmt::format("  {} lines more; -o json has all\n", groups.size() - kMostRows);
  return text;
}

std::string PendingText(const LiveOutcome& outcome) {
  if (outcome.pending.empty()) return "";
  std::string text =
      fmt::format("{} would have no node:\n", Plural(static_cast<int64_t>(outcome.pending.size()), "workload"));
  for (size_t i = 0; i < std::min(outcome.pending.size(), kMostRows); ++i) {
    const contract::WorkloadView& view = outcome.pending[i];
    text += fmt::format("  {}: {}\n", Printable(view.workload),
                        Printable(view.message.empty() ? view.reason : view.message));
  }
  if (outcome.pending.size() > kMostRows) text += fmt::format("  {} more\n", outcome.pending.size() - kMostRows);
  return text;
}

std::string ShortfallsText(const LiveOutcome& outcome) {
  if (outcome.shortfalls.empty()) return "";
  std::string text =
      fmt::format("{} would be short:\n", Plural(static_cast<int64_t>(outcome.shortfalls.size()), "need"));
  for (const contract::NeedView& view : outcome.shortfalls) {
    const auto cost = CheapestFor(view, outcome.after.machines);
    text += fmt::format("  {} of cluster {}: short of {}, {} ({}){}\n", Printable(view.need.profile.fingerprint()),
                        Printable(view.need.cluster), Printable(view.residual.ToString()),
                        model::ReasonSentence(view.reason), model::ReasonName(view.reason),
                        cost ? "; " + Printable(ResidualText(*cost)) : "");
  }
  return text;
}

}  // namespace

Document MachinesDocument(const std::map<MachineClass, MachineCount>& machines) {
  Document list = Document::List();
  for (const auto& [key, count] : machines) {
    list.Add(Document::Map()
                 .Add("type", key.type)
                 .Add("capacityType", model::CapacityTypeName(key.capacity))
                 .Add("zone", key.zone)
                 .Add("before", count.before)
                 .Add("after", count.after)
                 .Add("pricePerHour", Document::Dollars(count.price)));
  }
  return list;
}

std::string CostChange(model::Money before, model::Money after) {
  const model::Money change{after.micros - before.micros};
  if (change.micros == 0) return fmt::format("{}/h, as now", FormatPrice(after));
  return fmt::format("{}/h instead of {}/h: {} {}", FormatPrice(after), FormatPrice(before),
                     FormatPrice({std::abs(change.micros)}), change.micros > 0 ? "more" : "less");
}

std::string OutcomeText(const LiveOutcome& outcome) {
  int64_t before = 0;
  int64_t after = 0;
  for (const auto& [key, count] : outcome.machines) {
    before += count.before;
    after += count.after;
  }
  std::string text = fmt::format("{}; {} instead of {}.\n", CostChange(outcome.cost_before, outcome.cost_after),
                                 Plural(after, "machine"), before);
  text += MachinesTable(outcome.machines);
  text += MovesText(outcome) + PendingText(outcome) + ShortfallsText(outcome);
  if (!outcome.settled.settled) {
    text += "This is not the end of it: the copy did not come to rest.\n";
    for (const std::string& what : outcome.settled.in_flight) text += fmt::format("  {}\n", Printable(what));
  }
  return text;
}

void AddOutcome(const LiveOutcome& outcome, const std::string& cluster, Document& map) {
  map.Add("cluster", cluster)
      .Add("settled", outcome.settled.settled)
      .Add("costBefore", Document::Dollars(outcome.cost_before))
      .Add("costAfter", Document::Dollars(outcome.cost_after))
      .Add("machines", MachinesDocument(outcome.machines));
  Document moves = Document::List();
  for (const Move& move : outcome.moves) {
    moves.Add(Document::Map()
                  .Add("workload", move.workload)
                  .Add("before", move.before)
                  .Add("after", move.after)
                  .Add("ends", move.gone));
  }
  map.Add("moves", moves);
  Document pending = Document::List();
  for (const contract::WorkloadView& view : outcome.pending) {
    pending.Add(Document::Map().Add("workload", view.workload).Add("reason", view.reason).Add("message", view.message));
  }
  map.Add("pending", pending);
  Document shortfalls = Document::List();
  for (const contract::NeedView& view : outcome.shortfalls) {
    const auto cost = CheapestFor(view, outcome.after.machines);
    shortfalls.Add(Document::Map()
                       .Add("cluster", view.need.cluster)
                       .Add("need", view.need.profile.fingerprint())
                       .Add("group", view.need.group)
                       .Add("residual", view.residual.ToString())
                       .Add("residualPerHour", cost ? Document::Dollars(cost->price) : Document::Null())
                       .Add("reason", model::ReasonName(view.reason)));
  }
  map.Add("shortfalls", shortfalls);
}

std::string CheapestText(const CheapestFleet& fleet, const LiveOutcome& outcome, const std::string& cluster) {
  model::Money own;
  for (const contract::MachineView& view : outcome.after.Bound(cluster))
    own.micros += view.machine->price_per_hour.micros;
  int64_t count = 0;
  std::vector<std::string> parts;
  for (const auto& [key, machines] : fleet.machines) {
    count += machines.after;
    parts.push_back(fmt::format("{} {}{} in {}", machines.after, Printable(key.type),
                                key.capacity == model::CapacityType::kSpot ? " (spot)" : "",
                                Printable(OrDash(key.zone))));
  }
  return fmt::format(
      "The cheapest fleet found for what this cluster then runs, of the machines there are: {} for {}/h ({}); the "
      "machines above cost {}/h.{}\n",
      Plural(count, "machine"), FormatPrice(fleet.cost),
      parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", ")), FormatPrice(own),
      fleet.unplaced == 0 ? "" : fmt::format(" {} fit on none of them.", Plural(fleet.unplaced, "unit")));
}

Document CheapestDocument(const CheapestFleet& fleet) {
  Document machines = Document::List();
  for (const auto& [key, count] : fleet.machines) {
    machines.Add(Document::Map()
                     .Add("type", key.type)
                     .Add("capacityType", model::CapacityTypeName(key.capacity))
                     .Add("zone", key.zone)
                     .Add("count", count.after)
                     .Add("pricePerHour", Document::Dollars(count.price)));
  }
  return Document::Map()
      .Add("cost", Document::Dollars(fleet.cost))
      .Add("machines", machines)
      .Add("unplaced", fleet.unplaced);
}

}  // namespace muster::cli
