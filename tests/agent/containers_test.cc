// Containers and compose files, all the way: applied to a scheduler, placed on an agent, run by a real engine.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "agent/cluster_for_test.h"
#include "cli/agent_conformance.h"
#include "host/free_ports.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "runtime/docker_json.h"
#include "runtime/podman_for_test.h"

namespace muster {
namespace {

using model::WorkloadPhase;
using runtime::Podman;

// What a server on this port says to whoever connects; empty if nobody is there.
std::string Hear(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval patience{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string text;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    char buffer[256];
    for (ssize_t got = 0; (got = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

// One engine for all; a scheduler and an agent for each.
class ContainersInACluster : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto podman = Podman::Start();
    ASSERT_TRUE(podman.has_value()) << podman.error().ToString();
    podman_ = podman->release();
  }
  static void TearDownTestSuite() {
    delete podman_;
    podman_ = nullptr;
  }
  ContainersInACluster()
      : cluster_({{"--max-attempts", "1"}, {"--retry-base", "100ms"}}),
        agent_(cluster_.Agent("n1", dir_.path(), Engine())) {}

  static Flags Engine() {
    return {{"--runtimes", "process"},
            {"--runtimes", "container"},
            {"--runtimes", "compose"},
            {"--docker-socket", podman_->socket()},
            {"--host-paths", std::filesystem::temp_directory_path()},
            {"--restart-pause", "50ms"},
            {"--max-restarts", "1"}};
  }
  static model::WorkloadTemplate Container(const std::string& script) {
    model::WorkloadTemplate spec;
    spec.type = model::WorkloadType::kContainer;
    spec.image = Podman::kImage;
    spec.command = {"/bin/sh", "-c", script};
    return spec;
  }
  Result<rapidjson::Document> Engine(const std::string& path) {
    MUSTER_ASSIGN_OR_RETURN(const runtime::DockerReply reply, runtime::DockerApi(podman_->socket()).Get(path, 20s));
    return runtime::ParseJson(reply);
  }
  // The containers of all workloads, as the engine has them.
  std::vector<std::string> Ids() {
    std::vector<std::string> ids;
    const auto list = Engine("/containers/json?all=1");
    EXPECT_TRUE(list.has_value());
    for (const runtime::Json& row : list->GetArray()) ids.push_back(runtime::TextAt(row, "Id"));
    return ids;
  }

  static Podman* podman_;
  const host::TempDir dir_;
  Cluster cluster_;
  std::unique_ptr<agent::AgentRole> agent_;
};
Podman* ContainersInACluster::podman_ = nullptr;

TEST_F(ContainersInACluster, RunWithLogsEnvironmentPortsVolumesAndLimits) {
  const auto port = host::FreePorts(1);
  ASSERT_TRUE(port.has_value());
  const host::TempDir files;
  std::filesystem::permissions(files.path(), std::filesystem::perms::all);  // for whoever the container is
  model::WorkloadTemplate spec =
      Container("echo $GREETING; echo kept > /data/file; while :; do echo hello | nc -l -p 80; done");
  spec.env = {{"GREETING", "good day"}};
  spec.ports = {{.container = 80, .host = port->front()}};
  spec.volumes = {{.source = files.path(), .target = "/data"}};
  spec.resources = {{"cpu", 500}, {"memory", int64_t{64} * 1024 * 1024 * 1000}};
  cluster_.Apply("web", spec);
  cluster_.WaitFor("web", WorkloadPhase::kRunning);
  EXPECT_TRUE(WaitUntil([&] { return cluster_.Logs("web").contains("good day\n"); }));
  EXPECT_TRUE(WaitUntil([&] { return Hear(port->front()) == "hello\n"; })) << "its port is not reached";
  std::string text;
  std::ifstream(files.File("file")) >> text;
  EXPECT_EQ(text, "kept");
  ASSERT_EQ(Ids().size(), 1U);
  const auto container = Engine("/containers/" + Ids()[0] + "/json");
  ASSERT_TRUE(container.has_value());
  const runtime::Json& host_config = runtime::At(*container, "HostConfig");
  EXPECT_EQ(runtime::NumberAt(host_config, "Memory"), 64 << 20);
  EXPECT_EQ(runtime::NumberAt(host_config, "NanoCpus"), 500'000'000);

  // The port is taken: placement says so, and nothing is tried.
  model::WorkloadTemplate second = Container("sleep 1000");
  second.ports = spec.ports;
  cluster_.Apply("second", second);
  ASSERT_TRUE(WaitUntil([&] { return !cluster_.Get("second").reason.empty(); }));
  const contract::WorkloadView refused = cluster_.Get("second");
  EXPECT_EQ(refused.phase, WorkloadPhase::kPending);
  EXPECT_TRUE(refused.message.contains(std::to_string(port->front()))) << refused.message;
  cluster_.Delete("web");
  EXPECT_EQ(cluster_.WaitFor("second", WorkloadPhase::kRunning).node, "n1") << "the port is free again";
  cluster_.Delete("second");
  EXPECT_TRUE(WaitUntil([&] { return Ids().empty(); }));
}

TEST_F(ContainersInACluster, EndByTheirRestartPolicy) {
  model::WorkloadTemplate job = Container("echo done");
  job.restart = model::RestartPolicy::kNever;
  cluster_.Apply("job", job);
  model::WorkloadTemplate loop = Container("echo no luck; exit 4");
  loop.restart = model::RestartPolicy::kOnFailure;
  cluster_.Apply("loop", loop);
  EXPECT_EQ(cluster_.WaitFor("job", WorkloadPhase::kCompleted).exit_code, 0);
  const contract::WorkloadView failed = cluster_.WaitFor("loop", WorkloadPhase::kFailed);
  EXPECT_TRUE(failed.message.contains("gave up after 1 restarts: exit code 4; its last output: no luck"))
      << failed.message;
  cluster_.Delete("job");
  cluster_.Delete("loop");
  EXPECT_TRUE(WaitUntil([&] { return Ids().empty(); }));
}

TEST_F(ContainersInACluster, AComposeFileWithTwoServices) {
  model::WorkloadTemplate spec;
  spec.type = model::WorkloadType::kCompose;
  spec.env = {{"WORD", "hello"}};
  spec.compose = fmt::format(R"(
services:
  front:
    image: {0}
    command: [/bin/sh, -c, "until nc -w 5 back 80 </dev/null; do sleep 0.1; done; sleep 1000"]
    depends_on: [back]
  back:
    image: {0}
    command: [/bin/sh, -c, "while :; do echo ${{WORD}} from back | nc -l -p 80; done"]
)",
                             Podman::kImage);
  cluster_.Apply("pair", spec);
  cluster_.WaitFor("pair", WorkloadPhase::kRunning);
  EXPECT_TRUE(WaitUntil([&] { return cluster_.Logs("pair").contains("front | hello from back\n"); }));
  const std::vector<std::string> before = Ids();
  EXPECT_EQ(before.size(), 2U);

  // The agent is restarted: both containers run on and are its own again.
  agent_.reset();
  agent_ = cluster_.Agent("n1", dir_.path(), Engine());
  cluster_.WaitFor("pair", WorkloadPhase::kRunning);
  EXPECT_EQ(Ids(), before);
  cluster_.Delete("pair");
  EXPECT_TRUE(Ids().empty());

  // What is not supported is refused by its path, and nothing is started.
  spec.compose = fmt::format("services: {{web: {{image: \"{}\", privileged: true}}}}", Podman::kImage);
  cluster_.Apply("bad", spec);
  const contract::WorkloadView failed = cluster_.WaitFor("bad", WorkloadPhase::kFailed);
  EXPECT_TRUE(failed.message.contains("services.web.privileged: not supported")) << failed.message;
  EXPECT_TRUE(Ids().empty());
  cluster_.Delete("bad");
}

TEST_F(ContainersInACluster, TheEngineMayGoAndComeBack) {
  cluster_.Apply("steady", Container("sleep 1000"));
  cluster_.WaitFor("steady", WorkloadPhase::kRunning);
  const std::vector<std::string> before = Ids();
  podman_->StopService();
  // A start that the engine does not answer shows that it is gone.
  cluster_.Apply("late", Container("sleep 1000"));
  EXPECT_TRUE(WaitUntil([&] { return cluster_.Get("steady").actual == contract::ActualState::kUnknown; }));
  cluster_.Apply("other", "exec sleep 1000");
  cluster_.WaitFor("other", WorkloadPhase::kRunning);  // processes do not wait for the engine
  ASSERT_EQ(podman_->StartService(), Status());
  cluster_.WaitFor("late", WorkloadPhase::kRunning);
  cluster_.WaitFor("steady", WorkloadPhase::kRunning);
  const std::vector<std::string> after = Ids();
  EXPECT_EQ(after.size(), 2U);
  EXPECT_TRUE(std::ranges::find(after, before.at(0)) != after.end()) << "it ran on";
  for (const char* const name : {"steady", "late", "other"}) cluster_.Delete(name);
}

// As after a boot, when the agent is up before the engine.
TEST_F(ContainersInACluster, AnEngineThatComesLaterIsOfferedThen) {
  podman_->StopService();
  const host::TempDir dir;
  const auto early = cluster_.Agent("early", dir.path(), Engine());
  agent_->Stop();
  EXPECT_EQ(cluster_.GetNode("early").supported_types, std::vector{model::WorkloadType::kProcess});
  cluster_.Apply("waits", Container("sleep 1000"));
  ASSERT_EQ(podman_->StartService(), Status());
  EXPECT_TRUE(WaitUntil([&] { return cluster_.GetNode("early").supported_types.size() == 3; }));
  cluster_.WaitFor("waits", WorkloadPhase::kRunning);
  EXPECT_EQ(cluster_.Get("waits").node, "early");
  cluster_.Delete("waits");
}

// An agent that has joined nobody, as `muster conformance agent` asks for.
TEST_F(ContainersInACluster, OurAgentKeepsEveryRuleOfItsContract) {
  const host::TempDir dir;
  Flags flags = Engine();
  flags.insert(flags.end(), {{"--data-dir", dir.path()}, {"--node-id", "alone"}});
  const auto alone = StartRole<agent::AgentRole>(agent::DeclareSettings, flags);
  const auto probe = rpc::MakeAgentProbe(alone->listen_address().ToString());
  ASSERT_TRUE(probe.has_value());
  const host::SystemClock clock;
  for (const std::string& image : {std::string(), std::string(Podman::kImage)}) {
    const cli::AgentConformanceOptions options{
        .use_workloads = true, .image = image, .run_id = "own", .poll_every = 20ms};
    for (const provider::CheckResult& result : cli::RunAgentConformance(**probe, options, clock)) {
      EXPECT_EQ(result.verdict, provider::Verdict::kHolds) << image << " " << result.name << ": " << result.detail;
    }
  }
}

}  // namespace
}  // namespace muster
