#include "core/agent/agent.h"

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/probe.h"
#include "core/agent/earlier_rows.h"
#include "core/agent/lab_for_test.h"

namespace muster::agent {
namespace {

using contract::ActualState;
using model::RestartPolicy;

Config Alone() {
  return {.node = "n1",
          .total = {{"cpu", 4000}, {"memory", 1000}},
          .runtimes = {model::WorkloadType::kProcess},
          .max_restarts = 3,
          .restart_base = 1s};
}
Config Joining() {
  Config config = Alone();
  config.joins = true;
  return config;
}

class Lab : public AgentLab {
 public:
  explicit Lab(Config config = Alone()) : AgentLab(std::move(config)) { CarryOutAll(); }
  ~Lab() { EXPECT_EQ(violation(), ""); }
};

TEST(Agent, AnswersOnceDurableAndRunsAfterwards) {
  Lab lab;
  contract::ApplyOnAgent apply = ProcessApply("w");
  apply.tenant = "shop";
  const auto applied = lab.Apply(apply);
  ASSERT_TRUE(applied.has_value());
  EXPECT_TRUE(applied->applied);
  EXPECT_EQ(applied->status.actual, ActualState::kPending);
  EXPECT_TRUE(lab.rows.contains("workload/w"));
  ASSERT_EQ(lab.calls.size(), 1u);
  EXPECT_EQ(lab.calls[0].to, "process");
  EXPECT_EQ(std::get<contract::StartRun>(lab.calls[0].request).launch, 1u);
  EXPECT_EQ(std::get<contract::StartRun>(lab.calls[0].request).tenant, "shop");
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
  EXPECT_EQ(lab.View()->statuses->size(), 1u);
}

TEST(Agent, SkipsTheSameRevisionAndReplacesAnother) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  EXPECT_TRUE(lab.Apply(ProcessApply("w"))->skipped);
  EXPECT_TRUE(lab.calls.empty());

  EXPECT_FALSE(lab.Apply(ProcessApply("w", "r2"))->skipped);
  ASSERT_EQ(lab.calls.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<contract::StopRun>(lab.calls[0].request)) << "the old one ends first";
  lab.CarryOutCall(0);
  ASSERT_EQ(lab.calls.size(), 1u);
  EXPECT_EQ(std::get<contract::StartRun>(lab.calls[0].request).revision, "r2");
  lab.CarryOutAll();
  EXPECT_EQ(lab.runs.at("w").launch, 2u);
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
}

TEST(Agent, AFailedRevisionIsAppliedAgain) {
  Lab lab;
  auto apply = ProcessApply("w");
  apply.spec.restart = RestartPolicy::kNever;
  ASSERT_TRUE(lab.Apply(apply));
  lab.CarryOutAll();
  lab.EndRun("w", 1);
  const auto status = lab.Get("w");
  EXPECT_EQ(status.actual, ActualState::kFailed);
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_EQ(status.message, "exit code 1");
  EXPECT_EQ(status.metadata.at("failure_reason"), "RUNTIME_ERROR");
  EXPECT_FALSE(lab.Apply(apply)->skipped);
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
}

TEST(Agent, AJobThatEndsWellIsStoppedAndStaysSo) {
  for (const RestartPolicy policy : {RestartPolicy::kNever, RestartPolicy::kOnFailure}) {
    Lab lab;
    auto apply = ProcessApply("job");
    apply.spec.restart = policy;
    ASSERT_TRUE(lab.Apply(apply));
    lab.CarryOutAll();
    lab.EndRun("job", 0);
    EXPECT_EQ(lab.Get("job").actual, ActualState::kStopped);
    EXPECT_EQ(lab.Get("job").exit_code, 0);
    lab.Advance(1h);
    EXPECT_EQ(lab.starts, 1);
    EXPECT_TRUE(lab.Apply(apply)->skipped) << "a completed job is not run again";
  }
}

TEST(Agent, AComposeFileIsReadBeforeItIsAccepted) {
  Lab lab;
  auto apply = ProcessApply("pair");
  apply.spec.type = model::WorkloadType::kCompose;
  apply.spec.command.clear();
  apply.spec.compose = "services: {web: {image: i, privileged: true}}";
  const auto refused = lab.Apply(apply);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(refused.error().message().starts_with("spec.compose:1:")) << refused.error().message();
  EXPECT_TRUE(refused.error().message().contains("services.web.privileged: not supported"));
  apply.spec.compose = "services: {web: {image: i}}";
  EXPECT_EQ(lab.Apply(apply).error().message(), "runtime not available: compose") << "the file is well";
}

TEST(Agent, RestartsWithGrowingPausesAndGivesUp) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  for (const Duration pause : {1s, 2s, 4s}) {
    lab.EndRun("w", 2);
    EXPECT_EQ(lab.Get("w").actual, ActualState::kPending);
    const int before = lab.starts;
    lab.Advance(pause - 1ms);
    EXPECT_EQ(lab.starts, before);
    lab.Advance(1ms);
    EXPECT_EQ(lab.starts, before + 1);
    EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
  }
  lab.EndRun("w", 2);
  const auto status = lab.Get("w");
  EXPECT_EQ(status.actual, ActualState::kFailed);
  EXPECT_EQ(status.restarts, 3);
  EXPECT_EQ(status.message, "gave up after 3 restarts: exit code 2");
  lab.Restart();
  lab.CarryOutAll();
  lab.Advance(1h);
  EXPECT_EQ(lab.Get("w").actual, ActualState::kFailed) << "a restart of the agent forgets nothing";
}

TEST(Agent, ARunThatLastedBeginsTheCountAnew) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  for (int i = 0; i < 10; ++i) {
    lab.Advance(11min);
    lab.EndRun("w", 2);
    lab.Advance(1s);
    EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
  }
  EXPECT_EQ(lab.Get("w").restarts, 10);
}

TEST(Agent, StopsAndRunsAgain) {
  Lab lab;
  auto apply = ProcessApply("w");
  ASSERT_TRUE(lab.Apply(apply));
  lab.CarryOutAll();
  apply.run = false;
  EXPECT_FALSE(lab.Apply(apply)->skipped);
  EXPECT_EQ(lab.Get("w").actual, ActualState::kPending);
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kStopped);
  EXPECT_TRUE(lab.Apply(apply)->skipped);
  apply.run = true;
  ASSERT_TRUE(lab.Apply(apply));
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
}

TEST(Agent, DeletesStoppingFirst) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  EXPECT_TRUE(lab.Delete("w", {}, 7s).ok());
  ASSERT_EQ(lab.calls.size(), 1u);
  EXPECT_EQ(std::get<contract::StopRun>(lab.calls[0].request).grace, 7s);
  lab.Restart();
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kMissing) << "a deletion survives the agent";
  EXPECT_TRUE(lab.runs.empty());
  EXPECT_FALSE(lab.rows.contains("workload/w"));
  EXPECT_TRUE(lab.Delete("w").ok()) << "what is not there is deleted";
}

TEST(Agent, AdoptsWhatRuns) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  lab.Restart();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kUnknown) << "before the runtime has answered";
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
  EXPECT_EQ(lab.starts, 1);
  lab.Restart();
  lab.EndRun("w", 0, false);
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kPending) << "it ended while the agent was away";
  lab.Advance(1s);
  EXPECT_EQ(lab.starts, 2);
}

TEST(Agent, ALaunchThatNeverReachedTheRuntimeIsAskedForAgain) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.Restart();
  lab.CarryOutAll();
  EXPECT_EQ(lab.starts, 1);
  EXPECT_EQ(lab.runs.at("w").launch, 1u) << "under the same number";
}

TEST(Agent, AnUnknownOutcomeIsLookedAt) {
  for (const bool performed : {false, true}) {
    Lab lab;
    ASSERT_TRUE(lab.Apply(ProcessApply("w")));
    lab.FailCall(0, Status(Code::kDeadlineExceeded, "no answer in time"), performed);
    EXPECT_EQ(lab.Get("w").actual, ActualState::kUnknown);
    lab.Advance(1s);
    EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
    EXPECT_EQ(lab.starts, 1);
    EXPECT_EQ(lab.Get("w").restarts, 0);
  }
}

TEST(Agent, ARefusedStartCountsAsAnEnd) {
  Lab lab;
  auto apply = ProcessApply("w");
  apply.spec.restart = RestartPolicy::kNever;
  ASSERT_TRUE(lab.Apply(apply));
  lab.FailCall(0, Status(Code::kInvalidArgument, "env: \"A=\" is no name"), false);
  EXPECT_EQ(lab.Get("w").actual, ActualState::kFailed);
  EXPECT_EQ(lab.Get("w").message, "env: \"A=\" is no name");
}

TEST(Agent, SaysThatTheKernelKilledForMemory) {
  Lab lab;
  auto apply = ProcessApply("hog");
  apply.spec.restart = RestartPolicy::kNever;
  ASSERT_TRUE(lab.Apply(apply));
  lab.CarryOutAll();
  contract::Run ended = lab.runs.at("hog");
  ended.running = false;
  ended.exit_code = 137;
  ended.oom_killed = true;
  ended.output = "first\nlast words\n";
  lab.Step(RunChanged{ended});
  const auto status = lab.Get("hog");
  EXPECT_EQ(status.actual, ActualState::kFailed);
  EXPECT_EQ(status.message, "killed: out of memory; its last output: last words");
  EXPECT_EQ(status.metadata.at("failure_reason"), "OOM_KILLED");
  EXPECT_EQ(status.metadata.at("last_output"), "first\nlast words\n");
}

TEST(Agent, AdmitsWhatFits) {
  Lab lab;
  auto apply = ProcessApply("a");
  apply.spec.resources.Set("cpu", 3000);
  ASSERT_TRUE(lab.Apply(apply));
  apply.workload = "b";
  const auto refused = lab.Apply(apply);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().ToString(), "RESOURCE_EXHAUSTED: cpu: b asks for 3, with it the node would have 6 of 4");
  apply.spec.resources.Set("cpu", 1000);
  EXPECT_TRUE(lab.Apply(apply).has_value());
  EXPECT_TRUE(lab.Apply(apply)->skipped) << "what it has is not asked for again";
  apply.workload = "c";
  apply.spec.resources = {{"disk", 1}};
  EXPECT_TRUE(lab.Apply(apply).has_value()) << "a node that reports no disk is not filtered by it";
  apply.workload = "d";
  apply.spec.resources = {{"nvidia.com/gpu", 1000}};
  EXPECT_EQ(lab.Apply(apply).error().code(), Code::kResourceExhausted);
  EXPECT_EQ(lab.View()->refused, 2u);
  EXPECT_EQ(lab.View()->requested.Get("cpu"), 4000);
}

// Its scheduler has given the room to others.
TEST(Agent, AJobThatHasCompletedHoldsNoRoom) {
  Lab lab;
  auto job = ProcessApply("job");
  job.spec.restart = RestartPolicy::kNever;
  job.spec.resources.Set("cpu", 3000);
  ASSERT_TRUE(lab.Apply(job));
  lab.CarryOutAll();
  auto next = ProcessApply("next");
  next.spec.resources.Set("cpu", 3000);
  EXPECT_EQ(lab.Apply(next).error().code(), Code::kResourceExhausted) << "it runs";
  lab.EndRun("job", 0);
  EXPECT_TRUE(lab.Apply(next).has_value());
  job.revision = "again";
  job.stamp.sequence += 1;
  EXPECT_EQ(lab.Apply(job).error().code(), Code::kResourceExhausted) << "what it had is asked for again";
}

TEST(Agent, AJobThatHasFailedHoldsItsRoom) {
  Lab lab;
  auto job = ProcessApply("job");
  job.spec.restart = RestartPolicy::kNever;
  job.spec.resources.Set("cpu", 3000);
  ASSERT_TRUE(lab.Apply(job));
  lab.CarryOutAll();
  contract::Run ended = lab.runs.at("job");
  ended.running = false;
  ended.exit_code = 1;
  lab.Step(RunChanged{ended});
  auto next = ProcessApply("next");
  next.spec.resources.Set("cpu", 3000);
  EXPECT_EQ(lab.Apply(next).error().code(), Code::kResourceExhausted) << "its scheduler tries it again here";
}

TEST(Agent, RefusesWhatItCannotRun) {
  Lab lab;
  auto apply = ProcessApply("w");
  apply.spec = {.type = model::WorkloadType::kVm, .image = "disk.qcow2"};
  EXPECT_EQ(lab.Apply(apply).error().ToString(), "FAILED_PRECONDITION: runtime not available: vm");
  EXPECT_EQ(lab.Apply(ProcessApply("../x")).error().ToString(), "INVALID_ARGUMENT: workload: \"../x\" is no id");
  apply = ProcessApply("w");
  apply.spec.command.clear();
  EXPECT_EQ(lab.Apply(apply).error().ToString(), "INVALID_ARGUMENT: spec.command: a process needs one");
}

TEST(Agent, StampsOrderWhatASchedulerSays) {
  Lab lab(Joining());
  EXPECT_EQ(lab.Apply(ProcessApply("w", "r1", {1, 1})).error().ToString(),
            "FAILED_PRECONDITION: the stamp is of epoch 1, this agent is in epoch 0");
  lab.Join({.epoch = 5, .workloads = {ProcessApply("w", "r1", {5, 10})}});
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
  EXPECT_EQ(lab.Apply(ProcessApply("w", "r0", {5, 9})).error().ToString(),
            "FAILED_PRECONDITION: the stamp 5/9 of w is old: it has 5/10");
  EXPECT_EQ(lab.Apply(ProcessApply("w", "r0", {4, 99})).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(lab.Apply(ProcessApply("w", "r0")).error().code(), Code::kFailedPrecondition) << "no stamp at all";
  EXPECT_TRUE(lab.Apply(ProcessApply("w", "r1", {5, 10}))->skipped);
  EXPECT_TRUE(lab.Delete("w", {5, 10}).ok());
  lab.CarryOutAll();
  EXPECT_EQ(lab.Apply(ProcessApply("w", "r1", {5, 10})).error().ToString(),
            "FAILED_PRECONDITION: the stamp 5/10 of w is old: it has 5/10 and was deleted");
  lab.Restart();
  lab.CarryOutAll();
  EXPECT_FALSE(lab.Apply(ProcessApply("w", "r1", {5, 10})).has_value()) << "also after a restart";
  EXPECT_TRUE(lab.Apply(ProcessApply("w", "r1", {5, 11})).has_value()) << "a new assignment";
  EXPECT_EQ(lab.View()->stale, 1u) << "since the start";
}

TEST(Agent, ForgetsTheStampsOfDeletedWorkloadsInTime) {
  Lab lab(Joining());
  lab.Join({.epoch = 1});
  EXPECT_TRUE(lab.Delete("w", {1, 3}).ok());
  EXPECT_TRUE(lab.rows.contains("deleted/w"));
  lab.Restart();
  lab.CarryOutAll();
  lab.Advance(59min);
  EXPECT_TRUE(lab.rows.contains("deleted/w"));
  lab.Advance(2h);
  EXPECT_FALSE(lab.rows.contains("deleted/w"));
}

TEST(Agent, RemovesWhatAFullStateDoesNotList) {
  Lab lab(Joining());
  lab.Join({.epoch = 1, .workloads = {ProcessApply("a", "r1", {1, 1}), ProcessApply("b", "r1", {1, 2})}});
  lab.CarryOutAll();
  lab.Join({.epoch = 2, .workloads = {ProcessApply("a", "r1", {2, 1})}, .remove_others = false});
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("b").actual, ActualState::kRunning) << "the scheduler holds back";
  lab.Join({.epoch = 3, .workloads = {ProcessApply("a", "r1", {3, 1})}});
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("b").actual, ActualState::kMissing);
  EXPECT_EQ(lab.Get("a").actual, ActualState::kRunning);
  EXPECT_EQ(lab.starts, 2) << "what is listed runs on";
  EXPECT_EQ(lab.Get("a").stamp, (contract::Stamp{3, 1}));
  lab.Join({.epoch = 2});
  EXPECT_EQ(lab.View()->epoch, 3u) << "a late answer changes nothing";
  EXPECT_EQ(lab.Get("a").actual, ActualState::kRunning);
}

// As of a scheduler that lost the key of a secret.
TEST(Agent, WhatAFullStateListsAsCannotBeRunsOn) {
  Lab lab(Joining());
  lab.Join({.epoch = 1, .workloads = {ProcessApply("a", "r1", {1, 1})}});
  lab.CarryOutAll();
  contract::ApplyOnAgent unreadable = ProcessApply("a", "r1", {2, 1});
  unreadable.spec.secret_env = {{"TOKEN", ""}};
  lab.Join({.epoch = 2, .workloads = {unreadable}});
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("a").actual, ActualState::kRunning);
  EXPECT_EQ(lab.starts, 1);
}

TEST(Agent, WhatRunsWithoutARowIsLeftAloneUntilASchedulerSpeaks) {
  Lab lab(Joining());
  lab.Join({.epoch = 1, .workloads = {ProcessApply("a", "r1", {1, 1}), ProcessApply("b", "r1", {1, 2})}});
  lab.CarryOutAll();
  lab.Restart(true);
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("a").actual, ActualState::kRunning);
  EXPECT_EQ(lab.Get("a").message, "the runtime has it, the agent's state does not");
  lab.Join({.epoch = 2, .workloads = {ProcessApply("a", "r1", {2, 1})}});
  lab.CarryOutAll();
  EXPECT_EQ(lab.starts, 2) << "a is adopted";
  EXPECT_EQ(lab.Get("a").message, "");
  EXPECT_EQ(lab.Get("b").actual, ActualState::kMissing);
}

TEST(Agent, WhatWasLaunchedIsNotRefusedWhileItsRuntimeIsAway) {
  AgentLab lab(Alone());
  lab.CarryOutAll();
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  lab.Restart();
  lab.FailCall(0, Status(Code::kUnavailable, "no such socket"), false);
  const auto again = lab.Apply(ProcessApply("w"));
  ASSERT_TRUE(again.has_value()) << "it may run on, and must not be placed elsewhere: " << again.error().ToString();
  EXPECT_TRUE(again->skipped);
  EXPECT_EQ(lab.Apply(ProcessApply("x")).error().message(), "runtime not available: process (no such socket)");
  lab.Advance(1s);
  lab.CarryOutAll();
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
  EXPECT_EQ(lab.starts, 1) << "it ran on";
}

TEST(Agent, ARuntimeThatComesLateIsToldOnce) {
  AgentLab lab(Alone());
  const auto came = [&lab] {
    return std::ranges::count_if(lab.told,
                                 [](const auto& effect) { return std::holds_alternative<RuntimeCame>(effect); });
  };
  lab.FailCall(0, Status(Code::kUnavailable, "no such socket"), false);
  EXPECT_TRUE(lab.View()->runtimes.at(0).answered);
  EXPECT_FALSE(lab.View()->runtimes.at(0).listed);
  EXPECT_EQ(lab.Apply(ProcessApply("w")).error().message(), "runtime not available: process (no such socket)");
  lab.Advance(1s);
  lab.CarryOutAll();
  EXPECT_TRUE(lab.View()->runtimes.at(0).listed);
  EXPECT_EQ(came(), 1);
  EXPECT_TRUE(lab.Apply(ProcessApply("w")));

  // One that has answered and is gone for a while offers what it did.
  lab.CarryOutAll();
  lab.now.mono += 31s;
  lab.Step(contract::Wake{});
  lab.FailCall(0, Status(Code::kUnavailable, "no such socket"), false);
  EXPECT_FALSE(lab.View()->runtimes.at(0).status.ok());
  EXPECT_TRUE(lab.View()->runtimes.at(0).listed);
  lab.Advance(1min);
  lab.CarryOutAll();
  EXPECT_EQ(came(), 1);
  EXPECT_EQ(lab.violation(), "");
}

TEST(Agent, ARuntimeThatDoesNotAnswerIsToldAndAskedAgain) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  lab.Restart();
  lab.FailCall(0, Status(Code::kUnavailable, "connection refused"), false);
  const auto status = lab.Get("w");
  EXPECT_EQ(status.actual, ActualState::kUnknown);
  EXPECT_EQ(status.message, "the process runtime does not answer: connection refused");
  EXPECT_EQ(lab.Apply(ProcessApply("x")).error().message(), "runtime not available: process (connection refused)");
  lab.Advance(1s);
  EXPECT_EQ(lab.Get("w").actual, ActualState::kRunning);
  EXPECT_EQ(lab.starts, 1);
}

TEST(Agent, ARunThatItsRuntimeLostIsStartedAgain) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  lab.runs.clear();
  lab.Advance(31s);
  EXPECT_EQ(lab.starts, 2);
  EXPECT_EQ(lab.Get("w").restarts, 1);
}

TEST(Agent, ATypeIsKeptUntilTheWorkloadIsDeleted) {
  Config config = Alone();
  config.runtimes = {model::WorkloadType::kProcess, model::WorkloadType::kContainer};
  AgentLab lab(config);
  ASSERT_EQ(lab.calls.size(), 2u);
  lab.runs["p"] = {};
  lab.runs.clear();
  lab.CarryOutAll();
  ASSERT_TRUE(lab.Apply(ProcessApply("w")).has_value());
  auto apply = ProcessApply("w", "r2");
  apply.spec = {.type = model::WorkloadType::kContainer, .image = "x"};
  EXPECT_EQ(lab.Apply(apply).error().message(),
            "type: w is a process on this node; delete it before it becomes a container");
}

TEST(Agent, MeasuresAreShownWhileItRuns) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.Step(Measured{{{"w", {.cpu_milli = 7}}, {"unknown", {}}}});
  EXPECT_FALSE(lab.Get("w").usage.has_value());
  lab.CarryOutAll();
  lab.Step(Measured{{{"w", {.cpu_milli = 7}}}});
  EXPECT_EQ(lab.Get("w").usage->cpu_milli, 7);
  lab.EndRun("w", 1);
  EXPECT_FALSE(lab.Get("w").usage.has_value());
}

TEST(Agent, TellsOfItsActionsAndOfNewStates) {
  Lab lab;
  ASSERT_TRUE(lab.Apply(ProcessApply("w")));
  lab.CarryOutAll();
  std::vector<std::pair<ActionKind, ActionState>> actions;
  int changes = 0;
  for (const Core::Effect& effect : lab.told) {
    if (const auto* acted = std::get_if<Acted>(&effect)) actions.emplace_back(acted->kind, acted->state);
    changes += std::holds_alternative<StatesChanged>(effect) ? 1 : 0;
  }
  EXPECT_EQ(actions, (std::vector<std::pair<ActionKind, ActionState>>{{ActionKind::kApply, ActionState::kPending},
                                                                      {ActionKind::kApply, ActionState::kRunning},
                                                                      {ActionKind::kApply, ActionState::kCompleted}}));
  EXPECT_EQ(changes, 2) << "Pending, Running";
}

TEST(Agent, RowsThatCannotBeReadAreNamed) {
  EXPECT_EQ(Core::Recover(Alone(), {{"workload/w", "\xff"}}).error().code(), Code::kDataLoss);
  EXPECT_EQ(Core::Recover(Alone(), {{"format", codec::ToBytes(uint64_t{99})}}).error().code(),
            Code::kFailedPrecondition);
}

TEST(Agent, RowsOfTheFirstFormatAreReadAndWrittenAnew) {
  contract::Recovered rows;
  const auto put = [&rows](const contract::Write& write) { rows[write.key] = *write.value; };
  put(contract::kFormatRow.Put(kEarlierFormat));
  for (const std::string id : {"v", "w"}) {
    EarlierRow row{.wanted = {.workload = id, .revision = "r1"}, .launch = 3};
    row.wanted.spec.type = model::WorkloadType::kProcess;
    row.wanted.spec.command = {"serve"};
    row.wanted.spec.env = {{"A", "b"}};
    row.wanted.labels = {{"app", id}};
    put(kEarlierRows.Put(id, row));
  }
  Core core = *Core::Recover(Alone(), rows);
  std::vector<Core::Effect> effects;
  core.Step(contract::Wake{}, AgentLab::kBegin, effects);
  core.Step(Core::CallDone{.id = 1, .reply = contract::RuntimeReply{}}, AgentLab::kBegin, effects);
  core.Step(Asked{.request = 1, .body = ProcessApply("x")}, AgentLab::kBegin, effects);
  for (const Core::Effect& effect : effects) {
    if (const auto* persist = std::get_if<contract::Persist>(&effect)) {
      for (const contract::Write& write : persist->writes) put(write);
    }
  }
  std::map<std::string, Row> read;
  contract::RowReader reader("agent", "");
  reader.Format(kFormat);
  reader.On(kRows, [&](const std::string& id, const Row& row) { read[id] = row; });
  ASSERT_TRUE(reader.Read(rows).ok());
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read["w"].wanted.spec.env.at("A"), "b");
  EXPECT_EQ(read["v"].wanted.labels.at("app"), "v");
  EXPECT_GE(read["v"].launch, 3U);
}

TEST(Agent, ALoadedCoreGoesOnAsTheSavedOne) {
  Core core = *Core::Recover(Alone(), {});
  std::vector<Core::Effect> effects;
  core.Step(contract::Wake{}, AgentLab::kBegin, effects);
  core.Step(Core::CallDone{.id = 1, .reply = contract::RuntimeReply{}}, AgentLab::kBegin, effects);
  core.Step(Asked{.request = 1, .body = ProcessApply("w")}, AgentLab::kBegin, effects);
  auto loaded = Core::Load(core.Save());
  ASSERT_TRUE(loaded.has_value());
  std::vector<Core::Effect> here;
  std::vector<Core::Effect> there;
  const Asked next{.request = 2, .body = ProcessApply("w", "r2")};
  core.Step(next, AgentLab::kBegin, here);
  loaded->Step(next, AgentLab::kBegin, there);
  EXPECT_EQ(codec::Digest(here), codec::Digest(there));
  EXPECT_EQ(core.Save(), loaded->Save());
  EXPECT_FALSE(Core::Load("junk").has_value());
}

}  // namespace
}  // namespace muster::agent
