// `muster bench`: what there is to measure, one file each.
#include "cli/bench.h"

#include "cli/verbs.h"

namespace muster::cli {

void AddBench(CommandLine& app) {
  Verb bench = app.AddVerb("bench", "Measure Muster on the shapes of docs/benchmarks.md")
                   .Example("muster bench engine --shape uber-50k");
  AddBenchEngine(bench);
  AddBenchPlace(bench);
  AddBenchPlan(bench);
  AddBenchProvider(bench);
  AddBenchShard(bench);
  AddBenchScheduler(bench);
  AddBenchDump(bench);
  AddBenchE2e(bench);
  AddBenchStore(bench);
}

}  // namespace muster::cli
