// What a process workload can and cannot do to others, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "runtime/process_lab_for_test.h"

namespace muster::runtime {
namespace {

// Users can be changed by root alone.
class ProcessIsolation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    // The way to the lab is open, as it is in /var/lib: what is closed must be closed by the runtime.
    std::filesystem::permissions(lab_.path(), std::filesystem::perms(0755));
  }
  std::string RunScript(const std::string& workload, const std::string& script) {
    lab_.Shell(workload, script);
    lab_.WaitForEnd(workload);
    return lab_.Output(workload);
  }
  ProcessLab lab_;
};

TEST_F(ProcessIsolation, EachWorkloadHasAUserOfItsOwn) {
  const std::string a = RunScript("a", "id -u; id -g; id -G");
  const std::string b = RunScript("b", "id -u; id -g; id -G");
  EXPECT_NE(a, b);
  const auto user = static_cast<uid_t>(std::stoul(a));
  EXPECT_GE(user, kFirstOwnUser);
  EXPECT_LT(user, kFirstOwnUser + kOwnUsers);
  const std::string line = std::to_string(user) + "\n";
  EXPECT_EQ(a, line + line + line) << "no group of the agent is left";
}

// Whoever chooses ids can find two with one user.
TEST_F(ProcessIsolation, NoTwoWorkloadsShareAUser) {
  const std::string root = lab_.path() + "/processes";
  std::map<uid_t, std::string> known;
  std::string victim;
  std::string thief;
  for (int i = 0; thief.empty(); ++i) {
    const std::string id = "w-" + std::to_string(i);
    const auto [at, is_new] = known.emplace(OwnUser(root, id), id);
    if (is_new) continue;
    victim = at->second;
    thief = id;
  }
  RunScript(victim, "echo secret > file");
  const auto refused = lab_.Ask(ProcessLab::Launch(thief, {"cat", lab_.DirectoryOf(victim) + "/work/file"}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message(),
            "its user would be that of \"" + victim + "\" on this node; give it another name");
  ASSERT_TRUE(lab_.Ask(contract::RemoveRun{victim}).has_value());
  EXPECT_EQ(RunScript(thief, "echo alone"), "alone\n");
}

TEST_F(ProcessIsolation, AWorkloadReadsNothingOfAnother) {
  RunScript("victim", "echo secret of the victim > file");
  const std::string root = lab_.path() + "/processes";
  const std::string output =
      RunScript("thief", "cat " + root + "/victim/work/file " + root + "/victim/log " + root + "/victim/launch; ls " +
                             root + " " + root + "/victim/work; echo x > " + root +
                             "/victim/work/planted; echo own > mine; cat " + root + "/thief/work/mine");
  EXPECT_FALSE(output.contains("secret")) << output;
  EXPECT_TRUE(output.contains("own\n")) << output;
  EXPECT_FALSE(output.contains("victim\n")) << "the list of workloads is closed: " << output;
  EXPECT_FALSE(std::filesystem::exists(root + "/victim/work/planted"));
}

TEST_F(ProcessIsolation, AWorkloadReachesNoOtherProcess) {
  const contract::Run victim = lab_.Start([] {
    contract::StartRun start = ProcessLab::Launch("victim", {"sleep", "1000"});
    start.spec.env["SECRET"] = "hidden";
    return start;
  }());
  const std::string pid = victim.metadata.at("process.pid");
  const std::string output = RunScript("thief", "kill -9 " + pid + " || echo refused; cat /proc/" + pid +
                                                    "/environ; ls -l /proc/" + pid + "/cwd; kill -9 $PPID || echo no");
  EXPECT_TRUE(output.contains("refused\n")) << output;
  EXPECT_TRUE(output.contains("no\n")) << "not even its shim: " << output;
  EXPECT_FALSE(output.contains("hidden")) << output;
  EXPECT_TRUE(IsAlive(std::stoi(pid)));
}

TEST_F(ProcessIsolation, PrivilegesDescriptorsAndSignalsAreThoseOfAFreshProcess) {
  const std::string output =
      RunScript("fresh",
                "grep -E 'NoNewPrivs|CapEff|CapPrm|SigBlk|SigIgn' /proc/self/status; ls /proc/self/fd | wc -l; "
                "ps -o sid= -p $$ | tr -d ' '; echo $$");
  EXPECT_TRUE(output.contains("NoNewPrivs:\t1\n")) << output;
  EXPECT_TRUE(output.contains("CapEff:\t0000000000000000\n")) << output;
  EXPECT_TRUE(output.contains("CapPrm:\t0000000000000000\n")) << output;
  EXPECT_TRUE(output.contains("SigBlk:\t0000000000000000\n")) << output;
  EXPECT_TRUE(output.contains("SigIgn:\t0000000000000000\n")) << output;
  EXPECT_TRUE(output.contains("\n4\n")) << "its three streams, and the directory that ls reads: " << output;
}

TEST(ProcessEnvironment, IsWhatTheTemplateGives) {
  ProcessLab lab;
  setenv("MUSTER_SECRET_OF_THE_AGENT", "x", 1);
  contract::StartRun start = ProcessLab::Launch("env", {"/usr/bin/env"});
  start.spec.env = {{"A", "1"}, {"B", "two words; $(id)"}};
  lab.Start(start);
  lab.WaitForEnd("env");
  EXPECT_EQ(lab.Output("env"),
            "A=1\nB=two words; "
            "$(id)\nMUSTER_WORKLOAD=env\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nHOME=" +
                std::filesystem::canonical(lab.path()).string() + "/processes/env/work\n");
}

TEST(ProcessEnvironment, ArgumentsAreNotReadByAShell) {
  ProcessLab lab;
  lab.Start(ProcessLab::Launch("args", {"printf", "%s|", "a b", "$HOME", "; id", "`id`"}));
  lab.WaitForEnd("args");
  EXPECT_EQ(lab.Output("args"), "a b|$HOME|; id|`id`|\n");
}

TEST(ProcessRefusals, NameTheField) {
  ProcessLab lab;
  const auto refusal = [&](auto change) {
    contract::StartRun start = ProcessLab::Launch("w", {"true"});
    change(start);
    const auto reply = lab.Ask(start);
    return reply ? std::string("started") : reply.error().ToString();
  };
  using contract::StartRun;
  EXPECT_EQ(refusal([](StartRun& s) { s.workload = "../evil"; }), "INVALID_ARGUMENT: workload: it is no id");
  EXPECT_EQ(refusal([](StartRun& s) { s.workload = ".."; }), "INVALID_ARGUMENT: workload: it is no id");
  EXPECT_EQ(refusal([](StartRun& s) { s.spec.command = {}; }), "INVALID_ARGUMENT: command: a process needs one");
  EXPECT_EQ(refusal([](StartRun& s) { s.spec.command = {std::string("tr\0ue", 5)}; }),
            "INVALID_ARGUMENT: command[0]: has a NUL");
  EXPECT_EQ(refusal([](StartRun& s) { s.spec.env["A=B"] = "x"; }),
            "INVALID_ARGUMENT: env: \"A=B\" is no name of a variable");
  EXPECT_EQ(refusal([](StartRun& s) { s.spec.env[""] = "x"; }), "INVALID_ARGUMENT: env: \"\" is no name of a variable");
  EXPECT_EQ(refusal([](StartRun& s) { s.spec.env["A"] = std::string("x\0y", 3); }),
            "INVALID_ARGUMENT: env.A: has a NUL");
  EXPECT_EQ(refusal([](StartRun& s) { s.spec.env["A"] = std::string(200 << 10, 'x'); }),
            "INVALID_ARGUMENT: env.A: is longer than 128Ki");
  EXPECT_EQ(refusal([](StartRun& s) { s.spec.volumes = {{.source = "/etc", .target = "/mnt"}}; }),
            "INVALID_ARGUMENT: volumes: a process has none; it sees the files of the node");
  EXPECT_TRUE(lab.Ask(contract::ListRuns{})->runs.empty()) << "what is refused leaves nothing";
}

TEST(ProcessUser, IsReadFromText) {
  EXPECT_EQ(ParseProcessUser("agent")->mode, ProcessUser::Mode::kAgent);
  if (geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  EXPECT_EQ(ParseProcessUser("own")->mode, ProcessUser::Mode::kOwn);
  EXPECT_EQ(ParseProcessUser("nobody")->user, 65534u);
  EXPECT_EQ(ParseProcessUser("no-such-user").error().message(), "there is no user \"no-such-user\"");
  EXPECT_NE(OwnUser("a", "w"), OwnUser("b", "w")) << "agents of one host do not share users";
}

}  // namespace
}  // namespace muster::runtime
