// `muster explain`: the reason chain of a workload, node, need or machine across both halves, now or at a moment in the
// journals; and why a plan is as it is.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster_documents.h"
#include "cli/cluster_names.h"
#include "cli/explain_chain.h"
#include "cli/explain_plan.h"
#include "cli/halves.h"
#include "cli/journal_halves.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/up_tree.h"
#include "cli/verbs.h"
#include "model/names.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

struct Flags {
  HalvesFlags halves;
  std::vector<std::string> words;
  std::string output = "table";
  std::string group;
  std::string at;
  std::vector<std::string> journals;
  ChainOptions chain;
};

using Explainer = std::function<Result<ExplainedChain>(Halves&, const std::string& name, const Flags&)>;

Document WorkloadDocumentOf(const contract::Explanation& explanation) {
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

void PrintChain(const ExplainedChain& chain, const std::string& output) {
  if (output == "table" || output == "wide") return Print(ChainText(chain));
  Document document = chain.workload ? WorkloadDocumentOf(*chain.workload) : Document::Map();
  document.Add("chain", ChainDocument(chain));
  Print(output == "json" ? document.ToJson() + "\n" : document.ToYaml());
}

// A directory in which `muster up` works stands for the journals of its scheduler and its shard; the usual one is meant
// where none is given.
Result<std::vector<std::string>> JournalsOf(const std::vector<std::string>& given) {
  std::vector<std::string> journals;
  const auto add_of_up = [&journals](const std::filesystem::path& dir) {
    bool found = false;
    for (const char* const part : {"scheduler", "shard"}) {
      const std::filesystem::path journal = UpJournal(dir, part);
      std::error_code error;
      if (!std::filesystem::exists(journal, error)) continue;
      journals.push_back(journal.string());
      found = true;
    }
    return found;
  };
  for (const std::string& directory : given) {
    if (!add_of_up(directory)) journals.push_back(directory);
  }
  if (given.empty() && !add_of_up(DefaultUpDir(false))) {
    return InvalidArgument(
        fmt::format("--at needs the journals, and {} has none: --journal DIR, once for the scheduler and once for the "
                    "shard, or the data directory of a muster up",
                    DefaultUpDir(false).string()));
  }
  return journals;
}

Result<int> Run(const ClusterAccess& access, const Flags& flags, const std::string& name, const Explainer& explain) {
  std::unique_ptr<Halves> halves = std::make_unique<RunningHalves>(access, flags.halves);
  if (!flags.at.empty()) {
    const auto at = model::ParseWallTime(flags.at);
    if (!at) return InvalidArgument(fmt::format("--at: {}", at.error().message()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> journals, JournalsOf(flags.journals));
    std::unique_ptr<JournalHalves> past;
    {
      Progress progress("stepping through the journals", 0);
      MUSTER_ASSIGN_OR_RETURN(past, JournalHalves::Open(journals, *at, [&progress] { progress.Update(0); }));
    }
    for (const std::string& note : past->notes()) fmt::print(stderr, "{}\n", Printable(note));
    halves = std::move(past);
  } else if (!flags.journals.empty()) {
    return InvalidArgument("--journal needs --at TIME, such as 2026-01-31T12:00:00Z: the moment to explain");
  }
  MUSTER_ASSIGN_OR_RETURN(const ExplainedChain chain, explain(*halves, name, flags));
  PrintChain(chain, flags.output);
  return kOk;
}

struct Subject {
  std::string word;
  std::string summary;
  std::string argument;
  std::vector<std::string> examples;
  Explainer explain;
};

std::vector<Subject> Subjects() {
  const Explainer of_workload = [](Halves& halves, const std::string& name, const Flags& flags) {
    return ExplainWorkload(halves, name, flags.chain);
  };
  return {{.word = "workload",
           .summary = "Why a workload is where it is: nodes that refuse it, its need, and the machines for that",
           .argument = "NAME",
           .examples = {"muster explain workload web-7", "muster explain workload web-7 -o wide",
                        "muster explain workload web-7 --at 2026-01-31T12:00:00Z",
                        "muster explain workload web-7 --at 2026-01-31T12:00:00Z --journal /var/lib/muster/journal"},
           .explain = of_workload},
          {.word = "member",
           .summary = "The same of a member of a set",
           .argument = "NAME",
           .examples = {"muster explain member web-7"},
           .explain = of_workload},
          {.word = "node",
           .summary = "What a node carries, and why its machine was bought",
           .argument = "NAME",
           .examples = {"muster explain node local-000003"},
           .explain = [](Halves& halves, const std::string& name,
                         const Flags& flags) { return ExplainNode(halves, name, flags.chain); }},
          {.word = "machine",
           .summary = "Why a machine is where it is: for which need and workloads, and why not a cheaper one",
           .argument = "ID",
           .examples = {"muster explain machine sim-m-17"},
           .explain = [](Halves& halves, const std::string& name,
                         const Flags& flags) { return ExplainMachine(halves, name, flags.chain); }},
          {.word = "need",
           .summary = "Why a need is or is not satisfied, from which workloads it comes and which machines serve it",
           .argument = "ID",
           .examples = {"muster explain need --cluster blue 'p=1000|ipb=1|rpb=1|reqs=|spr='",
                        "muster explain need workload/web-7"},
           .explain = [](Halves& halves, const std::string& name, const Flags& flags) {
             return ExplainNeed(halves, name, flags.group, flags.chain);
           }}};
}

// The name alone, or behind its type: "web-7", "workload/web-7".
Result<std::string> OneName(const std::vector<std::string>& words, const std::string& word) {
  if (words.size() != 1) return InvalidArgument(fmt::format("name one {}", word));
  const std::string prefix = word + "/";
  return words[0].starts_with(prefix) ? words[0].substr(prefix.size()) : words[0];
}

// The subject that a type names as other verbs take it: "wl", "nodes", "machine".
Result<std::string> SubjectOf(std::string_view type) {
  for (const std::string_view word : {"member", "machine", "need"}) {
    if (type == word || type == fmt::format("{}s", word)) return std::string(word);
  }
  const auto kind = ParseClusterKind(type);
  if (kind && *kind == ClusterKind::kWorkload) return std::string("workload");
  if (kind && *kind == ClusterKind::kNode) return std::string("node");
  if (kind && *kind == ClusterKind::kSet) {
    return InvalidArgument("a set is explained by its members: muster describe set/NAME lists them");
  }
  return InvalidArgument(
      fmt::format("{} is nothing that can be explained; write workload/NAME, node/NAME, machine/ID or need/ID",
                  model::Quoted(type)));
}

// What words behind `explain` itself name: NAME of a workload, TYPE/NAME or TYPE NAME.
struct Named {
  std::string subject = "workload";
  std::string name;
};
Result<Named> NamedBy(const std::vector<std::string>& words) {
  if (words.size() > 2) return InvalidArgument("one thing is explained at a time");
  Named named{.name = words.back()};
  if (words.size() == 2) {
    MUSTER_ASSIGN_OR_RETURN(named.subject, SubjectOf(words[0]));
  } else if (const size_t slash = words[0].find('/'); slash != std::string::npos) {
    MUSTER_ASSIGN_OR_RETURN(named.subject, SubjectOf(words[0].substr(0, slash)));
    named.name = words[0].substr(slash + 1);
  }
  if (named.name.empty()) return InvalidArgument(fmt::format("name the {}", named.subject));
  return named;
}

void AddExplainFlags(Verb& verb, Flags& flags) {
  verb.Choice("-o,--output", flags.output, {"table", "wide", "json", "yaml"}, "Form; wide lists every node")
      .Option("--cluster", flags.chain.cluster, "How the shard names the cluster; found if it can be")
      .Option("--at", flags.at, "Explain this moment, such as 2026-01-31T12:00:00Z, from the journals")
      .Option("--journal", flags.journals,
              "With --at: what a scheduler or a shard wrote, once for each, or where a muster up works; the usual up");
  AddHalvesFlags(verb, flags.halves);
}

// What runs without a subject's verb, and the flags that it has.
struct NamedExplainer {
  std::shared_ptr<Flags> flags;
  std::function<Result<int>()> run;
};
NamedExplainer AddSubjects(Verb& explain, const ClusterAccess& access) {
  // The same flags for all: one that stands before the subject holds for it too.
  const auto flags = std::make_shared<Flags>();
  const auto run = [access, flags](const Subject& subject, const std::string& name) {
    flags->chain.every_node = flags->output == "wide";
    return Run(access, *flags, name, subject.explain);
  };
  for (const Subject& subject : Subjects()) {
    Verb verb = explain.AddVerb(subject.word, subject.summary);
    verb.Arguments(subject.argument, flags->words, fmt::format("The {}", subject.word));
    AddExplainFlags(verb, *flags);
    verb.NamesOf(subject.word == "member" ? "workload" : subject.word == "need" ? "" : subject.word);
    if (subject.word == "need") verb.Option("--group", flags->group, "Its group, if it has one");
    for (const std::string& example : subject.examples) verb.Example(example);
    verb.Run([flags, run, subject]() -> Result<int> {
      MUSTER_ASSIGN_OR_RETURN(const std::string name, OneName(flags->words, subject.word));
      return run(subject, name);
    });
  }
  explain.Arguments("TYPE/NAME", flags->words, "What to explain: TYPE/NAME, or the name of a workload")
      .NamesOf("workload")
      .Option("--group", flags->group, "Of a need: its group, if it has one");
  AddExplainFlags(explain, *flags);
  return {
      .flags = flags, .run = [flags, run]() -> Result<int> {
        if (flags->words.empty()) {
          return InvalidArgument(
              "say what to explain: workload/NAME, node/NAME, machine/ID, need/ID, or --plan NAME; see muster explain "
              "--help");
        }
        MUSTER_ASSIGN_OR_RETURN(const Named named, NamedBy(flags->words));
        for (const Subject& subject : Subjects()) {
          if (subject.word == named.subject) return run(subject, named.name);
        }
        return InvalidArgument(fmt::format("{} cannot be explained", named.subject));
      }};
}

// A plan is explained as text, and has neither a past nor a shard.
Status CheckForPlan(const Flags& flags) {
  if (flags.output != "table") {
    return {Code::kInvalidArgument,
            fmt::format("--plan explains as text alone: leave -o {} out; muster plan -o json has the plan itself",
                        flags.output)};
  }
  if (!flags.words.empty()) return {Code::kInvalidArgument, "--plan says what to explain: leave the other name out"};
  for (const auto& [flag, given] :
       {std::pair("--at", !flags.at.empty()), std::pair("--journal", !flags.journals.empty()),
        std::pair("--group", !flags.group.empty()), std::pair("--cluster", !flags.chain.cluster.empty())}) {
    if (given) return {Code::kInvalidArgument, fmt::format("{} is of what runs, not of a --plan: leave it out", flag)};
  }
  return {};
}

}  // namespace

std::function<Result<int>()> AddExplainSubjects(Verb& explain, const ClusterAccess& access) {
  return AddSubjects(explain, access).run;
}

void AddExplain(CommandLine& app) {
  Verb explain = app.AddVerb(
      "explain", "Say why a workload, node or machine is where it is, why a need is short, or a plan as it is");
  const auto plan = std::make_shared<std::pair<PlanFlags, std::string>>();
  explain.Option("--plan", plan->second,
                 "A unit, machine or node of the plan that muster plan would make of these options");
  AddPlanFlags(explain, plan->first);
  const NamedExplainer named = AddSubjects(explain, RealCluster());
  explain.Example("muster explain web-7")
      .Example("muster explain node/local-000003")
      .Example(
          "muster explain --plan shop/web-7f9c-x2x4k -f dump.json --catalogue examples/catalogues/ec2.yaml --keep none")
      .Run([plan, named]() -> Result<int> {
        if (plan->second.empty()) return named.run();
        if (Status wrong = CheckForPlan(*named.flags); !wrong.ok()) return std::unexpected(std::move(wrong));
        return ExplainPlan(plan->first, plan->second);
      });
}

}  // namespace muster::cli
