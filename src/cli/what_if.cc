// `muster what-if`: what a lost zone, another price, a type that is gone, more demand or a stock-out would do: to the
// running fleet, to a Kubernetes dump, or to a case file. Nothing is changed.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster_names.h"
#include "cli/halves.h"
#include "cli/live_run.h"
#include "cli/live_view.h"
#include "cli/live_world.h"
#include "cli/plan_files.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/what_if_plan.h"
#include "engine/case_file.h"
#include "host/text_file.h"
#include "model/names.h"

namespace muster::cli {
namespace {

constexpr int kChanges = 2;
constexpr int64_t kMostFactor = 1000;

struct Flags {
  HalvesFlags halves;
  std::string cluster;
  std::string output = "table";
  PlanFlags plan;
  std::vector<std::string> lose_zones;
  std::vector<std::string> drop_types;
  std::vector<std::string> stock_outs;
  std::vector<std::string> prices;
  std::string demand;
  std::string demand_of;
};

// "x2", "2", "0.5", in thousandths.
Result<int64_t> ParseFactor(std::string_view text, std::string_view option) {
  std::string_view digits = text;
  if (digits.starts_with('x')) digits.remove_prefix(1);
  double factor = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), factor);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || !(factor >= 0.001 && factor <= static_cast<double>(kMostFactor))) {
    return InvalidArgument(fmt::format("{}: {} is no factor; write x2 or 0.5, from 0.001 to {}", option,
                                       model::Quoted(text), kMostFactor));
  }
  return std::llround(factor * 1000);
}

Result<Event> EventOf(const Flags& flags) {
  Event event{.lose_zones = flags.lose_zones,
              .drop_types = flags.drop_types,
              .stock_outs = flags.stock_outs,
              .prices = {},
              .demand = 1000,
              .demand_of = {}};
  for (const std::string& text : flags.prices) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument(fmt::format("--price {}: write TYPE=x2 or TYPE=0.5", text));
    }
    MUSTER_ASSIGN_OR_RETURN(const int64_t factor, ParseFactor(text.substr(equals + 1), "--price"));
    event.prices.emplace_back(text.substr(0, equals), factor);
  }
  if (!flags.demand.empty()) {
    MUSTER_ASSIGN_OR_RETURN(event.demand, ParseFactor(flags.demand, "--demand"));
  }
  MUSTER_ASSIGN_OR_RETURN(event.demand_of, ParseSelector(flags.demand_of));
  if (!event.demand_of.empty() && flags.demand.empty()) return InvalidArgument("--for says whose --demand: give that");
  const bool nothing = event.lose_zones.empty() && event.drop_types.empty() && event.stock_outs.empty() &&
                       event.prices.empty() && flags.demand.empty();
  if (nothing) {
    return InvalidArgument(
        "say what happens: --lose-zone Z, --price TYPE=x2, --drop-type T, --stock-out T or --demand x3");
  }
  return event;
}

int PrintAnswer(const FileAnswer& answer, const std::string& output) {
  if (output == "table") Print(answer.text);
  if (output == "json") Print(answer.document.ToJson() + "\n");
  if (output == "yaml") Print(answer.document.ToYaml());
  return answer.changes ? kChanges : kOk;
}

Result<FileAnswer> OfLive(Halves& halves, const Flags& flags, const Event& event) {
  MUSTER_ASSIGN_OR_RETURN(const LiveWorld world, ReadLiveWorld(halves, flags.cluster));
  const auto outcome = [&] {
    Progress progress("running a copy of the cluster and the fleet", 0);
    return RunEvent(world, event, [&progress] { progress.Update(0); });
  }();
  if (!outcome) return std::unexpected(outcome.error());
  FileAnswer answer;
  answer.text = OutcomeText(*outcome);
  for (const std::string& note : world.notes) answer.text += fmt::format("* {}\n", Printable(note));
  answer.text += "* on a copy of the running cluster and fleet; nothing was changed\n";
  AddOutcome(*outcome, world.cluster, answer.document);
  Document notes = Document::List();
  for (const std::string& note : world.notes) notes.Add(note);
  answer.document.Add("notes", std::move(notes));
  answer.changes = outcome->changes_anything();
  return answer;
}

Result<FileAnswer> OfCaseFile(const std::string& path, const Event& event) {
  const Result<std::string> text = host::ReadTextFile(path);
  if (!text) return InvalidArgument(text.error().message());
  MUSTER_ASSIGN_OR_RETURN(const engine::Case input, engine::ReadCase(*text, host::SourceName(path)));
  return WhatIfOfCase(input, event);
}

Result<int> WhatIf(const ClusterAccess& access, const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const Event event, EventOf(flags));
  Result<FileAnswer> answer;
  if (flags.plan.files.empty()) {
    RunningHalves halves(access, flags.halves);
    answer = OfLive(halves, flags, event);
  } else if (!flags.plan.catalogue.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const PlanQuestion question, ReadPlanQuestion(flags.plan));
    answer = WhatIfOfPlan(question, event);
  } else if (flags.plan.files.size() == 1) {
    answer = OfCaseFile(flags.plan.files[0], event);
  } else {
    answer =
        InvalidArgument("several files are a dump or workload files: say which machines there are with --catalogue");
  }
  if (!answer) return std::unexpected(answer.error());
  return PrintAnswer(*answer, flags.output);
}

}  // namespace

void AddWhatIf(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("what-if", "Say what a lost zone, another price or more demand would do; nothing is changed");
  verb.Option("--lose-zone", flags->lose_zones, "The machines of this zone are lost; may be repeated")
      .Option("--price", flags->prices, "TYPE=x2 or TYPE=0.5: what a type costs, times this; may be repeated")
      .Option("--drop-type", flags->drop_types, "The machines of this type are lost, and no more can be had")
      .Option("--stock-out", flags->stock_outs, "No more machines of this type can be had; those that are there stay")
      .Option("--demand", flags->demand, "x3: so many times what is to run")
      .Option("--for", flags->demand_of,
              "Labels of the workloads that --demand multiplies; of a case: cluster=C,need=N")
      .Option("--cluster", flags->cluster, "How the shard names the cluster; found if it can be");
  AddPlanFlags(verb, flags->plan);
  verb.Choice("-o,--output", flags->output, {"table", "json", "yaml"}, "Form of the answer");
  AddHalvesFlags(verb, flags->halves);
  verb.UsageCode(kFailed)
      .Example("muster what-if --lose-zone a")
      .Example("muster what-if --demand x3 --for app=web -o json | jq .costAfter")
      .Example("muster what-if --drop-type m5.large -f dump.json --catalogue examples/catalogues/ec2.yaml")
      .Example("muster what-if --price spot-8=x2 -f case.yaml")
      .Example("Exit code: 0 nothing would change, 2 something would, 1 error")
      .Run([access, flags] { return WhatIf(access, *flags); });
}

}  // namespace muster::cli
