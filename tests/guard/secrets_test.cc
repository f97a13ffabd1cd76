// A marker in a cluster's bootstrap data goes through a shard and a provider, and one in a secret variable of a
// workload through a scheduler and an agent, all with journals. Once the machine has joined, and once the workload is
// gone, it is in no file of theirs; nor does replay, or any verb, show it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "host/temp_dir_for_test.h"
#include "rpc/session_client.h"
#include "scheduler/life_for_test.h"
#include "shard/fleet.h"

namespace muster::guard {
namespace {

using shard::Eventually;

constexpr const char* kMarker = "join-secret-7c1f0b52";

// A cluster of one need that answers with the marker.
class Teller final : public rpc::SessionHandler {
 public:
  explicit Teller(const std::string& target) {
    client_ = *rpc::OpenSession(
        target, {.cluster_id = "blue", .protocol_version = std::string(contract::kProtocolVersion)}, *this);
    client_->Send(contract::Rollup{
        .cluster_id = "blue", .timestamp = {}, .rows = contract::NeedRows({shard::NeedOf("blue", 2)})});
    answering_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mu_);
      while (wakes_.wait(lock, stop, [this] { return !asked_.empty(); })) {
        const std::string request = asked_.back();
        asked_.pop_back();
        lock.unlock();
        client_->Send(contract::BootstrapResponse{.request_id = request, .user_data = kMarker});
        lock.lock();
      }
    });
  }

 private:
  void Received(contract::ShardMessage message) override {
    const std::lock_guard lock(mu_);
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) asked_.push_back(request->request_id);
    wakes_.notify_all();
  }
  void Unreadable(Status) override {}
  void Ended(Status) override {}

  std::mutex mu_;
  std::condition_variable_any wakes_;
  std::vector<std::string> asked_;  // guarded by mu_
  std::unique_ptr<rpc::SessionClient> client_;
  std::jthread answering_;
};

bool Has(const std::filesystem::path& path, const std::string& marker) {
  std::ifstream file(path, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file), {}}.contains(marker);
}
std::vector<std::string> FilesWith(const std::string& marker, const std::filesystem::path& root) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file() && Has(entry.path(), marker)) found.push_back(entry.path().string());
  }
  return found;
}

mode_t ModeOf(const std::string& path) {
  struct stat found = {};
  stat(path.c_str(), &found);
  return found.st_mode & 0777U;
}

TEST(Secrets, ABootstrapSecretIsInNoFileAfterItsUse) {
  const shard::Fleet fleet(8);
  std::filesystem::create_directory(fleet.File("provider"));
  chmod(fleet.File("provider").c_str(), 0777);
  provider::Life provider(provider::ProviderCommand(fleet.File("provider"), fleet.File("catalogue.yaml"), 8,
                                                    {"--journal", fleet.File("provider-journal")}));
  ASSERT_TRUE(provider.up()) << provider.process().err();
  EXPECT_EQ(ModeOf(fleet.File("provider")), 0751u) << "others may no longer write there, or look";
  shard::ShardLife shard(fleet.ShardCommand(provider.grpc(), ":0", {"--journal", fleet.File("shard-journal")}));
  ASSERT_TRUE(shard.up()) << shard.process().err();
  {
    const Teller blue(shard.grpc());
    ASSERT_TRUE(Eventually([&] { return shard.Settled(1); }));
    EXPECT_TRUE(Eventually([&] { return std::filesystem::is_empty(fleet.File("provider") + "/secrets"); }));
  }
  shard.process().Signal(SIGTERM);
  EXPECT_EQ(shard.process().Wait(), 0);
  provider.process().Signal(SIGTERM);
  EXPECT_EQ(provider.process().Wait(), 0);
  const std::filesystem::path root = std::filesystem::path(fleet.File("provider")).parent_path();
  EXPECT_EQ(FilesWith(kMarker, root), std::vector<std::string>());
  EXPECT_FALSE(FilesWith("blue", root).empty()) << "the search finds what is there";
  EXPECT_FALSE((shard.process().err() + provider.process().err()).contains(kMarker));
  for (const std::string journal : {"shard-journal", "provider-journal"}) {
    smoke::Process replay({smoke::ProgramUnderTest(), "replay", fleet.File(journal), "--verbose"});
    EXPECT_EQ(replay.Wait(), 0) << replay.err();
    EXPECT_FALSE(replay.out().contains(kMarker));
    EXPECT_TRUE(replay.out().contains("secret:")) << "a handle is in its place";
  }
}

// A machine of the local backend is an agent, which gets the bootstrap data as its configuration.
TEST(Secrets, ALocalMachineHasItsBootstrapSecretInNoFile) {
  const host::TempDir dir;
  scheduler::SchedulerLife scheduler(scheduler::SchedulerCommand("sqlite:" + dir.File("store")));
  ASSERT_TRUE(scheduler.up()) << scheduler.process().err();
  std::ofstream(dir.File("catalogue.yaml")) << "zones: [a]\ntypes:\n  - name: small\n    capacity: on-demand\n"
                                            << "    resources: {cpu: 1, memory: 1Gi}\n    price: 1\n";
  provider::Life provider(provider::ProviderCommand(dir.File("provider"), dir.File("catalogue.yaml"), 1,
                                                    {"--backend", "local", "--retire"}));
  ASSERT_TRUE(provider.up()) << provider.process().err();
  const auto ask = [&](contract::ProviderRequest request) {
    return shard::Wait<contract::ProviderReply>(
        [&](auto done) { provider.client().Ask(std::move(request), 10s, std::move(done)); });
  };
  const auto becomes = [&](model::MachineState state) {
    return Eventually([&] {
      const auto got = ask(contract::GetRequest{"m-000001"});
      return got && std::get<contract::GetReply>(*got).machine->state == state;
    });
  };
  const auto joined = [&] {
    return Eventually([&] {
      const auto nodes = scheduler.Nodes();
      return nodes.size() == 1 && nodes[0].status == model::NodeStatus::kReady;
    });
  };
  ASSERT_TRUE(ask(contract::CreateRequest{.machine_id = "m-000001", .fence = {"shard", 1, 1}}));
  ASSERT_TRUE(becomes(model::MachineState::kIdle));
  ASSERT_TRUE(ask(contract::ConfigureRequest{
      .machine_id = "m-000001",
      .cluster_id = "blue",
      .bootstrap_blob = fmt::format("# {}\nscheduler: [{}]\nrestart-pause: 50ms\n", kMarker, scheduler.grpc()),
      .fence = {"shard", 1, 2}}));
  EXPECT_TRUE(becomes(model::MachineState::kConfigured));
  EXPECT_TRUE(joined());
  EXPECT_TRUE(Eventually([&] { return FilesWith(kMarker, dir.path()).empty(); }))
      << fmt::format("{}", fmt::join(FilesWith(kMarker, dir.path()), "\n"));
  // An agent that dies comes back without it.
  const auto pid = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
      if (entry.path().filename() != "agent.status") continue;
      std::ifstream file(entry.path());
      std::string word;
      int number = 0;
      if (file >> word >> number && word == "pid") return number;
    }
    return 0;
  };
  const int first = pid();
  ASSERT_GT(first, 1);
  ASSERT_EQ(kill(first, SIGKILL), 0);
  EXPECT_TRUE(Eventually([&] { return pid() > 1 && pid() != first; }));
  EXPECT_TRUE(joined());
  provider.process().Signal(SIGTERM);
  EXPECT_EQ(provider.process().Wait(), 0);
  EXPECT_EQ(FilesWith(kMarker, dir.path()), std::vector<std::string>());
}

constexpr const char* kVariable = "env-secret-0d93ab61";

class Variables : public ::testing::Test {
 protected:
  Variables() {
    auto command = scheduler::SchedulerCommand("sqlite:" + dir_.File("store"));
    command.insert(command.end(), {"--journal", dir_.File("scheduler-journal")});
    scheduler_ = std::make_unique<scheduler::SchedulerLife>(command);
    agent_ = std::make_unique<smoke::Server>(std::vector<std::string>{smoke::ProgramUnderTest(),
                                                                      "agent",
                                                                      "--listen",
                                                                      "127.0.0.1:0",
                                                                      "--metrics-addr",
                                                                      "127.0.0.1:0",
                                                                      "--node-id",
                                                                      "n1",
                                                                      "--data-dir",
                                                                      dir_.File("agent"),
                                                                      "--journal",
                                                                      dir_.File("agent-journal"),
                                                                      "--scheduler",
                                                                      scheduler_->grpc(),
                                                                      "--restart-pause",
                                                                      "50ms",
                                                                      "--usage-interval",
                                                                      "200ms",
                                                                      "--max-restarts",
                                                                      "100"});
  }
  void SetUp() override {
    ASSERT_TRUE(scheduler_->up()) << scheduler_->process().err();
    ASSERT_NE(agent_->grpc(), "") << agent_->process().err();
  }
  // What the verb prints; it must succeed.
  std::string Output(std::vector<std::string> words, const std::string& input = {}) {
    words.insert(words.begin(), smoke::ProgramUnderTest());
    words.insert(words.end(), {"--scheduler", scheduler_->grpc()});
    if (!input.empty()) {
      std::ofstream(dir_.File("file.yaml")) << input;
      words.insert(words.end(), {"-f", dir_.File("file.yaml")});
    }
    smoke::Process process(words);
    EXPECT_EQ(process.Wait(), 0) << process.err();
    std::filesystem::remove(dir_.File("file.yaml"));
    return process.out() + process.err();
  }
  bool Runs() {
    const auto all = scheduler_->Workloads();
    return all.size() == 1 && all[0].phase == model::WorkloadPhase::kRunning;
  }
  static std::string File(const std::string& secret) {
    return fmt::format(
        "kind: Workload\nname: web\ntemplate:\n  type: process\n  command: [sh, -c, 'echo the token has ${{#TOKEN}} "
        "letters; "
        "while ! [ -e go ]; do sleep 0.05; done; rm go; exit 1']\n  secretEnv: {{TOKEN: \"{}\"}}\n  grace: 1s\n  "
        "resources: {{cpu: 10m}}\n",
        secret);
  }
  bool Wrote(const std::string& line) {
    return Eventually([&] { return Output({"logs", "web"}).contains(line); });
  }

  const host::TempDir dir_;
  std::unique_ptr<scheduler::SchedulerLife> scheduler_;
  std::unique_ptr<smoke::Server> agent_;
};

TEST_F(Variables, ASecretVariableIsInNoFileAfterItsWorkload) {
  EXPECT_TRUE(Output({"apply"}, File(kVariable)).contains("created"));
  ASSERT_TRUE(Eventually([&] { return Runs(); }));
  EXPECT_TRUE(Wrote(fmt::format("the token has {} letters", std::string(kVariable).size()))) << "the process has it";
  const std::string shown = Output({"get", "workload", "web", "-o", "yaml"});
  EXPECT_TRUE(shown.contains("TOKEN")) << shown;
  for (const std::string& text : {shown, Output({"describe", "workload", "web"}),
                                  Output({"get", "workloads", "-o", "json"}), Output({"diff"}, File(kVariable))}) {
    EXPECT_FALSE(text.contains(kVariable)) << text;
  }
  const std::vector<std::string> during = FilesWith(kVariable, dir_.path());
  ASSERT_EQ(during.size(), 1u) << fmt::format("{}", fmt::join(during, "\n"));
  EXPECT_TRUE(during[0].starts_with(dir_.File("agent/secrets/"))) << during[0];
  EXPECT_EQ(ModeOf(during[0]), 0600u);
  EXPECT_TRUE(Output({"apply"}, File(kVariable)).contains("unchanged")) << "the same value is no change";
  const std::string backup = dir_.File("backup");
  smoke::Process saves(
      {smoke::ProgramUnderTest(), "store", "backup", backup, "--store", "sqlite:" + dir_.File("store")});
  EXPECT_EQ(saves.Wait(), 0) << saves.err();
  EXPECT_TRUE(Has(backup, "TOKEN"));
  EXPECT_FALSE(Has(backup, kVariable));

  // Another value takes the place of the first.
  EXPECT_TRUE(Output({"apply"}, File("another")).contains("configured"));
  EXPECT_TRUE(Wrote("the token has 7 letters"));
  EXPECT_TRUE(Eventually([&] { return FilesWith(kVariable, dir_.path()).empty(); })) << "the first value is erased";
  EXPECT_TRUE(Output({"apply"}, File(kVariable)).contains("configured"));

  EXPECT_FALSE(Output({"delete", "workload", "web"}).empty());
  EXPECT_TRUE(Eventually([&] { return scheduler_->Workloads().empty(); }));
  EXPECT_TRUE(Eventually([&] { return std::filesystem::is_empty(dir_.File("agent/secrets")); }));
  agent_->process().Signal(SIGTERM);
  EXPECT_EQ(agent_->process().Wait(), 0);
  scheduler_->process().Signal(SIGTERM);
  EXPECT_EQ(scheduler_->process().Wait(), 0);
  EXPECT_EQ(FilesWith(kVariable, dir_.path()), std::vector<std::string>());
  EXPECT_FALSE(FilesWith("TOKEN", dir_.path()).empty()) << "the search finds what is there";
  EXPECT_FALSE((scheduler_->process().err() + agent_->process().err()).contains(kVariable));
  for (const std::string journal : {"scheduler-journal", "agent-journal"}) {
    smoke::Process replay({smoke::ProgramUnderTest(), "replay", dir_.File(journal), "--verbose"});
    EXPECT_EQ(replay.Wait(), 0) << replay.err();
    EXPECT_FALSE(replay.out().contains(kVariable));
    EXPECT_TRUE(replay.out().contains("TOKEN")) << "its name is there";
  }
}

TEST_F(Variables, ARestartedAgentStartsItAgainWithItsSecret) {
  EXPECT_TRUE(Output({"apply"}, File(kVariable)).contains("created"));
  ASSERT_TRUE(Eventually([&] { return Runs(); }));
  agent_->process().Signal(SIGKILL);
  agent_->process().Wait();
  agent_ = std::make_unique<smoke::Server>(
      std::vector<std::string>{smoke::ProgramUnderTest(), "agent", "--listen", "127.0.0.1:0", "--metrics-addr",
                               "127.0.0.1:0", "--node-id", "n1", "--data-dir", dir_.File("agent"), "--scheduler",
                               scheduler_->grpc(), "--restart-pause", "50ms", "--usage-interval", "200ms"});
  ASSERT_NE(agent_->grpc(), "") << agent_->process().err();
  ASSERT_TRUE(Eventually([&] { return Runs(); }));
  std::ofstream(dir_.File("agent/processes/web/work/go")) << "\n";
  EXPECT_TRUE(Eventually([&] {
    const std::string logs = Output({"logs", "web"});
    const std::string line = fmt::format("the token has {} letters", std::string(kVariable).size());
    const size_t first = logs.find(line);
    return first != std::string::npos && logs.find(line, first + 1) != std::string::npos;
  }));
  EXPECT_FALSE(Output({"delete", "workload", "web"}).empty());
  EXPECT_TRUE(Eventually([&] { return std::filesystem::is_empty(dir_.File("agent/secrets")); }));
}

}  // namespace
}  // namespace muster::guard
