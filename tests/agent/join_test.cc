// Agents that have joined a scheduler, both in this process, with real processes: from ApplySpec to what runs, and what
// happens when an agent goes and comes back.
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "host/temp_dir_for_test.h"
#include "role/agent/agent_role.h"
#include "role/scheduler/scheduler_role.h"
#include "role/scheduler/scheduler_settings.h"
#include "rpc/cluster_client.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kPatience{60};

bool WaitUntil(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 20);
  }
  return true;
}

template <class Role, class Options>
std::unique_ptr<Role> StartRole(void (*declare)(host::Settings&, Options&),
                                std::vector<std::pair<std::string, std::string>> flags) {
  Options options;
  host::Settings settings;
  declare(settings, options);
  flags.emplace_back("--listen", "127.0.0.1:0");
  flags.emplace_back("--metrics-addr", "127.0.0.1:0");
  for (const auto& [flag, value] : flags) EXPECT_EQ(settings.Give(flag, value), Status()) << flag;
  EXPECT_EQ(settings.Land(), Status());
  auto role = std::make_unique<Role>(std::move(options));
  EXPECT_EQ(role->Start({}), Status());
  return role;
}

class Cluster {
 public:
  Cluster()
      : scheduler_(StartRole<scheduler::SchedulerRole>(scheduler::DeclareSettings, {{"--store", "memory:"},
                                                                                    {"--reconcile-interval", "200ms"},
                                                                                    {"--node-timeout", "3s"},
                                                                                    {"--monitor-interval", "200ms"}})),
        address_(scheduler_->listen_address().ToString()),
        client_(*rpc::MakeClusterClient(address_)) {}

  std::unique_ptr<agent::AgentRole> Agent(const std::string& node, const std::string& data_dir) {
    return StartRole<agent::AgentRole>(agent::DeclareSettings, {{"--data-dir", data_dir},
                                                                {"--node-id", node},
                                                                {"--scheduler", address_},
                                                                {"--cpu", "4"},
                                                                {"--memory", "1Gi"}});
  }
  Result<contract::ClusterReply> Ask(contract::ClusterRequest request) {
    std::promise<Result<contract::ClusterReply>> reply;
    client_->Ask(std::move(request), [&](Result<contract::ClusterReply> got) { reply.set_value(std::move(got)); });
    return reply.get_future().get();
  }
  void Apply(const std::string& name, const std::string& script) {
    model::WorkloadSpec spec{.name = name};
    spec.spec.type = model::WorkloadType::kProcess;
    spec.spec.command = {"sh", "-c", script};
    spec.spec.grace = 1s;
    const auto reply = Ask(contract::ApplySpec{.spec = spec});
    ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  }
  contract::WorkloadView Get(const std::string& workload) {
    auto reply = Ask(contract::GetWorkload{workload});
    return reply ? std::get<contract::WorkloadView>(*std::move(reply)) : contract::WorkloadView{};
  }
  contract::WorkloadView WaitFor(const std::string& workload, model::WorkloadPhase phase) {
    contract::WorkloadView view;
    EXPECT_TRUE(WaitUntil([&] {
      view = Get(workload);
      return view.phase == phase;
    })) << workload
        << " is " << model::WorkloadPhaseName(view.phase) << ": " << view.message;
    return view;
  }
  void Delete(const std::string& workload) {
    ASSERT_TRUE(Ask(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = workload}).has_value());
    EXPECT_TRUE(WaitUntil([&] { return !Ask(contract::GetWorkload{workload}).has_value(); }));
  }

 private:
  std::unique_ptr<scheduler::SchedulerRole> scheduler_;
  const std::string address_;
  std::unique_ptr<rpc::ClusterClient> client_;
};

TEST(JoinedAgent, RunsWhatTheSchedulerAssigns) {
  const host::TempDir dir;
  Cluster cluster;
  auto agent = cluster.Agent("n1", dir.path());
  cluster.Apply("web", "echo up; exec sleep 1000");
  const contract::WorkloadView view = cluster.WaitFor("web", model::WorkloadPhase::kRunning);
  EXPECT_EQ(view.node, "n1");

  // An agent that is away for a moment: its process runs on and is adopted.
  agent.reset();
  agent = cluster.Agent("n1", dir.path());
  EXPECT_EQ(cluster.WaitFor("web", model::WorkloadPhase::kRunning).node, "n1");
  cluster.Delete("web");
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(dir.File("processes/web")); }));
}

TEST(JoinedAgent, AnAgentThatComesBackStopsWhatIsNoLongerItsOwn) {
  const host::TempDir first;
  const host::TempDir second;
  Cluster cluster;
  auto agent = cluster.Agent("n1", first.path());
  cluster.Apply("web", "exec sleep 1000");
  EXPECT_EQ(cluster.WaitFor("web", model::WorkloadPhase::kRunning).node, "n1");
  agent.reset();
  auto other = cluster.Agent("n2", second.path());
  EXPECT_TRUE(WaitUntil([&] {
    const contract::WorkloadView view = cluster.Get("web");
    return view.node == "n2" && view.phase == model::WorkloadPhase::kRunning;
  })) << "it runs elsewhere";
  EXPECT_TRUE(std::filesystem::exists(first.File("processes/web"))) << "and still where it was";
  agent = cluster.Agent("n1", first.path());
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(first.File("processes/web")); }));
  EXPECT_TRUE(std::filesystem::exists(second.File("processes/web")));
  cluster.Delete("web");
}

}  // namespace
}  // namespace muster
