// `muster bench plan`: the planner on the shapes of docs/benchmarks.md.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "bench/plan_bench.h"
#include "bench/plan_shapes.h"
#include "cli/bench.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string shape;
  std::string effort = "fast";
  std::string data;
  double seconds = 2;
  bool replay = false;
  bool json = false;
};

Result<int> BenchPlan(const Flags& flags) {
  std::vector<std::string_view> names;
  for (const bench::PlanShape& shape : bench::PlanShapes()) names.push_back(shape.name);
  if (flags.shape != "all" && std::ranges::find(names, flags.shape) == names.end()) {
    return InvalidArgument(fmt::format("--shape {}: write all, or one of {}", flags.shape, fmt::join(names, ", ")));
  }
  if (!(flags.seconds > 0 && flags.seconds <= 86'400)) {
    return InvalidArgument("--seconds must be above 0 and at most 86400");
  }
  bench::PlanOptions options{.data_dir = flags.data, .seconds = flags.seconds, .replay = flags.replay};
  MUSTER_ASSIGN_OR_RETURN(options.effort, planner::ParseEffort(flags.effort));
  if (!flags.json) Print(bench::PlanTableHead());
  for (const bench::PlanShape& shape : bench::PlanShapes()) {
    if (flags.shape != "all" && flags.shape != shape.name) continue;
    if (flags.shape == "all" && shape.needs_data && flags.data.empty()) {
      fmt::print(stderr, "muster: {} is left out: its pods are read from files, give --data DIR\n", shape.name);
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const bench::PlanLine line, bench::RunPlanShape(shape.name, options));
    Print(flags.json ? bench::ToJson(line) : bench::TableRow(line));
    std::fflush(stdout);
  }
  return kOk;
}

}  // namespace

void AddBenchPlan(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  bench.AddVerb("plan", "Measure the planner: machines for a set of workloads")
      .Option("--shape", flags->shape, "Which shape, or all of them")
      .Choice("--effort", flags->effort, {"fast", "best"}, "How long the planner searches")
      .Option("--data", flags->data, "Directory with the CSV files of pods and prices")
      .Option("--seconds", flags->seconds, "How long to take samples for each line")
      .Flag("--replay", flags->replay, "Measure the replay with a default scheduler too")
      .Flag("--json", flags->json, "One JSON object a line instead of a table")
      .Example("muster bench plan --shape plan-51k")
      .Example("muster bench plan --shape all --data ../shared/data --effort best --json")
      .Run([flags]() -> Result<int> { return BenchPlan(*flags); });
}

}  // namespace muster::cli
