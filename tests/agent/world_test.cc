// Random lives of an agent: a scheduler whose messages come late, twice and in any order, a runtime that fails and
// loses runs, an agent that dies. The judge of the lab watches every step; at the end, in calm, what runs is what is
// assigned.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/probe.h"
#include "base/rng.h"
#include "core/agent/lab_for_test.h"
#include "host/fault_table_for_test.h"

namespace muster::agent {
namespace {

using contract::ActualState;

class AgentWorld {
 public:
  explicit AgentWorld(uint64_t seed)
      : rng_(seed),
        lab_({.node = "n1",
              .joins = true,
              .total = {{"cpu", 4000}},
              .runtimes = {model::WorkloadType::kProcess},
              .max_restarts = 2,
              .restart_base = 1s}) {
    loses_state_ = rng_.Chance(1, 5);
  }

  // What was broken; empty: nothing.
  std::string Run() {
    const int64_t actions = rng_.Between(20, 120);
    for (int64_t i = 0; i < actions && lab_.violation().empty(); ++i) Act();
    if (lab_.violation().empty()) CalmDown();
    return lab_.violation();
  }

 private:
  static constexpr int kWorkloads = 4;

  std::string Id() { return fmt::format("w{}", rng_.Below(kWorkloads)); }

  void Act() {
    switch (rng_.Below(13)) {
      case 0:
      case 1: Assign(); break;
      case 2: Unassign(); break;
      case 3: SendOld(); break;
      case 4:
      case 5:
      case 6: EndCall(); break;
      case 7: EndRun(); break;
      case 8: Advance(); break;
      case 9: Die(); break;
      case 10: Join(); break;
      case 11: Oddity(); break;
      default: lab_.CarryOutAll(); break;
    }
  }

  void Assign() {
    contract::ApplyOnAgent apply = ProcessApply(Id(), fmt::format("r{}", rng_.Below(4)), {lab_.epoch, ++sequence_});
    apply.run = !rng_.Chance(1, 5);
    apply.spec.restart = static_cast<model::RestartPolicy>(rng_.Below(3));
    apply.spec.resources.Set("cpu", static_cast<int64_t>(rng_.Below(5)) * 500);
    Remember(apply);
    if (lab_.epoch == 0) return;
    const auto known = assigned_.find(apply.workload);
    const bool newer = known == assigned_.end() || known->second.stamp < apply.stamp;
    const auto applied = lab_.Apply(apply);
    if (applied) {
      assigned_[apply.workload] = apply;
    } else if (newer && applied.error().code() == Code::kFailedPrecondition &&
               !applied.error().message().starts_with("runtime not available")) {
      lab_.Break(fmt::format("it refuses a good stamp: {}", applied.error().message()));
    }
  }

  void Unassign() {
    const std::string id = Id();
    const auto known = assigned_.find(id);
    const contract::Stamp stamp = known == assigned_.end() ? contract::Stamp{lab_.epoch, ++sequence_}
                                                           : contract::Stamp{lab_.epoch, known->second.stamp.sequence};
    Remember(contract::DeleteOnAgent{.workload = id, .grace = 1s, .stamp = stamp});
    if (lab_.epoch > 0 && lab_.Delete(id, stamp).ok()) assigned_.erase(id);
  }

  void Remember(contract::AgentRequest message) { sent_.emplace_back(lab_.now.mono, std::move(message)); }

  // A message comes again, as late as the agent remembers deletions. The scheduler's own picture follows what the agent
  // has taken.
  void SendOld() {
    std::erase_if(sent_, [&](const auto& sent) { return lab_.now.mono - sent.first > 50min; });
    if (sent_.empty() || lab_.epoch == 0) return;
    const contract::AgentRequest message = sent_[rng_.Below(sent_.size())].second;
    const auto reply = lab_.Ask(message);
    if (!reply) return;
    if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&message)) assigned_[apply->workload] = *apply;
    if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&message)) assigned_.erase(remove->workload);
  }

  void EndCall() {
    if (lab_.calls.empty()) return;
    const size_t index = rng_.Below(lab_.calls.size());
    const bool starts = std::holds_alternative<contract::StartRun>(lab_.calls[index].request);
    switch (rng_.Below(8)) {
      case 0: lab_.FailCall(index, Status(Code::kUnavailable, "away"), rng_.Chance(1, 2)); break;
      case 1: lab_.FailCall(index, Status(Code::kDeadlineExceeded, "late"), rng_.Chance(1, 2)); break;
      case 2:
        if (starts) lab_.FailCall(index, Status(Code::kInternal, "cannot be started"), false);
        break;
      default: lab_.CarryOutCall(index); break;
    }
  }

  void EndRun() {
    if (lab_.runs.empty()) return;
    const auto run = std::next(lab_.runs.begin(), static_cast<ptrdiff_t>(rng_.Below(lab_.runs.size())));
    if (run->second.running) lab_.EndRun(run->first, rng_.Chance(1, 2) ? 0 : 1, rng_.Chance(3, 4));
  }

  void Advance() {
    constexpr std::array kSpans = {Duration(100ms), Duration(2s), Duration(40s), Duration(11min), Duration(2h)};
    lab_.Advance(kSpans[rng_.Below(kSpans.size())]);
  }

  void Die() {
    // Some of what was asked of the runtime is done all the same.
    for (const Core::Call& call : lab_.calls) {
      if (rng_.Chance(1, 2)) static_cast<void>(lab_.Perform(call.request));
    }
    const bool lost = loses_state_ && rng_.Chance(1, 3);
    lab_.Restart(lost);
    if (lost) sent_.clear();
  }

  void Join() {
    if (rng_.Chance(1, 6) && epoch_ > 1) {
      lab_.Join({.epoch = epoch_ - 1});  // the answer to an earlier registration
      return;
    }
    lab_.Join(FullState(!rng_.Chance(1, 4)));
  }
  contract::FullState FullState(bool remove_others) {
    contract::FullState full{.epoch = ++epoch_, .remove_others = remove_others};
    for (auto& [id, apply] : assigned_) {
      apply.stamp.epoch = epoch_;
      full.workloads.push_back(apply);
    }
    return full;
  }

  void Oddity() {
    const std::string id = Id();
    switch (rng_.Below(5)) {
      case 4: CrashLoop(id); break;
      case 0: {
        contract::ApplyOnAgent vm = ProcessApply(id, "r1", {lab_.epoch, ++sequence_});
        vm.workload = "vm";
        vm.spec = {.type = model::WorkloadType::kVm, .image = "x"};
        if (lab_.epoch > 0 && lab_.Apply(vm)) lab_.Break("it takes a type that it cannot run");
        break;
      }
      case 1: lab_.runs.erase(id); break;  // its runtime loses it
      case 2: lab_.Step(RunChanged{{.workload = "unknown", .launch = 1}}); break;
      default: {
        const auto status = lab_.Get(id);
        const auto run = lab_.runs.find(id);
        if (status.actual == ActualState::kFailed && run != lab_.runs.end() && run->second.running) {
          lab_.Break(fmt::format("{} runs and is called Failed", id));
        }
      }
    }
  }

  // It ends as soon as it has been started, over and over.
  void CrashLoop(const std::string& id) {
    for (int i = 0; i < 6; ++i) {
      const auto run = lab_.runs.find(id);
      if (run != lab_.runs.end() && run->second.running) lab_.EndRun(id, 1);
      lab_.Advance(10s);
    }
  }

  void CalmDown() {
    lab_.Join(FullState(true));
    for (int i = 0; i < 20; ++i) {
      lab_.CarryOutAll();
      lab_.Advance(1min);
    }
    for (const auto& [id, apply] : assigned_) {
      const auto status = lab_.Get(id);
      const auto run = lab_.runs.find(id);
      const bool running = run != lab_.runs.end() && run->second.running;
      if (status.revision != apply.revision) lab_.Break(fmt::format("{} has not the revision that is assigned", id));
      if (running && run->second.revision != apply.revision) lab_.Break(fmt::format("{} runs another revision", id));
      if (running != (status.actual == ActualState::kRunning)) {
        lab_.Break(fmt::format("{} is called {}", id, contract::ActualStateName(status.actual)));
      }
      if (!apply.run && running) lab_.Break(fmt::format("{} runs and is to be stopped", id));
      const bool rests = status.actual == ActualState::kFailed || status.actual == ActualState::kStopped;
      if (apply.run && !running && !rests) {
        lab_.Break(fmt::format("{} is {} for ever: {}", id, contract::ActualStateName(status.actual), status.message));
      }
    }
    for (const auto& [id, run] : lab_.runs) {
      if (!assigned_.contains(id)) lab_.Break(fmt::format("{} is here and is not assigned", id));
    }
  }

  Rng rng_;
  AgentLab lab_;
  bool loses_state_ = false;
  uint64_t epoch_ = 0;
  uint64_t sequence_ = 0;
  std::map<std::string, contract::ApplyOnAgent> assigned_;
  std::vector<std::pair<MonoTime, contract::AgentRequest>> sent_;
};

TEST(AgentWorld, HoldsOverManySeedsAndReachesItsProbes) {
  faults::ResetProbes();
  constexpr uint64_t kSeeds = 2000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(AgentWorld(seed).Run(), "") << "seed " << seed;
  }
  faults::ExpectReached("AgentWorld.HoldsOverManySeedsAndReachesItsProbes", "agent");
}

class AgentBug : public testing::TestWithParam<faults::Row> {};
TEST_P(AgentBug, IsFound) {
  const faults::Row& bug = GetParam();
  const faults::ScopedMutant on(bug.name);
  constexpr uint64_t kMostSeeds = 2000;
  for (uint64_t seed = bug.from; seed < bug.from + kMostSeeds; ++seed) {
    const std::string what = AgentWorld(seed).Run();
    if (what.empty()) continue;
    EXPECT_TRUE(what.contains(bug.says)) << "seed " << seed << ": " << what << "\nnot: " << bug.says;
    return;
  }
  FAIL() << bug.name << " survived " << kMostSeeds << " seeds from " << bug.from;
}
INSTANTIATE_TEST_SUITE_P(AgentWorld, AgentBug, testing::ValuesIn(faults::RowsOf("AgentBug.IsFound", "agent", "bug")),
                         faults::TestNameOf);

}  // namespace
}  // namespace muster::agent
