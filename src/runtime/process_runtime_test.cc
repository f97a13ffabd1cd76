#include "runtime/process_runtime.h"

#include <gtest/gtest.h>

#include "runtime/process_lab_for_test.h"
#include "shim/record_file.h"

namespace muster::runtime {
namespace {

TEST(ProcessRuntime, RunsAJobToItsEnd) {
  ProcessLab lab;
  const contract::Run run = lab.Shell("job", "echo hello; echo bad >&2; exit 0");
  EXPECT_EQ(run.workload, "job");
  EXPECT_EQ(run.launch, 1u);
  EXPECT_EQ(run.revision, "r1");
  const contract::Run ended = lab.WaitForEnd("job");
  EXPECT_FALSE(ended.running);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_GE(ended.ended_at, ended.started_at);
  EXPECT_EQ(lab.Output("job"), "hello\nbad\n");
}

TEST(ProcessRuntime, TellsExitCodesSignalsAndTheLastOutput) {
  ProcessLab lab;
  lab.Shell("code", "for i in 1 2 3; do echo line $i; done; exit 3");
  contract::Run ended = lab.WaitForEnd("code");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.output, "line 1\nline 2\nline 3\n");
  lab.Shell("signal", "kill -SEGV $$");
  ended = lab.WaitForEnd("signal");
  EXPECT_EQ(ended.exit_code, 128 + SIGSEGV);
  EXPECT_FALSE(ended.oom_killed);
}

TEST(ProcessRuntime, SaysWhyAProgramCannotBeExecuted) {
  ProcessLab lab;
  const contract::Run missing = lab.Start(ProcessLab::Launch("missing", {"no-such-program", "x"}));
  EXPECT_FALSE(missing.running);
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_EQ(missing.message, "cannot execute no-such-program: No such file or directory");
  const contract::Run directory = lab.Start(ProcessLab::Launch("directory", {"/tmp"}));
  EXPECT_EQ(directory.exit_code, 126);
  EXPECT_EQ(directory.message, "cannot execute /tmp: Permission denied");
}

TEST(ProcessRuntime, StopsWithinTheGrace) {
  ProcessLab lab;
  lab.Shell("polite", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done");
  {
    Follower follower(lab, "polite");
    ASSERT_TRUE(follower.sink().WaitFor("up\n"));
    const auto reply = lab.Ask(contract::StopRun{.workload = "polite", .grace = 30s});
    ASSERT_TRUE(reply.has_value());
    EXPECT_FALSE(reply->runs.at(0).running);
    EXPECT_EQ(reply->runs.at(0).exit_code, 5);
    EXPECT_TRUE(follower.sink().WaitFor("bye\n"));
  }
  const auto again = lab.Ask(contract::StopRun{.workload = "polite", .grace = 1s});
  EXPECT_EQ(again->runs.at(0).exit_code, 5) << "what does not run is stopped";
  EXPECT_TRUE(lab.Ask(contract::StopRun{.workload = "unknown"})->runs.empty());
}

TEST(ProcessRuntime, KillsAfterTheGrace) {
  ProcessLab lab;
  lab.Shell("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done");
  Follower follower(lab, "stubborn");
  ASSERT_TRUE(follower.sink().WaitFor("up\n"));
  const auto reply = lab.Ask(contract::StopRun{.workload = "stubborn", .grace = 50ms});
  EXPECT_EQ(reply->runs.at(0).exit_code, 128 + SIGKILL);
}

TEST(ProcessRuntime, ASecondStopShortensTheGrace) {
  ProcessLab lab;
  lab.Shell("slow", "trap '' TERM; echo up; while :; do sleep 0.05; done");
  {
    Follower follower(lab, "slow");
    ASSERT_TRUE(follower.sink().WaitFor("up\n"));
  }
  std::promise<Result<contract::RuntimeReply>> first;
  lab.runtime().Ask(contract::StopRun{.workload = "slow", .grace = 1h}, [&](auto reply) { first.set_value(reply); });
  const auto second = lab.Ask(contract::StopRun{.workload = "slow", .grace = 10ms});
  EXPECT_EQ(second->runs.at(0).exit_code, 128 + SIGKILL);
  EXPECT_EQ(first.get_future().get()->runs.at(0).exit_code, 128 + SIGKILL);
}

TEST(ProcessRuntime, NothingOfAWorkloadOutlivesIt) {
  ProcessLab lab;
  // One child in its group, and one that has left the session and whose parent has ended.
  lab.Shell("family", "sleep 1000 & echo a=$!; (setsid sh -c 'echo b=$$; exec sleep 1000' &) ; sleep 0.2; exit 0");
  EXPECT_EQ(lab.WaitForEnd("family").exit_code, 0);
  const std::string output = lab.Output("family");
  for (const std::string name : {"a=", "b="}) {
    const size_t at = output.find(name);
    ASSERT_NE(at, std::string::npos) << output;
    EXPECT_FALSE(IsAlive(std::stoi(output.substr(at + 2)))) << output;
  }
}

TEST(ProcessRuntime, AWorkloadOutlivesTheAgent) {
  ProcessLab lab;
  const std::string go = lab.DirectoryOf("long") + "/work/go";
  const contract::Run started =
      lab.Shell("long", "echo before; while ! [ -e go ]; do sleep 0.02; done; echo after; exit 9");
  ASSERT_TRUE(started.running);
  lab.Close();
  EXPECT_TRUE(IsAlive(std::stoi(started.metadata.at("process.pid"))));
  lab.Open();
  const auto listed = lab.Ask(contract::ListRuns{});
  ASSERT_EQ(listed->runs.size(), 1u);
  EXPECT_TRUE(listed->runs[0].running);
  EXPECT_EQ(listed->runs[0].started_at, started.started_at);
  EXPECT_EQ(listed->runs[0].metadata.at("process.pid"), started.metadata.at("process.pid"));

  // The same launch again starts nothing; an older one is refused.
  const contract::Run again = lab.Shell("long", "echo twice");
  EXPECT_EQ(again.metadata.at("process.pid"), started.metadata.at("process.pid"));
  EXPECT_EQ(lab.Ask(ProcessLab::Launch("long", {"true"}, 2)).error().message(), "launch 1 of long has not ended");

  Follower follower(lab, "long");
  std::ofstream(go) << "now";
  EXPECT_EQ(lab.WaitForEnd("long").exit_code, 9);
  EXPECT_TRUE(follower.sink().WaitFor("after\n"));
  EXPECT_EQ(follower.sink().out(), "before\nafter\n");
  EXPECT_EQ(lab.Ask(ProcessLab::Launch("long", {"true"}, 0)).error().code(), Code::kFailedPrecondition);
}

TEST(ProcessRuntime, AnEndWhileTheAgentWasAwayIsKnown) {
  ProcessLab lab;
  const contract::Run started = lab.Shell("away", "while ! [ -e go ]; do sleep 0.02; done; exit 4");
  lab.Close();
  std::ofstream(lab.DirectoryOf("away") + "/work/go") << "now";
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(lab.DirectoryOf("away") + "/exit"); }));
  lab.Open();
  const auto listed = lab.Ask(contract::ListRuns{});
  ASSERT_EQ(listed->runs.size(), 1u);
  // The shim may hold its lock for a moment after its record.
  EXPECT_FALSE(listed->runs[0].running);
  EXPECT_EQ(listed->runs[0].exit_code, 4);
  const contract::Run again = lab.Shell("away", "echo twice");
  EXPECT_EQ(again.exit_code, 4);
  EXPECT_EQ(lab.Output("away"), "");
}

TEST(ProcessRuntime, AKilledShimTakesItsWorkloadAlong) {
  ProcessLab lab;
  const contract::Run started = lab.Shell("orphan", "sleep 1000 & echo child=$!; echo up; wait");
  pid_t child = 0;
  {
    Follower follower(lab, "orphan");
    ASSERT_TRUE(follower.sink().WaitFor("up\n"));
    child = std::stoi(follower.sink().out().substr(std::string("child=").size()));
  }
  const pid_t shim = ProcessFiles(lab.path() + "/processes", "orphan").FindShim();
  ASSERT_GT(shim, 1);
  kill(shim, SIGKILL);
  const contract::Run ended = lab.WaitForEnd("orphan");
  EXPECT_FALSE(ended.exit_code.has_value());
  EXPECT_EQ(ended.message, "its shim is gone: how it ended is not known");
  EXPECT_TRUE(WaitUntil([&] { return !IsAlive(std::stoi(started.metadata.at("process.pid"))) && !IsAlive(child); }));
  const contract::Run again = lab.Shell("orphan", "echo second life", 2);
  EXPECT_EQ(lab.WaitForEnd("orphan", 2).exit_code, 0);
  EXPECT_EQ(again.launch, 2u);
}

TEST(ProcessRuntime, RemoveLeavesNothing) {
  ProcessLab lab;
  const contract::Run started = lab.Shell("gone", "echo x > file; mkdir -p a/b; sleep 1000");
  ASSERT_TRUE(lab.Ask(contract::RemoveRun{"gone"}).has_value());
  EXPECT_FALSE(std::filesystem::exists(lab.DirectoryOf("gone")));
  EXPECT_FALSE(IsAlive(std::stoi(started.metadata.at("process.pid"))));
  EXPECT_TRUE(lab.Ask(contract::ListRuns{})->runs.empty());
  EXPECT_TRUE(lab.Ask(contract::RemoveRun{"gone"}).has_value()) << "safe to repeat";
  TextSink sink;
  lab.runtime().ReadLogs({.workload = "gone"}, sink);
  EXPECT_EQ(sink.ended()->code(), Code::kNotFound);
}

TEST(ProcessRuntime, LogsHaveATailAndEndWithTheWorkload) {
  ProcessLab lab;
  lab.Shell("talker", "for i in 1 2 3 4 5; do echo $i; done; while ! [ -e go ]; do sleep 0.02; done; echo 6");
  Follower follower(lab, "talker", 2);
  ASSERT_TRUE(follower.sink().WaitFor("5\n"));
  std::ofstream(lab.DirectoryOf("talker") + "/work/go") << "now";
  ASSERT_TRUE(follower.sink().WaitFor("6\n"));
  lab.WaitForEnd("talker");
  EXPECT_EQ(lab.Output("talker", 3), "4\n5\n6\n");
  ASSERT_TRUE(lab.Ask(contract::RemoveRun{"talker"}).has_value());
  EXPECT_TRUE(WaitUntil([&] { return follower.sink().ended().has_value(); })) << "it follows until the removal";
  EXPECT_TRUE(follower.sink().out().ends_with("5\n6\n"));
}

TEST(ProcessRuntime, MeasuresWhatRuns) {
  ProcessLab lab;
  lab.Shell("busy", "while :; do :; done");
  ASSERT_TRUE(WaitUntil([&] {
    const auto usage = lab.runtime().Measure();
    return usage.size() == 1 && usage[0].first == "busy" && usage[0].second.cpu_milli > 0 &&
           usage[0].second.memory_bytes > 0;
  }));
}

}  // namespace
}  // namespace muster::runtime
