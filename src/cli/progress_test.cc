// Progress is silent for two seconds, then says how far it is; on a clock that the test moves.
#include "cli/progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "cli/plan_files.h"

namespace muster::cli {
namespace {

using namespace std::chrono_literals;

// Standard error of a test is no terminal: a line every five seconds.
TEST(Progress, SaysNothingForTwoSeconds) {
  std::chrono::steady_clock::time_point now{};
  testing::internal::CaptureStderr();
  Progress progress("reading", 200, [&] { return now; });
  const auto at = [&](std::chrono::milliseconds since, uint64_t done) {
    now = std::chrono::steady_clock::time_point{} + since;
    progress.Update(done);
  };
  at(0ms, 10);
  at(1999ms, 90);
  at(2000ms, 100);
  at(6999ms, 150);
  at(7000ms, 300);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reading 50%, 2 s\nreading 100%, 7 s\n");
}

TEST(Progress, SaysNoShareOfAnUnknownTotal) {
  std::chrono::steady_clock::time_point now{};
  testing::internal::CaptureStderr();
  Progress progress("reading", 0, [&] { return now; });
  now += 3s;
  progress.Update(5);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reading, 3 s\n");
}

// A plan that takes longer than two seconds says so, and one that does not says nothing.
TEST(Progress, IsShownWhileAPlanIsMade) {
  planner::Request request;
  planner::MachineType type{.name = "m", .capacity = {{"cpu", 4000}, {"memory", 16000}}};
  type.offers = {{.zone = "a", .price = {100}}};
  request.candidates = planner::MakeCandidates({.source = "test", .types = {type}}, {planner::Pool{}});
  placement::KindTable kinds;
  for (int i = 0; i < 40; ++i) {
    placement::Kind kind;
    kind.request = {{"cpu", 300 + 70 * i}, {"memory", 500 + 130 * (i % 7)}};
    request.pending.push_back({.id = fmt::format("u{}", i), .kind = kinds.Add(kind)});
  }
  request.world.kinds = kinds.Take();
  request.exact = true;
  std::chrono::steady_clock::time_point now{};
  for (const auto step : {0ms, 1500ms}) {
    testing::internal::CaptureStderr();
    const auto plan = RunPlan(request, [&] { return now += step; });
    ASSERT_TRUE(plan) << plan.error().message();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.substr(0, 9), step == 0ms ? "" : "planning ") << said;
  }
}

}  // namespace
}  // namespace muster::cli
