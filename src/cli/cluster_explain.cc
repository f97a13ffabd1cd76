// `muster explain workload`: why a workload is where it is, or nowhere.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_documents.h"
#include "cli/cluster_names.h"
#include "cli/cluster_refusals.h"
#include "cli/cluster_tables.h"

namespace muster::cli {
namespace {

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  std::string output = "table";
};

Document DocumentOf(const contract::Explanation& explanation) {
  Document story = Document::List();
  for (const std::string& sentence : explanation.story) story.Add(sentence);
  Document nodes = Document::List();
  for (const contract::NodeRefusal& refusal : explanation.nodes) nodes.Add(RefusalDocument(refusal));
  Document events = Document::List();
  for (const contract::EventView& event : explanation.events) events.Add(EventDocument(event));
  return Document::Map()
      .Add("workload", WorkloadDocument(explanation.workload))
      .Add("story", story)
      .Add("nodes", nodes)
      .Add("events", events);
}

std::string Headline(const contract::WorkloadView& view) {
  const std::string_view phase = model::WorkloadPhaseName(view.phase);
  if (!view.node.empty()) return fmt::format("workload {} is {} on node {}", view.workload, phase, view.node);
  const std::string why = view.message.empty() ? view.reason : view.message;
  return fmt::format("workload {} is {} and has no node{}", view.workload, phase, why.empty() ? "" : ": " + why);
}

void PrintText(const contract::Explanation& explanation, bool wide) {
  Print(Printable(Headline(explanation.workload)) + "\n");
  for (const std::string& sentence : explanation.story) {
    if (sentence != explanation.workload.message) Print(Printable(sentence) + "\n");  // the head line has it
  }
  if (explanation.nodes.empty()) return Print("no nodes have joined\n");
  Print("\n");
  if (!wide) return Print(FormatTable(RefusalsByClass(explanation.nodes)));
  Rows rows = {{"NODE", "REASON", "DETAIL"}};
  for (const contract::NodeRefusal& refusal : explanation.nodes) {
    rows.push_back({refusal.node, refusal.reason.empty() ? "fits" : refusal.reason, OrDash(refusal.detail)});
  }
  Print(FormatTable(rows));
}

Result<int> Explain(const ClusterAccess& access, const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseNames(flags.words, ClusterKind::kWorkload));
  if (names.size() != 1) return InvalidArgument("name one workload");
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  const auto explanation = session.Ask<contract::Explanation>(contract::ExplainWorkload{.workload = names[0]});
  if (!explanation) return std::unexpected(NamedNotFound(explanation.error(), "workload", names[0]));
  if (flags.output == "json") {
    Print(DocumentOf(*explanation).ToJson() + "\n");
  } else if (flags.output == "yaml") {
    Print(DocumentOf(*explanation).ToYaml());
  } else {
    PrintText(*explanation, flags.output == "wide");
  }
  return kOk;
}

}  // namespace

void AddExplainWorkload(Verb& explain, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = explain.AddVerb("workload", "Why a workload is where it is, or which filter of which nodes refuses it");
  verb.Arguments("NAME", flags->words, "The workload")
      .Choice("-o,--output", flags->output, {"table", "wide", "json", "yaml"}, "Form; wide lists every node");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster explain workload web-7").Example("muster explain workload web-7 -o wide").Run([access, flags] {
    return Explain(access, *flags);
  });
}

}  // namespace muster::cli
