#include "cli/journal_halves.h"

#include <gtest/gtest.h>

#include "base/codec.h"
#include "cli/explain_chain.h"
#include "cli/halves.h"
#include "core/scheduler/lab_for_test.h"
#include "core/shard/lab_for_test.h"
#include "host/journal.h"
#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

// A segment that begins with this core, and one step of it.
template <class Core>
void Record(host::JournalWriter& journal, const Core& core, Now now) {
  journal.StartSegment(core.Save());
  Core copy = *Core::Load(core.Save());
  std::vector<typename Core::Effect> effects;
  const typename Core::Event event = contract::Wake{};
  journal.BeginStep(now, codec::ToBytes(event));
  copy.Step(event, now, effects);
  journal.EndStep(codec::Digest(effects));
  journal.Flush();
}

TEST(JournalHalves, ASchedulerIsExplainedAsItWas) {
  const host::TempDir dir;
  scheduler::Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  auto journal = host::JournalWriter::Open(dir.File("journal"), std::string(scheduler::Core::kName));
  ASSERT_TRUE(journal.has_value());
  const WallTime before = lab.now.wall;
  Record(**journal, lab.core, lab.now);
  lab.Apply("web");
  lab.Run(5s);
  const WallTime after = lab.now.wall;
  Record(**journal, lab.core, lab.now);

  const auto then = JournalHalves::Open({dir.File("journal")}, before + 1s);
  ASSERT_TRUE(then.has_value()) << then.error().ToString();
  EXPECT_EQ(ExplainWorkload(**then, "web", {}).error().code(), Code::kNotFound) << "it was applied later";
  const auto later = JournalHalves::Open({dir.File("journal")}, after + 1s);
  ASSERT_TRUE(later.has_value()) << later.error().ToString();
  EXPECT_TRUE((*later)->notes().empty());
  const auto chain = ExplainWorkload(**later, "web", {});
  ASSERT_TRUE(chain.has_value()) << chain.error().ToString();
  EXPECT_EQ(chain->links.front().head, "workload web is Running on node n1");
  EXPECT_EQ(chain->links.back().head,
            "shard: no answer, so that the chain ends here: no journal of a shard was given; name it with --journal");
}

TEST(JournalHalves, AShardIsExplainedAsItWas) {
  const host::TempDir dir;
  shard::Lab lab;
  lab.Add("m", 3, model::MachineState::kIdle);
  lab.Start();
  lab.ConnectWith("a", 0);
  lab.Run(5s);
  auto journal = host::JournalWriter::Open(dir.File("journal"), std::string(shard::Core::kName));
  ASSERT_TRUE(journal.has_value());
  const WallTime before = lab.now.wall;
  Record(**journal, lab.core(), lab.now);
  lab.Rollup("a", 2);
  lab.Run(5s);
  const WallTime after = lab.now.wall;
  Record(**journal, lab.core(), lab.now);

  const auto verdicts = [&](WallTime at) {
    const auto halves = JournalHalves::Open({dir.File("journal")}, at);
    std::map<std::string, std::string> found;
    const auto listed = (*halves)->OfShard<contract::MachinesListed>(contract::ListMachines{});
    EXPECT_TRUE(listed.has_value());
    for (const contract::MachineView& view : listed->machines) {
      const auto chain = ExplainMachine(**halves, view.machine->id, {});
      EXPECT_TRUE(chain.has_value()) << chain.error().ToString();
      found[view.machine->id] = chain->links.front().verdict;
    }
    return found;
  };
  int claimed = 0;
  for (const auto& [id, verdict] : verdicts(after)) claimed += verdict == "hold.claimed" ? 1 : 0;
  EXPECT_EQ(claimed, 2);
  for (const auto& [id, verdict] : verdicts(before)) EXPECT_NE(verdict, "hold.claimed") << id << " was nobody's then";
}

TEST(JournalHalves, AJournalOfAnotherBuildIsNotTakenForADamagedOne) {
  const host::TempDir dir;
  scheduler::Lab lab;
  auto journal = host::JournalWriter::Open(dir.File("journal"), std::string(scheduler::Core::kName));
  ASSERT_TRUE(journal.has_value());
  std::string state = lab.core.Save();
  ++state.front();  // the layout
  (*journal)->StartSegment(state);
  (*journal)->BeginStep(lab.now, codec::ToBytes(scheduler::Event(contract::Wake{})));
  (*journal)->Flush();
  const auto opened = JournalHalves::Open({dir.File("journal")}, lab.now.wall);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error(),
            Status(Code::kFailedPrecondition, "the state at the start of " + dir.File("journal/0000000001.journal") +
                                                  " cannot be read: another build of muster wrote it; use that build"));
}

TEST(JournalHalves, WhatIsOutOfTheJournalIsSaid) {
  const host::TempDir dir;
  scheduler::Lab lab;
  lab.Run(1s);
  auto journal = host::JournalWriter::Open(dir.File("journal"), std::string(scheduler::Core::kName));
  ASSERT_TRUE(journal.has_value());
  Record(**journal, lab.core, lab.now);
  const auto early = JournalHalves::Open({dir.File("journal")}, lab.now.wall - 1h);
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code(), Code::kOutOfRange);
  EXPECT_TRUE(early.error().message().contains("begins at")) << early.error().message();
  int steps = 0;
  const auto late = JournalHalves::Open({dir.File("journal")}, lab.now.wall + 1h, [&steps] { ++steps; });
  EXPECT_GT(steps, 0) << "who waits is told";
  ASSERT_TRUE(late.has_value()) << late.error().ToString();
  ASSERT_EQ((*late)->notes().size(), 1u);
  EXPECT_TRUE((*late)->notes()[0].contains("ends at")) << (*late)->notes()[0];
  EXPECT_EQ(JournalHalves::Open({dir.File("journal"), dir.File("journal")}, lab.now.wall).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(JournalHalves::Open({}, lab.now.wall).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(JournalHalves::Open({dir.File("none")}, lab.now.wall).error().code(), Code::kNotFound);
}

// A cluster with one workload, and a fleet that knows nothing of it.
class OneWorkload final : public Halves {
 public:
  explicit OneWorkload(contract::WorkloadView view) : view_(std::move(view)) {}

  Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) override {
    if (std::holds_alternative<contract::ExplainWorkload>(request)) return contract::Explanation{.workload = view_};
    if (std::holds_alternative<contract::ListNodes>(request)) return contract::NodesListed{};
    return contract::WorkloadsListed{.workloads = {view_}};
  }
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override {
    if (std::holds_alternative<contract::InspectNeeds>(request)) return contract::NeedsInspected{};
    if (std::holds_alternative<contract::ListActions>(request)) return contract::ActionsListed{};
    return contract::MachinesListed{};
  }

 private:
  const contract::WorkloadView view_;
};

TEST(ExplainChain, AWorkloadThatTheOperatorLeavesOutIsSaidToBe) {
  contract::WorkloadView view{.workload = "web"};
  view.spec.requirements = {{{.key = "generation", .op = model::Operator::kGt, .values = {"4"}}}};
  OneWorkload halves(view);
  const auto chain = ExplainWorkload(halves, "web", {.cluster = "blue"});
  ASSERT_TRUE(chain.has_value()) << chain.error().ToString();
  EXPECT_EQ(chain->links.back().kind, "need");
  EXPECT_EQ(chain->links.back().verdict, "none");
  EXPECT_EQ(chain->links.back().head,
            "need: the operator leaves it out, the shard's protocol cannot express \"generation Gt [4]\": use In with "
            "the values that are meant");
}

}  // namespace
}  // namespace muster::cli
