// `muster agent`, killed: by SIGKILL while its workloads run, and at every crash point. Afterwards processes have run
// on, logs go on, exit codes are known, and nothing was started twice.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "host/fault_table_for_test.h"
#include "host/temp_dir_for_test.h"
#include "rpc/agent_client.h"
#include "smoke/process.h"

namespace muster::agent {
namespace {

using contract::ActualState;

bool WaitUntil(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + smoke::kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 20);
  }
  return true;
}

// The address in a log line: "grpc=127.0.0.1:1234" or "grpc":"127.0.0.1:1234".
std::string AddressIn(const std::string& line) {
  const size_t at = line.find("127.0.0.1:", line.find("grpc"));
  if (at == std::string::npos) return "";
  return line.substr(at, line.find_first_not_of("0123456789", at + 10) - at);
}

class Agent {
 public:
  // `crash_point`: dies there; empty: lives.
  explicit Agent(const std::string& data_dir, const std::string& crash_point = "") : client_(*rpc::MakeAgentClient()) {
    std::vector<std::string> command = {"env", "MUSTER_CRASH_POINT=" + crash_point, std::getenv("MUSTER"), "agent"};
    if (crash_point.empty()) command = {std::getenv("MUSTER"), "agent"};
    for (const char* word : {"--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--node-id", "n1",
                             "--restart-pause", "50ms", "--data-dir"}) {
      command.emplace_back(word);
    }
    command.push_back(data_dir);
    process_ = std::make_unique<smoke::Process>(command);
    address_ = AddressIn(process_->WaitForErrorLine("listening"));
  }
  const std::string& address() const { return address_; }
  smoke::Process& process() { return *process_; }
  void Kill() {
    process_->Signal(SIGKILL);
    EXPECT_EQ(process_->Wait(), 128 + SIGKILL);
  }

  Result<contract::AgentReply> Ask(contract::AgentRequest request) {
    std::promise<Result<contract::AgentReply>> reply;
    client_->Ask({address_}, std::move(request), 10s, [&](auto got) { reply.set_value(std::move(got)); });
    return reply.get_future().get();
  }
  bool Apply(const std::string& workload, const std::string& script) {
    contract::ApplyOnAgent apply{.workload = workload, .revision = "r1"};
    apply.spec.type = model::WorkloadType::kProcess;
    apply.spec.command = {"sh", "-c", script};
    apply.spec.restart = model::RestartPolicy::kNever;
    return Ask(apply).has_value();
  }
  contract::WorkloadStatus Get(const std::string& workload) {
    auto reply = Ask(contract::GetStatusOnAgent{workload});
    if (reply) return std::get<contract::WorkloadStatus>(*std::move(reply));
    return {.workload = workload, .actual = ActualState::kMissing, .message = reply.error().message()};
  }
  contract::WorkloadStatus WaitFor(const std::string& workload, ActualState state) {
    contract::WorkloadStatus last;
    EXPECT_TRUE(WaitUntil([&] {
      last = Get(workload);
      return last.actual == state;
    })) << workload
        << " is " << contract::ActualStateName(last.actual) << ": " << last.message;
    return last;
  }
  void Delete(const std::string& workload) {
    EXPECT_TRUE(Ask(contract::DeleteOnAgent{.workload = workload, .grace = 1s}).has_value());
    EXPECT_TRUE(WaitUntil([&] { return Get(workload).actual == ActualState::kMissing; }));
  }

 private:
  std::unique_ptr<smoke::Process> process_;
  std::string address_;
  std::unique_ptr<rpc::AgentClient> client_;
};

std::string Text(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Each start of a workload adds a line to this file.
constexpr const char* kCounted = "echo start >> starts; echo up; ";

TEST(AgentKilled, WorkloadsRunOnAndAreAdopted) {
  const host::TempDir dir;
  const std::string work = dir.File("processes/web/work");
  std::string pid;
  {
    Agent agent(dir.path());
    ASSERT_TRUE(agent.Apply("web", std::string(kCounted) + "while ! [ -e go ]; do sleep 0.02; done; echo end; exit 7"));
    pid = agent.WaitFor("web", ActualState::kRunning).metadata.at("process.pid");
    agent.Kill();
  }
  EXPECT_EQ(kill(std::stoi(pid), 0), 0);
  {
    Agent agent(dir.path());
    EXPECT_EQ(agent.WaitFor("web", ActualState::kRunning).metadata.at("process.pid"), pid);
    agent.Kill();
  }
  std::ofstream(work + "/go") << "now";
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(dir.File("processes/web/exit")); }));
  Agent agent(dir.path());
  EXPECT_EQ(agent.WaitFor("web", ActualState::kFailed).exit_code, 7) << "it ended while no agent was there";
  EXPECT_EQ(Text(work + "/starts"), "start\n");
  const std::string log = Text(dir.File("processes/web/log"));
  EXPECT_TRUE(log.contains(" stdout F up\n") && log.contains(" stdout F end\n")) << log;
  agent.Delete("web");
}

TEST(AgentKilled, SigtermLeavesWorkloadsRunning) {
  const host::TempDir dir;
  Agent first(dir.path());
  ASSERT_TRUE(first.Apply("web", "exec sleep 1000"));
  const std::string pid = first.WaitFor("web", ActualState::kRunning).metadata.at("process.pid");
  first.process().Signal(SIGTERM);
  EXPECT_EQ(first.process().Wait(), 0);
  EXPECT_EQ(kill(std::stoi(pid), 0), 0);
  Agent second(dir.path());
  EXPECT_EQ(second.WaitFor("web", ActualState::kRunning).metadata.at("process.pid"), pid);
  second.Delete("web");
}

TEST(AgentKilled, AtEveryCrashPoint) {
  for (const faults::Row& point : faults::RowsOf("AgentKilled.AtEveryCrashPoint", "agent", "crash")) {
    SCOPED_TRACE(point.name);
    const host::TempDir dir;
    {
      Agent agent(dir.path());  // the first list of the runtime passes some of the points
      ASSERT_NE(agent.address(), "");
      agent.Kill();
    }
    // The second pass: the first one is the list at the start.
    const bool listed = point.name == "agent.before_operation" || point.name == "agent.after_operation";
    Agent dying(dir.path(), point.name + (listed ? ":2" : ":1"));
    ASSERT_NE(dying.address(), "");
    const bool answered = dying.Apply("job", std::string(kCounted) + "exit 0");
    ASSERT_EQ(dying.process().Wait(), 128 + SIGKILL) << "it never came to this point";
    Agent agent(dir.path());
    if (!answered) agent.Apply("job", std::string(kCounted) + "exit 0");
    EXPECT_EQ(agent.WaitFor("job", ActualState::kStopped).exit_code, 0);
    EXPECT_EQ(Text(dir.File("processes/job/work/starts")), "start\n");
    agent.Delete("job");
  }
}

}  // namespace
}  // namespace muster::agent
