#include "core/scheduler/sets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"

namespace muster::scheduler {
namespace {

SetRecord Set(int32_t replicas, int32_t unavailable = 1, int32_t surge = 0) {
  SetRecord set;
  set.spec.kind = model::WorkloadKind::kSet;
  set.spec.name = "web";
  set.spec.replicas = replicas;
  set.spec.max_unavailable = {.amount = unavailable};
  set.spec.max_surge = {.amount = surge};
  set.revision = "b";
  return set;
}

SetMember Up(int32_t number, std::string revision = "b") {
  return {.number = number, .revision = std::move(revision), .phase = model::WorkloadPhase::kRunning, .up = true};
}
SetMember Down(int32_t number, std::string revision = "b") {
  return {.number = number, .revision = std::move(revision), .phase = model::WorkloadPhase::kScheduled};
}
SetMember Leaving(int32_t number) {
  return {.number = number, .revision = "b", .phase = model::WorkloadPhase::kDeleting, .deleting = true};
}

std::string Text(const std::vector<SetStep>& steps) {
  std::string text;
  for (const SetStep& step : steps) {
    const std::string_view name = step.action == SetAction::kCreate   ? "create"
                                  : step.action == SetAction::kUpdate ? "update"
                                                                      : "delete";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, step.number);
  }
  return text;
}
std::string Plan(const SetRecord& set, const std::vector<SetMember>& members) { return Text(PlanSet(set, members)); }

TEST(Sets, AMissingMemberIsCreated) {
  EXPECT_EQ(Plan(Set(3), {}), "create 0, create 1, create 2");
  EXPECT_EQ(Plan(Set(3), {Up(0), Down(2)}), "create 1");
  EXPECT_EQ(Plan(Set(3), {Up(0), Leaving(1), Up(2)}), "");  // its id is free once it is gone
  EXPECT_EQ(Plan(Set(2), {Up(0), Up(1)}), "");
}

TEST(Sets, ScalingDownDeletesFromTheHighestNumber) {
  EXPECT_EQ(Plan(Set(1), {Up(0), Up(1), Up(2), Leaving(3)}), "delete 2, delete 1");
  EXPECT_EQ(Plan(Set(0), {Down(0), Up(1)}), "delete 1, delete 0");
  EXPECT_EQ(Plan(Set(2), {Down(0), Down(1), Up(2)}), "delete 2");  // an order, whatever is up
}

TEST(Sets, AnUpdateTakesAtMostMaxUnavailableDown) {
  EXPECT_EQ(Plan(Set(4, 1), {Up(0, "a"), Up(1, "a"), Up(2, "a"), Up(3, "a")}), "update 3");
  EXPECT_EQ(Plan(Set(4, 2), {Up(0, "a"), Up(1, "a"), Up(2, "a"), Up(3, "a")}), "update 3, update 2");
  EXPECT_EQ(Plan(Set(4, 1), {Up(0, "a"), Up(1, "a"), Up(2, "a"), Down(3)}), "");
  EXPECT_EQ(Plan(Set(4, 1), {Up(0, "a"), Up(1, "a"), Up(2, "a"), Up(3)}), "update 2");
}

TEST(Sets, AMemberThatIsDownIsChangedAtOnce) {
  EXPECT_EQ(Plan(Set(4, 1), {Down(0, "a"), Up(1, "a"), Down(2, "a"), Up(3, "a")}), "update 2, update 0");
}

TEST(Sets, APercentageIsOfTheMembersRoundedUp) {
  SetRecord set = Set(5);
  set.spec.max_unavailable = {.amount = 25, .percent = true};
  EXPECT_EQ(Plan(set, {Up(0, "a"), Up(1, "a"), Up(2, "a"), Up(3, "a"), Up(4, "a")}), "update 4, update 3");
}

TEST(Sets, LimitsOfZeroStillLetAnUpdateThrough) { EXPECT_EQ(Plan(Set(2, 0, 0), {Up(0, "a"), Up(1, "a")}), "update 1"); }

TEST(Sets, SurgeMembersComeFirstAndGoLast) {
  const SetRecord set = Set(2, 0, 1);
  EXPECT_EQ(Plan(set, {Up(0, "a"), Up(1, "a")}), "create 2");
  EXPECT_EQ(Plan(set, {Up(0, "a"), Up(1, "a"), Down(2)}), "");
  EXPECT_EQ(Plan(set, {Up(0, "a"), Up(1, "a"), Up(2)}), "update 1");
  EXPECT_EQ(Plan(set, {Up(0, "a"), Down(1), Up(2)}), "");
  EXPECT_EQ(Plan(set, {Up(0, "a"), Up(1), Up(2)}), "update 0");
  EXPECT_EQ(Plan(set, {Down(0), Up(1), Up(2)}), "");
  EXPECT_EQ(Plan(set, {Up(0), Up(1), Up(2)}), "delete 2");
  EXPECT_EQ(Plan(set, {Up(0), Up(1), Leaving(2)}), "");
}

TEST(Sets, ASurgeMemberOfAnOlderRevisionIsNotTakenDownBeforeItsTime) {
  EXPECT_EQ(Plan(Set(2, 0, 1), {Up(0, "a"), Down(1, "a"), Up(2, "a")}), "update 1");
  EXPECT_EQ(Plan(Set(2, 0, 1), {Up(0, "a"), Up(1), Up(2, "a")}), "update 2");
}

TEST(Sets, ARestartIsAnUpdate) {
  SetRecord set = Set(2);
  set.revision = SpecRevision(set.spec, 0);
  const std::vector<SetMember> members = {Up(0, set.revision), Up(1, set.revision)};
  EXPECT_EQ(Plan(set, members), "");
  set.revision = SpecRevision(set.spec, 1);
  EXPECT_EQ(Plan(set, members), "update 1");
}

TEST(Sets, TheRevisionIsOfWhatRunsAndNotOfCounts) {
  const SetRecord set = Set(2);
  model::WorkloadSpec spec = set.spec;
  spec.replicas = 9;
  spec.max_surge = {.amount = 3};
  spec.min_available = {.amount = 1};
  EXPECT_EQ(SpecRevision(spec, 0), SpecRevision(set.spec, 0));
  EXPECT_EQ(SpecRevision(spec, 0).size(), 16u);
  std::set<std::string> different = {SpecRevision(spec, 0), SpecRevision(spec, 1)};
  spec.labels = {{"app", "web"}};
  different.insert(SpecRevision(spec, 0));
  spec.tenant = "shop";
  different.insert(SpecRevision(spec, 0));
  spec.spec.image = "web:2";
  different.insert(SpecRevision(spec, 0));
  EXPECT_EQ(different.size(), 5u);
}

TEST(Sets, ADeletedSetDeletesEveryMember) {
  SetRecord set = Set(3);
  set.deleting = true;
  EXPECT_EQ(Plan(set, {Up(0), Leaving(1), Down(2)}), "delete 2, delete 0");
  EXPECT_EQ(Plan(set, {}), "");
  EXPECT_EQ(EvictionsAllowed(set, std::vector{Up(0)}), 0);
}

TEST(Sets, EvictionsKeepMinAvailable) {
  SetRecord set = Set(4);
  const std::vector<SetMember> members = {Up(0), Up(1), Down(2), Up(3)};
  EXPECT_EQ(EvictionsAllowed(set, members), 3);
  set.spec.min_available = {.amount = 2};
  EXPECT_EQ(EvictionsAllowed(set, members), 1);
  set.spec.min_available = {.amount = 100, .percent = true};
  EXPECT_EQ(EvictionsAllowed(set, members), 0);
}

// --- jobs

SetRecord Job(int32_t completions) {
  SetRecord job = Set(completions);
  job.spec.kind = model::WorkloadKind::kJob;
  return job;
}
SetMember Completed(int32_t number) {
  return {.number = number, .revision = "b", .phase = model::WorkloadPhase::kCompleted};
}

TEST(Sets, AJobRunsEachMemberUntilItHasCompleted) {
  SetRecord job = Job(3);
  EXPECT_EQ(Plan(job, {}), "create 0, create 1, create 2");
  EXPECT_EQ(Plan(job, {Completed(0), Up(1)}), "create 2");
  EXPECT_EQ(Completions(job, std::vector{Completed(0), Up(1)}), std::vector<int32_t>{0});
  job.completed = {0};
  EXPECT_EQ(Plan(job, {Up(1), Completed(2)}), "");  // member 0 is gone and not run again
  EXPECT_EQ(Completions(job, std::vector{Up(1), Completed(2)}), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(ViewOf(job, std::vector{Up(1), Completed(2)}).completed, 2);
}

TEST(Sets, ANewTemplateOfAJobLeavesWhatRuns) {
  EXPECT_EQ(Plan(Job(4), {Up(0, "a"), Down(1, "a"), Completed(2), Up(3)}), "update 1");
  SetMember failed = Down(0, "a");
  failed.phase = model::WorkloadPhase::kFailed;
  EXPECT_EQ(Plan(Job(1), {failed}), "update 0");
  failed.revision = "b";
  EXPECT_EQ(Plan(Job(1), {failed}), "");
}

TEST(Sets, TheViewCountsMembers) {
  SetMember failed = Down(3);
  failed.phase = model::WorkloadPhase::kFailed;
  const contract::SetView view = ViewOf(Set(4), std::vector{Up(0, "a"), Up(1), Down(2), failed, Leaving(4)});
  EXPECT_EQ(view.members, 5);
  EXPECT_EQ(view.current, 4);
  EXPECT_EQ(view.running, 2);
  EXPECT_EQ(view.available, 1);
  EXPECT_EQ(view.failed, 1);
  EXPECT_EQ(view.completed, 0);
}

// --- every history

// A set and its members as a cluster would have them. Steps take effect at once, their results later.
class World {
 public:
  explicit World(uint64_t seed) : rng_(seed) { ChangeSpec(); }

  SetRecord set;
  std::map<int32_t, SetMember> members;

  std::vector<SetMember> List() const {
    std::vector<SetMember> list;
    for (const auto& [number, member] : members) list.push_back(member);
    return list;
  }

  void ChangeSpec() {
    const bool first = set.revision.empty();
    if (first || rng_.Chance(1, 2)) set.revision = fmt::format("r{}", rng_.Below(1'000'000));
    if (first || rng_.Chance(1, 2)) {
      set = Scaled(Set(static_cast<int32_t>(rng_.Below(8)), static_cast<int32_t>(rng_.Below(4)),
                       static_cast<int32_t>(rng_.Below(4))));
    }
  }

  // Something happens to a member.
  void Disturb() {
    if (members.empty()) return;
    auto at = members.begin();
    std::advance(at, rng_.Below(members.size()));
    SetMember& member = at->second;
    switch (rng_.Below(4)) {
      case 0:
      case 1: Settle(member); break;
      case 2: member.up = false; break;
      default:
        if (member.deleting) members.erase(at);
    }
  }
  static void Settle(SetMember& member) {
    member.up = !member.deleting;
    member.phase = member.up ? model::WorkloadPhase::kRunning : model::WorkloadPhase::kDeleting;
  }
  void SettleAll() {
    std::erase_if(members, [](const auto& entry) { return entry.second.deleting; });
    for (auto& [number, member] : members) Settle(member);
  }

  void Take(const SetStep& step) {
    if (step.action == SetAction::kCreate) {
      ASSERT_TRUE(members.emplace(step.number, Down(step.number, set.revision)).second) << step.number;
      return;
    }
    ASSERT_TRUE(members.contains(step.number)) << step.number;
    SetMember& member = members.at(step.number);
    ASSERT_FALSE(member.deleting) << step.number;
    if (step.action == SetAction::kDelete) {
      member.deleting = true;
    } else {
      ASSERT_NE(member.revision, set.revision) << step.number;
      member.revision = set.revision;
      member.up = false;
    }
  }

  // Members that are up among the set's own numbers, surge included.
  int32_t CountUp() const {
    return static_cast<int32_t>(std::ranges::count_if(
        members, [&](const auto& entry) { return entry.first < End() && entry.second.up && !entry.second.deleting; }));
  }
  int32_t CountStaying() const {
    return static_cast<int32_t>(
        std::ranges::count_if(members, [](const auto& entry) { return !entry.second.deleting; }));
  }
  int32_t Unavailable() const {
    const int32_t given = set.spec.max_unavailable.amount;
    return given == 0 && set.spec.max_surge.amount == 0 ? 1 : given;
  }
  int32_t End() const { return set.spec.replicas + std::min(set.spec.max_surge.amount, set.spec.replicas); }
  Rng& rng() { return rng_; }

 private:
  SetRecord Scaled(SetRecord next) const {
    next.revision = set.revision;
    return next;
  }
  Rng rng_;
};

// Takes all steps of a plan, or some; the limits hold after each of them. Returns the steps.
std::string Advance(World& world, bool all) {
  const int32_t up = world.CountUp();
  const int32_t floor = std::min(up, world.set.spec.replicas - world.Unavailable());
  const std::vector<SetStep> steps = PlanSet(world.set, world.List());
  std::set<int32_t> numbers;
  for (const SetStep& step : steps) {
    EXPECT_TRUE(numbers.insert(step.number).second) << "two steps for member " << step.number;
    if (!all && world.rng().Chance(1, 3)) continue;
    world.Take(step);
    EXPECT_GE(world.CountUp(), floor) << Text(steps);
  }
  if (all) {
    EXPECT_LE(world.CountStaying(), world.End()) << Text(steps);
  }
  return Text(steps);
}

// Takes plans until there is nothing to do before a member changes.
void AdvanceFully(World& world) {
  for (int round = 0; round < 3; ++round) {
    if (Advance(world, true).empty()) return;
  }
  EXPECT_EQ(Plan(world.set, world.List()), "");
}

TEST(Sets, TheLimitsHoldInEveryHistoryAndItConverges) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed);
    for (int step = 0; step < 60; ++step) {
      if (world.rng().Chance(1, 12)) world.ChangeSpec();
      if (world.rng().Chance(2, 3)) world.Disturb();
      if (world.rng().Chance(1, 3)) {
        AdvanceFully(world);
      } else {
        Advance(world, world.rng().Chance(1, 2));
      }
      ASSERT_FALSE(HasFailure());
    }
    for (int round = 0; round < 40; ++round) {
      world.SettleAll();
      AdvanceFully(world);
    }
    ASSERT_FALSE(HasFailure());
    ASSERT_EQ(world.members.size(), static_cast<size_t>(world.set.spec.replicas));
    for (const auto& [number, member] : world.members) {
      ASSERT_LT(number, world.set.spec.replicas);
      ASSERT_EQ(member.revision, world.set.revision);
      ASSERT_TRUE(member.up);
    }
  }
}

TEST(Sets, EvictionsAndUpdatesTogetherConverge) {
  // A drain evicts what the set allows, while a template is rolled out; evicted members come up again elsewhere.
  World world(7);
  world.set = Set(6, 2, 1);
  world.set.spec.min_available = {.amount = 3};
  for (int32_t i = 0; i < 6; ++i) world.members.emplace(i, Up(i, "a"));
  for (int round = 0; round < 30; ++round) {
    int32_t allowed = EvictionsAllowed(world.set, world.List());
    for (auto& [number, member] : world.members) {
      if (allowed > 0 && member.up && world.rng().Chance(1, 3)) {
        member.up = false;
        --allowed;
      }
    }
    EXPECT_GE(world.CountUp(), 3);
    AdvanceFully(world);
    world.SettleAll();
  }
  for (const auto& [number, member] : world.members) EXPECT_EQ(member.revision, "b");
}

}  // namespace
}  // namespace muster::scheduler
