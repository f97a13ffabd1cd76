// What holds for every plan, on random requests; and planted bugs, each of which breaks one of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "base/probe.h"
#include "base/rng.h"
#include "host/fault_table_for_test.h"
#include "planner/compile.h"
#include "planner/plan.h"
#include "planner/random_request.h"
#include "planner/replay.h"
#include "planner/solve.h"

namespace muster::planner {
namespace {

// Whether a unit of the kind stays pending though a machine could be bought for it and no rule between units is about
// it.
bool WaitsForNothing(const Problem& problem, uint32_t k) {
  const DenseKind& kind = problem.kinds[k];
  if (!kind.rules.empty() || !kind.limits.empty() || !kind.near.empty() || !kind.matches.empty()) return false;
  for (uint32_t c = 0; c < problem.choices.size(); ++c) {
    const std::vector<int64_t>& request = problem.requests[kind.request];
    if (problem.masks[kind.mask][problem.choices[c].node_class] &&
        std::ranges::equal(request, problem.CapacityOf(c), std::less_equal<>())) {
      return true;
    }
  }
  return false;
}

// What is wrong with the plan of a request; "" if nothing. The checker is asked by MakePlan itself.
std::string Fault(const Request& request) {
  const Result<Plan> plan = MakePlan(request);
  if (!plan) return std::string(plan.error().message());
  const Result<Plan> again = MakePlan(request);
  if (!again || !(*again == *plan)) return "a second run gave another plan";
  const int64_t planned = plan->cost_machines.micros - plan->replay.cost_added.micros;
  const std::vector<const placement::Unit*> units = UnitsToPlace(request);
  const Solution solution = Solve(request, units);
  solution.packing->CheckInvariants();
  if (planned > solution.greedy_cost) return "the search made the plan dearer";
  if (!plan->replay.done) return "";
  const ReplayOutcome replay = Replay(solution, request.replay_seed);
  for (const uint32_t kind : replay.left) {
    if (WaitsForNothing(*solution.problem, kind)) return fmt::format("units of kind {} stay pending", kind);
  }
  return "";
}

TEST(PlanProperties, HoldOnRandomRequests) {
  // How often each outcome came up: a generator that reaches nothing shows nothing.
  std::map<std::string, int> reached;
  for (uint64_t seed = 0; seed < 1'500; ++seed) {
    const Request request = RandomRequest(seed);
    ASSERT_EQ(Fault(request), "") << "seed " << seed;
    const Plan plan = MakePlan(request).value();
    ++reached[request.keep == Keep::kNodes ? "keeps nodes" : "keeps none"];
    reached["placed"] += static_cast<int>(plan.assignments.size());
    reached["unplaced"] += static_cast<int>(plan.unplaced.size());
    reached["machines"] += static_cast<int>(plan.machines.size());
    reached["replay pending"] += static_cast<int>(plan.replay.pending_at_first);
    reached["replay machines"] += static_cast<int>(plan.replay.machines_added);
    reached["pending in the end"] += static_cast<int>(plan.replay.pending_at_last);
    for (const Unplaced& unplaced : plan.unplaced) ++reached[std::string(ReasonName(unplaced.reason))];
  }
  for (const char* what : {"keeps nodes", "keeps none", "unplaced", "replay pending", "replay machines"}) {
    EXPECT_GE(reached[what], 100) << what;
  }
  EXPECT_GE(reached["placed"], 20'000);
  EXPECT_GE(reached["pending in the end"], 10);
}

TEST(PlanProperties, MoreEffortIsNeverDearer) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Request request = RandomRequest(seed);
    request.exact = true;
    const Plan fast = *MakePlan(request);
    request.effort = Effort::kBest;
    const Plan best = *MakePlan(request);
    EXPECT_LE(best.unplaced.size(), fast.unplaced.size());
    EXPECT_LE(best.cost_machines, fast.cost_machines) << "seed " << seed;
  }
}

// A machine on which every question whether to go on takes long: what comes out depends on steps alone.
TEST(PlanProperties, ASlowMachineMakesTheSamePlan) {
  uint64_t asked = 0;
  Rng work(1);
  uint64_t sum = 0;
  const auto slowly = [&](uint64_t done, uint64_t) {
    ++asked;
    for (uint64_t i = 0; i < 20'000 * (asked % 7); ++i) sum += work.Next() + done;
    return true;
  };
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Request request = RandomRequest(seed);
    const Plan fast = *MakePlan(request);
    request.go_on = slowly;
    EXPECT_EQ(*MakePlan(request), fast) << "seed " << seed;
    EXPECT_FALSE(fast.stopped_early);
  }
  EXPECT_GE(asked, 500U);
  EXPECT_NE(sum, 0U);
}

TEST(PlanProperties, AStopBySomeoneElseIsReported) {
  Request request = RandomRequest(3);
  request.go_on = [](uint64_t, uint64_t) { return false; };
  EXPECT_TRUE(MakePlan(request)->stopped_early);
  request.go_on = nullptr;
  EXPECT_FALSE(MakePlan(request)->stopped_early);
}

class PlannerBug : public testing::TestWithParam<faults::Row> {};

TEST_P(PlannerBug, IsFound) {
  const faults::ScopedMutant bug(GetParam().name);
  for (uint64_t seed = GetParam().from; seed < GetParam().from + 400; ++seed) {
    const std::string fault = Fault(RandomRequest(seed));
    if (fault.empty()) continue;
    EXPECT_NE(fault.find(GetParam().says), std::string::npos) << "seed " << seed << ": " << fault;
    return;
  }
  FAIL() << "not found in 400 requests";
}

INSTANTIATE_TEST_SUITE_P(Planner, PlannerBug, testing::ValuesIn(faults::RowsOf("PlannerBug.IsFound", "planner", "bug")),
                         faults::TestNameOf);

}  // namespace
}  // namespace muster::planner
