#include "bench/engine_bench.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/source_dir_for_test.h"
#include "bench/cycle_digest.h"
#include "engine/fast/engine.h"
#include "engine/reference/decide.h"
#include "engine/shapes/shapes.h"

namespace muster::bench {
namespace {

const Plan& PlanOf(std::string_view shape) {
  for (const Plan& plan : Plans()) {
    if (plan.shape == shape) return plan;
  }
  ADD_FAILURE() << "no plan for " << shape;
  return Plans().front();
}

std::map<std::string, Line> Measured(std::string_view shape, const EngineOptions& options, Parallel& parallel) {
  std::map<std::string, Line> lines;
  const Status status =
      RunEngineShape(PlanOf(shape), options, parallel, [&](const Line& line) { lines.emplace(line.temp, line); });
  EXPECT_TRUE(status.ok()) << status.message();
  return lines;
}

std::map<std::string, Line> Measured(std::string_view shape, const EngineOptions& options) {
  InlineParallel in_turn;
  return Measured(shape, options, in_turn);
}

TEST(EngineBench, EveryShapeHasOnePlan) {
  std::map<std::string_view, int> plans;
  for (const Plan& plan : Plans()) ++plans[plan.shape];
  EXPECT_EQ(plans.size(), engine::Shapes().size());
  for (const engine::Shape& shape : engine::Shapes()) EXPECT_EQ(plans[shape.name], 1) << shape.name;
}

TEST(EngineBench, PercentilesAreRawSamples) {
  const std::vector<double> samples{5, 1, 4, 2, 3};
  EXPECT_EQ(Percentile(samples, 50), 3);
  EXPECT_EQ(Percentile(samples, 99), 5);
  EXPECT_EQ(Percentile(samples, 20), 1);
  EXPECT_EQ(Percentile(samples, 20.1), 2);
}

// The two engines agree on shapes small enough for the plain one, and so do their digests.
TEST(EngineBench, DigestsOfBothEnginesAgree) {
  for (const auto& [shape, scale] : {std::pair{"colocated-5k", 0.1},
                                     {"cold-mixed", 0.1},
                                     {"inversions-500k", 0.002},
                                     {"reclaim-500k", 0.02},
                                     {"uber-5k", 0.05},
                                     {"degenerate-100k", 0.02}}) {
    SCOPED_TRACE(shape);
    const Line fast = Measured(shape, {.seconds = 1e-6, .scale = scale}).at("cold");
    const Line plain = Measured(shape, {.engine = "reference", .seconds = 1e-6, .scale = scale}).at("cold");
    EXPECT_EQ(fast.digest, plain.digest);
    EXPECT_EQ(fast.decided, plain.decided);
    EXPECT_EQ(fast.outcomes.bootstraps, plain.outcomes.bootstraps);
    EXPECT_EQ(fast.outcomes.unsatisfied, plain.outcomes.unsatisfied);
    EXPECT_EQ(fast.cost_per_hour, plain.cost_per_hour);
  }
}

// By scale, such that each has some thousand machines or needs.
const std::map<std::string_view, double> kPinnedScales{
    {"gangs-100k", 0.02},
    {"realistic-50k", 0.04},
    {"realistic-50k-same", 0.04},
    {"colocated-5k", 0.1},
    {"inversions-500k", 0.01},
    {"no-victims-450k", 0.02},
    {"reclaim-500k", 0.02},
    {"keep-450k", 0.02},
    {"inventory-60k", 0.06},
    {"inventory-500k", 0.01},
    {"uber-5k", 0.1},
    {"uber-50k", 0.01},
    {"uber-500k", 0.001},
    {"aggregated-500k", 0.02},
    {"one-to-one-500k", 0.02},
    {"one-to-one-500k-single", 0.02},
    {"procurement", 0.1},
    {"degenerate-100k", 0.02},
    {"cold-mixed", 0.1},
};

// What the engine decides stays what it was, on every shape and at every temperature that has a digest.
TEST(EngineBench, DigestsAreThoseOfTheFile) {
  const std::string path = SourceDir() + "/tests/engine/data/digests.txt";
  std::ifstream file(path);
  const std::string pinned{std::istreambuf_iterator<char>(file), {}};
  std::string measured;
  for (const Plan& plan : Plans()) {
    const double scale = kPinnedScales.at(plan.shape);
    for (const auto& [temp, line] : Measured(plan.shape, {.seconds = 1e-6, .scale = scale})) {
      if (line.digest != 0) measured += fmt::format("{} {} {} {:016x}\n", plan.shape, scale, temp, line.digest);
    }
  }
  if (std::getenv("MUSTER_ACCEPT") != nullptr)
    std::ofstream(path) << measured;
  else
    EXPECT_EQ(measured, pinned) << "another decision than before; if it is meant, MUSTER_ACCEPT=1 rewrites " << path;
}

TEST(EngineBench, DigestDependsNeitherOnSecondsNorOnWorkers) {
  const auto once = Measured("uber-5k", {.seconds = 1e-6, .scale = 0.1});
  ShuffledParallel shuffled(7, 8);
  const auto again = Measured("uber-5k", {.seconds = 0.5, .scale = 0.1}, shuffled);
  for (const char* temp : {"cold", "full", "warm"}) EXPECT_EQ(once.at(temp).digest, again.at(temp).digest) << temp;
  EXPECT_NE(once.at("cold").digest, once.at("warm").digest);
}

// Demand breathes, machines fail and come back, and the fleet follows without anybody staying short.
TEST(EngineBench, WarmCyclesHaveSomethingToDo) {
  const Line warm = Measured("uber-5k", {.seconds = 1e-6, .scale = 0.5}).at("warm");
  EXPECT_EQ(warm.micros.size(), 300U);
  EXPECT_GT(warm.outcomes.bootstraps + warm.outcomes.provisions, 0);
  EXPECT_GT(warm.cost_per_hour, 0);
}

TEST(EngineBench, UberFoldsAsItIsKnownTo) {
  const Line line = Measured("uber-5k", {.seconds = 1e-6}).at("full");
  EXPECT_EQ(line.machines, 22'526U);
  EXPECT_EQ(line.clusters, 20U);
  EXPECT_EQ(line.needs, 4636U);
  EXPECT_EQ(line.decided, 356U);
}

TEST(EngineBench, PreemptionAndReclaimCountsAreThoseOfTheShape) {
  const Line inversions = Measured("inversions-500k", {.seconds = 1e-6, .scale = 0.1}).at("full");
  EXPECT_EQ(inversions.outcomes.preempts, 50);
  const Line none = Measured("no-victims-450k", {.seconds = 1e-6, .scale = 0.1}).at("full");
  EXPECT_EQ(none.outcomes.preempts, 0);
  EXPECT_EQ(none.outcomes.unsatisfied, 10);
  // Two of three needs of a cluster are for types it has none of, and what it has left over is what others want.
  const Line reclaim = Measured("reclaim-500k", {.seconds = 1e-6, .scale = 0.1}).at("full");
  EXPECT_EQ(reclaim.outcomes.preempts + reclaim.outcomes.reclaims, 33'335);
  const Line keep = Measured("keep-450k", {.seconds = 1e-6, .scale = 0.02}).at("full");
  EXPECT_EQ(keep.outcomes.preempts + keep.outcomes.reclaims, 0);
  EXPECT_EQ(keep.outcomes.unsatisfied, 1);
}

TEST(EngineBench, InventoryIsListedAndChanged) {
  const auto lines = Measured("inventory-60k", {.seconds = 1e-6, .scale = 0.1});
  EXPECT_EQ(lines.at("cold").machines, 6000U);
  EXPECT_EQ(lines.at("cold").needs, 0U);
  EXPECT_EQ(lines.at("change").micros.size(), 20U);
}

TEST(EngineBench, ReferenceRefusesTheHopeless) {
  InlineParallel in_turn;
  const Status status = RunEngineShape(PlanOf("realistic-50k"), {.engine = "reference"}, in_turn, [](const Line&) {});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("give a --scale below 0.25"), std::string::npos) << status.message();
}

TEST(EngineBench, LinesAreJson) {
  Line line{.shape = "s", .temp = "cold", .engine = "fast", .micros = {2, 1, 3}};
  line.outcomes.preempts = 7;
  line.digest = 0xabc;
  const std::string json = ToJson(line);
  for (const char* part : {"\"shape\":\"s\"", "\"p50_us\":2", "\"p99_us\":3", "\"samples\":3", "\"preempts\":7",
                           "\"digest\":\"0000000000000abc\""}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  }
  EXPECT_EQ(json.find("allocs"), std::string::npos);
  line.allocs = line.allocs_p50 = 0;
  EXPECT_NE(ToJson(line).find("\"allocs_per_cycle\":0"), std::string::npos);
}

}  // namespace
}  // namespace muster::bench
