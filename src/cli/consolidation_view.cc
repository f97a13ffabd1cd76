#include "cli/consolidation_view.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/plan_view.h"
#include "cli/table.h"

namespace muster::cli {
namespace {

constexpr size_t kMostNames = 8;  // of a list of nodes on one line

constexpr std::string_view kNotReplayed =
    "every unit must go where its move says: no room was added for a scheduler that spreads, as --keep none adds "
    "it, so this can cost less than that";

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostNames; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
  if (names.size() > kMostNames) text += fmt::format(" and {} more", names.size() - kMostNames);
  return text;
}

// "2 m5.large in a", or nothing to buy.
std::string Bought(const planner::Request& request, const planner::Wave& wave) {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const planner::PlannedMachine& machine : wave.machines) {
    const planner::Candidate& candidate = request.candidates[machine.candidate];
    ++counts[{candidate.type, candidate.zone}];
  }
  std::string text;
  for (const auto& [what, count] : counts) {
    text += fmt::format("{}{} {} in {}", text.empty() ? "" : ", ", count, what.first, OrDash(what.second));
  }
  return OrDash(text);
}

// Of all nodes; nothing if one is unpriced.
std::optional<model::Money> Cost(const planner::Request& request) {
  model::Money sum;
  for (const auto& [id, facts] : request.nodes) {
    if (!facts.price) return std::nullopt;
    sum.micros += facts.price->micros;
  }
  return sum;
}

std::string Headline(const PlanQuestion& question, const planner::Consolidation& consolidation) {
  size_t nodes = 0;
  for (const planner::Wave& wave : consolidation.waves) nodes += wave.nodes.size();
  if (nodes == 0) return "No node could go.";
  const std::optional<model::Money> before = Cost(question.input.request);
  return fmt::format("{} could go in {} wave{}: {}/h less{}.", nodes == 1 ? "1 node" : fmt::format("{} nodes", nodes),
                     consolidation.waves.size(), consolidation.waves.size() == 1 ? "" : "s",
                     FormatPrice(consolidation.saved),
                     before ? fmt::format(" than the {}/h you pay", FormatPrice(*before)) : "");
}

}  // namespace

std::string ConsolidationTable(const PlanQuestion& question, const planner::Consolidation& consolidation) {
  std::string text = Headline(question, consolidation) + "\n";
  if (!consolidation.waves.empty()) {
    Rows rows = {{"WAVE", "EVICT", "NODES THAT GO", "BUY FIRST"}};
    for (size_t i = 0; i < consolidation.waves.size(); ++i) {
      const planner::Wave& wave = consolidation.waves[i];
      rows.push_back({fmt::to_string(i + 1),
                      fmt::format("{} unit{}", wave.evictions.size(), wave.evictions.size() == 1 ? "" : "s"),
                      Names(wave.nodes), Bought(question.input.request, wave)});
    }
    text += "\n" + FormatTable(rows);
  }
  if (!consolidation.cannot_go.empty()) {
    Rows rows = {{"CANNOT GO", "BECAUSE"}};
    for (const planner::Stay& stay : consolidation.cannot_go) rows.push_back({stay.node, stay.because});
    text += "\n" + FormatTable(rows);
  }
  text += "\n" + InputNotes(question);
  if (!consolidation.not_worth.empty()) {
    text += fmt::format("* no cheaper place for what is on {}\n", Names(consolidation.not_worth));
  }
  if (!consolidation.unpriced.empty()) {
    text += fmt::format("* the catalogue has no price for {}: not judged\n", Names(consolidation.unpriced));
  }
  if (question.input.pending > 0) {
    text += fmt::format("* pending units are not counted, and {} {}: what they need must stay or be bought\n",
                        question.input.pending, question.input.pending == 1 ? "waits" : "wait");
  }
  text +=
      "* a wave begins when its machines are Ready and every unit of the wave before is Ready again; -o json lists "
      "each move\n";
  if (!consolidation.waves.empty()) text += fmt::format("* {}\n", kNotReplayed);
  text += "* a dump is a moment, not the peak: leave room to grow\n";
  text += fmt::format("* {}\n", PriceNote(question));
  return text;
}

Document ConsolidationDocument(const PlanQuestion& question, const planner::Consolidation& consolidation) {
  const planner::Request& request = question.input.request;
  Document root = Document::Map();
  root.Add("saved", Document::Dollars(consolidation.saved));
  Document waves = Document::List();
  for (const planner::Wave& wave : consolidation.waves) {
    Document machines = Document::List();
    for (const planner::PlannedMachine& machine : wave.machines) {
      const planner::Candidate& candidate = request.candidates[machine.candidate];
      Document row = Document::Map();
      row.Add("id", machine.id).Add("type", candidate.type).Add("zone", candidate.zone).Add("pool", candidate.pool);
      row.Add("price", Document::Dollars(candidate.price));
      machines.Add(std::move(row));
    }
    Document evictions = Document::List();
    for (const planner::Eviction& eviction : wave.evictions) {
      Document row = Document::Map();
      row.Add("unit", eviction.unit).Add("from", eviction.from).Add("to", eviction.to);
      evictions.Add(std::move(row));
    }
    Document nodes = Document::List();
    for (const std::string& node : wave.nodes) nodes.Add(node);
    Document row = Document::Map();
    row.Add("machines", std::move(machines)).Add("evictions", std::move(evictions)).Add("nodes", std::move(nodes));
    waves.Add(std::move(row));
  }
  root.Add("waves", std::move(waves));
  Document stays = Document::List();
  for (const planner::Stay& stay : consolidation.cannot_go) {
    Document row = Document::Map();
    row.Add("node", stay.node).Add("because", stay.because);
    stays.Add(std::move(row));
  }
  root.Add("cannotGo", std::move(stays));
  const auto list = [](const std::vector<std::string>& names) {
    Document document = Document::List();
    for (const std::string& name : names) document.Add(name);
    return document;
  };
  root.Add("notWorth", list(consolidation.not_worth)).Add("unpriced", list(consolidation.unpriced));
  std::vector<std::string> notes = question.input.notes;
  if (!consolidation.waves.empty()) notes.emplace_back(kNotReplayed);
  notes.push_back(PriceNote(question));
  root.Add("notes", list(notes));
  return root;
}

}  // namespace muster::cli
