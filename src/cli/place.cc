// `muster place`: where the pending pods of a dump would go, node by node, so that any other scheduler can be compared.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "cli/document.h"
#include "cli/plan_files.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "kube/plan_request.h"
#include "placement/fast/placer.h"

namespace muster::cli {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string output = "table";
  std::string strategy = "spread";
  bool feasible = false;
  bool preempt = false;
};

// One unit, and what every node said of it just before it was placed.
struct Answer {
  placement::Outcome outcome;
  std::string missing_node;  // what it is bound to, if the dump does not have it
  std::vector<placement::NodeVerdict> verdicts;
};

std::string Refusals(const placement::Outcome& outcome) {
  std::string text;
  for (const placement::RefusalCount& refusal : outcome.refusals) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", refusal.nodes, refusal.nodes == 1 ? "node" : "nodes",
                        placement::ReasonSentence(refusal.reason));
  }
  return text;
}

Document ToDocument(const Answer& answer, bool feasible) {
  const placement::Outcome& outcome = answer.outcome;
  Document row = Document::Map();
  row.Add("unit", outcome.unit)
      .Add("node", outcome.node.empty() ? Document::Null() : Document(outcome.node))
      .Add("reason", placement::ReasonName(outcome.reason));
  if (!answer.missing_node.empty()) row.Add("missingNode", answer.missing_node);
  Document victims = Document::List();
  for (const std::string& victim : outcome.victims) victims.Add(victim);
  row.Add("victims", std::move(victims));
  if (!feasible) return row;
  Document fits = Document::List();
  Document refused = Document::List();
  for (const placement::NodeVerdict& verdict : answer.verdicts) {
    if (verdict.reason == placement::Reason::kNone) {
      fits.Add(verdict.node);
      continue;
    }
    Document refusal = Document::Map();
    refusal.Add("node", verdict.node)
        .Add("filter", placement::ReasonName(verdict.reason))
        .Add("detail", verdict.detail);
    refused.Add(std::move(refusal));
  }
  row.Add("feasible", std::move(fits)).Add("refused", std::move(refused));
  return row;
}

std::string ToTable(const std::vector<Answer>& answers, bool feasible) {
  Rows rows = {{"UNIT", "NODE", "REASON"}};
  for (const Answer& answer : answers) {
    const placement::Outcome& outcome = answer.outcome;
    std::string reason(placement::ReasonSentence(outcome.reason));
    if (outcome.node.empty()) reason = Refusals(outcome).empty() ? reason : Refusals(outcome);
    if (!answer.missing_node.empty()) {
      reason += fmt::format("; it is bound to {}, which the dump does not have", answer.missing_node);
    }
    rows.push_back({outcome.unit, OrDash(outcome.node), reason});
    if (!feasible) continue;
    for (const placement::NodeVerdict& verdict : answer.verdicts) {
      const bool fits = verdict.reason == placement::Reason::kNone;
      rows.push_back({"", verdict.node,
                      fits ? "fits" : fmt::format("{}: {}", placement::ReasonName(verdict.reason), verdict.detail)});
    }
  }
  return FormatTable(rows);
}

std::vector<Answer> PlaceAll(const Flags& flags, kube::PlaceInput input) {
  placement::Policy policy;
  policy.strategy = flags.strategy == "pack" ? placement::Strategy::kPack : placement::Strategy::kSpread;
  policy.preempt = flags.preempt;
  placement::fast::Placer placer(policy);
  placer.Load(input.world);
  std::vector<Answer> answers;
  if (!flags.feasible) {
    for (placement::Outcome& outcome : placer.Place(input.pending)) answers.push_back({.outcome = std::move(outcome)});
    return answers;
  }
  // In the order of a batch, one by one, so that the verdicts are those of the moment of the choice.
  std::ranges::sort(input.pending, {}, [&](const placement::Unit& unit) {
    return std::tuple(-int64_t{input.world.kinds[unit.kind.value()].priority}, unit.order, unit.id);
  });
  for (const placement::Unit& unit : input.pending) {
    Answer& answer = answers.emplace_back();
    answer.verdicts = placer.Feasible(unit.kind);
    answer.outcome = placer.Place({&unit, 1}).front();
  }
  std::ranges::sort(answers, {}, [](const Answer& answer) { return answer.outcome.unit; });
  return answers;
}

Result<int> RunPlace(const Flags& flags) {
  if (flags.files.empty()) return InvalidArgument("say which dump with -f FILE");
  MUSTER_ASSIGN_OR_RETURN(const UnitFiles files, ReadUnitFiles(flags.files));
  if (!files.has_dump) return InvalidArgument("there are no nodes to place on: give a Kubernetes dump with -f FILE");
  kube::PlaceInput input = kube::MakePlaceInput(files.dump);
  const std::map<std::string, std::string> missing = input.missing_node;
  for (const std::string& note : input.notes) fmt::print(stderr, "{}\n", Printable(note));
  std::vector<Answer> answers = PlaceAll(flags, std::move(input));
  for (Answer& answer : answers) {
    if (const auto at = missing.find(answer.outcome.unit); at != missing.end()) answer.missing_node = at->second;
  }
  if (flags.output == "table") {
    Print(answers.empty() ? "No pod waits for a node.\n" : ToTable(answers, flags.feasible));
  } else {
    for (const Answer& answer : answers) Print(ToDocument(answer, flags.feasible).ToJson() + "\n");
  }
  return kOk;
}

}  // namespace

void AddPlace(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  app.AddVerb("place", "Say where the pending pods of a Kubernetes dump would go; nothing is changed")
      .Option("-f,--file", flags->files, "The dump: a file, a directory, or - for standard input")
      .Choice("-o,--output", flags->output, {"table", "json"}, "Form of the answer; json is one object per unit")
      .Choice("--strategy", flags->strategy, {"spread", "pack"}, "The least or the most used node first")
      .Flag("--feasible", flags->feasible, "Every node that fits, and the first filter that refuses each other one")
      .Flag("--preempt", flags->preempt, "A unit that no node fits may evict units of lower priority")
      .Example("muster place -f dump.json")
      .Example("muster place -f dump.json --feasible -o json | jq -c '[.unit,.node,.feasible]'")
      .Run([flags]() -> Result<int> { return RunPlace(*flags); });
}

}  // namespace muster::cli
