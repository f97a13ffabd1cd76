// A whole agent in this process, driven over gRPC: real shims, real processes.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "host/temp_dir_for_test.h"
#include "role/agent/agent_role.h"
#include "rpc/agent_client.h"

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kPatience{60};

bool WaitUntil(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 10);
  }
  return true;
}

class TextSink final : public contract::LogsSink {
 public:
  bool Write(contract::LogChunk chunk) override {
    text_ += chunk.data;
    return true;
  }
  bool Gone() const override { return false; }
  void End(Status status) override { ended_.set_value({std::move(status), std::move(text_)}); }
  std::pair<Status, std::string> Wait() { return ended_.get_future().get(); }

 private:
  std::string text_;
  std::promise<std::pair<Status, std::string>> ended_;
};

class RunningAgent {
 public:
  explicit RunningAgent(const std::string& data_dir) : client_(*rpc::MakeAgentClient()) {
    RoleOptions options;
    host::Settings settings;
    DeclareSettings(settings, options);
    for (const auto& [flag, value] :
         std::initializer_list<std::pair<const char*, std::string>>{{"--data-dir", data_dir},
                                                                    {"--listen", "127.0.0.1:0"},
                                                                    {"--metrics-addr", "127.0.0.1:0"},
                                                                    {"--node-id", "n1"},
                                                                    {"--cpu", "2"},
                                                                    {"--memory", "1Gi"},
                                                                    {"--usage-interval", "100ms"},
                                                                    {"--restart-pause", "10ms"}}) {
      EXPECT_EQ(settings.Give(flag, value), Status());
    }
    EXPECT_EQ(settings.Land(), Status());
    role_ = std::make_unique<AgentRole>(std::move(options));
    const Status started = role_->Start({});
    EXPECT_EQ(started, Status());
  }
  std::string address() const { return role_->listen_address().ToString(); }
  rpc::AgentClient& client() { return *client_; }

  Result<contract::AgentReply> Ask(contract::AgentRequest request) {
    std::promise<Result<contract::AgentReply>> reply;
    client_->Ask({address()}, std::move(request), kPatience,
                 [&](Result<contract::AgentReply> got) { reply.set_value(std::move(got)); });
    return reply.get_future().get();
  }
  Result<contract::AppliedOnAgent> Apply(
      const std::string& workload, const std::string& script,
      const std::function<void(contract::ApplyOnAgent&)>& change = [](auto&) {}) {
    contract::ApplyOnAgent apply{.workload = workload, .revision = "r1"};
    apply.spec.type = model::WorkloadType::kProcess;
    apply.spec.command = {"sh", "-c", script};
    change(apply);
    auto reply = Ask(apply);
    if (!reply) return std::unexpected(reply.error());
    return std::get<contract::AppliedOnAgent>(*std::move(reply));
  }
  Result<contract::WorkloadStatus> Get(const std::string& workload) {
    auto reply = Ask(contract::GetStatusOnAgent{workload});
    if (!reply) return std::unexpected(reply.error());
    return std::get<contract::WorkloadStatus>(*std::move(reply));
  }
  contract::WorkloadStatus WaitFor(const std::string& workload, contract::ActualState state) {
    contract::WorkloadStatus last;
    EXPECT_TRUE(WaitUntil([&] {
      auto status = Get(workload);
      if (status) last = *std::move(status);
      return last.actual == state;
    })) << workload
        << " is " << contract::ActualStateName(last.actual) << ": " << last.message;
    return last;
  }
  std::string Logs(const std::string& workload) {
    const auto sink = std::make_shared<TextSink>();
    client_->ReadLogs({address()}, {.workload = workload}, sink);
    return sink->Wait().second;
  }
  void Delete(const std::string& workload) {
    ASSERT_TRUE(Ask(contract::DeleteOnAgent{.workload = workload, .grace = 1s}).has_value());
    ASSERT_TRUE(WaitUntil([&] { return !Get(workload).has_value(); }));
    EXPECT_EQ(Get(workload).error().code(), Code::kNotFound);
  }

 private:
  std::unique_ptr<AgentRole> role_;
  std::unique_ptr<rpc::AgentClient> client_;
};

using contract::ActualState;

TEST(AgentOverGrpc, RunsAProcessFromApplyToDelete) {
  const host::TempDir dir;
  RunningAgent agent(dir.path());
  const auto applied = agent.Apply("web", "echo up; exec sleep 1000");
  ASSERT_TRUE(applied.has_value()) << applied.error().ToString();
  EXPECT_TRUE(applied->applied);
  EXPECT_FALSE(applied->skipped);
  EXPECT_EQ(applied->status.actual, ActualState::kPending);
  const contract::WorkloadStatus status = agent.WaitFor("web", ActualState::kRunning);
  EXPECT_EQ(status.revision, "r1");
  EXPECT_EQ(status.type, model::WorkloadType::kProcess);
  EXPECT_TRUE(agent.Apply("web", "echo up; exec sleep 1000")->skipped);
  EXPECT_TRUE(WaitUntil([&] { return agent.Logs("web") == "up\n"; }));
  EXPECT_TRUE(WaitUntil([&] {
    const auto now = agent.Get("web");
    return now && now->usage && now->usage->memory_bytes > 0;
  }));
  agent.Delete("web");
}

TEST(AgentOverGrpc, AJobEndsStoppedWithItsExitCode) {
  const host::TempDir dir;
  RunningAgent agent(dir.path());
  ASSERT_TRUE(agent.Apply("job", "exit 0", [](auto& a) { a.spec.restart = model::RestartPolicy::kOnFailure; }));
  EXPECT_EQ(agent.WaitFor("job", ActualState::kStopped).exit_code, 0);
  agent.Delete("job");
}

TEST(AgentOverGrpc, ACrashLoopIsFailedWithItsLastOutput) {
  const host::TempDir dir;
  RunningAgent agent(dir.path());
  ASSERT_TRUE(agent.Apply("loop", "echo trouble ahead; exit 3"));
  const contract::WorkloadStatus failed = agent.WaitFor("loop", ActualState::kFailed);
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(failed.restarts, 3);
  EXPECT_EQ(failed.message, "gave up after 3 restarts: exit code 3; its last output: trouble ahead");
  EXPECT_EQ(failed.metadata.at("last_output"), "trouble ahead\ntrouble ahead\ntrouble ahead\ntrouble ahead\n");
  const auto again = agent.Apply("loop", "echo trouble ahead; exit 3");
  EXPECT_FALSE(again->skipped) << "the same revision that has failed is applied again";
  agent.WaitFor("loop", ActualState::kFailed);
  agent.Delete("loop");
}

TEST(AgentOverGrpc, ANewRevisionReplacesWhatRuns) {
  const host::TempDir dir;
  RunningAgent agent(dir.path());
  ASSERT_TRUE(agent.Apply("web", "echo one; exec sleep 1000"));
  const std::string first = agent.WaitFor("web", ActualState::kRunning).metadata.at("process.pid");
  ASSERT_TRUE(agent.Apply("web", "echo two; exec sleep 1000", [](auto& a) { a.revision = "r2"; }));
  ASSERT_TRUE(WaitUntil([&] {
    const auto status = agent.Get("web");
    return status && status->actual == ActualState::kRunning && status->metadata.at("process.pid") != first;
  }));
  EXPECT_NE(kill(std::stoi(first), 0), 0);
  EXPECT_EQ(agent.Get("web")->revision, "r2");
  agent.Delete("web");
}

TEST(AgentOverGrpc, RefusesWhatDoesNotFit) {
  const host::TempDir dir;
  RunningAgent agent(dir.path());
  const auto big = agent.Apply("big", "true", [](auto& a) { a.spec.resources.Set("cpu", 3000); });
  ASSERT_FALSE(big.has_value());
  EXPECT_EQ(big.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(big.error().message().contains("cpu: big asks for 3, with it the node would have 3 of 2"))
      << big.error().message();
  const auto container = agent.Apply("box", "", [](auto& a) {
    a.spec = {};
    a.spec.type = model::WorkloadType::kContainer;
    a.spec.image = "busybox";
  });
  ASSERT_FALSE(container.has_value());
  EXPECT_TRUE(container.error().message().contains("runtime not available: container")) << container.error().message();
}

TEST(AgentOverGrpc, AnAgentThatIsStartedAgainAdoptsWhatRuns) {
  const host::TempDir dir;
  std::string pid;
  {
    RunningAgent agent(dir.path());
    ASSERT_TRUE(agent.Apply("web", "echo up; exec sleep 1000"));
    pid = agent.WaitFor("web", ActualState::kRunning).metadata.at("process.pid");
  }
  EXPECT_EQ(kill(std::stoi(pid), 0), 0) << "it runs on";
  RunningAgent agent(dir.path());
  const auto status = agent.Get("web");
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->actual, ActualState::kRunning);
  EXPECT_EQ(status->metadata.at("process.pid"), pid);
  EXPECT_EQ(agent.Logs("web"), "up\n");
  agent.Delete("web");
}

}  // namespace
}  // namespace muster::agent
