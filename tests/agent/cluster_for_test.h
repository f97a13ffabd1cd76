// Cluster: a scheduler in this process, with agents in this process that join it, and what tests ask of it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/settings.h"
#include "role/agent/agent_role.h"
#include "role/scheduler/scheduler_role.h"
#include "role/scheduler/scheduler_settings.h"
#include "rpc/cluster_client.h"

namespace muster {

constexpr std::chrono::seconds kPatience{60};

inline bool WaitUntil(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 20);
  }
  return true;
}

using Flags = std::vector<std::pair<std::string, std::string>>;

template <class Role, class Options>
std::unique_ptr<Role> StartRole(void (*declare)(host::Settings&, Options&), Flags flags) {
  Options options;
  host::Settings settings;
  declare(settings, options);
  flags.emplace_back("--listen", "127.0.0.1:0");
  flags.emplace_back("--metrics-addr", "127.0.0.1:0");
  for (const auto& [flag, value] : flags) EXPECT_EQ(settings.Give(flag, value), Status()) << flag;
  EXPECT_EQ(settings.Land(), Status());
  options.server.build.version = "test";
  auto role = std::make_unique<Role>(std::move(options));
  EXPECT_EQ(role->Start({}), Status());
  return role;
}

class Cluster {
 public:
  // `more`: flags of the scheduler beside those that make it quick.
  explicit Cluster(const Flags& more = {})
      : scheduler_(StartRole<scheduler::SchedulerRole>(scheduler::DeclareSettings, With(more))),
        address_(scheduler_->listen_address().ToString()),
        client_(*rpc::MakeClusterClient(address_)) {}

  const std::string& address() const { return address_; }
  std::unique_ptr<agent::AgentRole> Agent(const std::string& node, const std::string& data_dir, Flags more = {}) {
    more.insert(more.end(), {{"--data-dir", data_dir},
                             {"--node-id", node},
                             {"--scheduler", address_},
                             {"--cpu", "4"},
                             {"--memory", "1Gi"}});
    return StartRole<agent::AgentRole>(agent::DeclareSettings, std::move(more));
  }
  Result<contract::ClusterReply> Ask(contract::ClusterRequest request) {
    std::promise<Result<contract::ClusterReply>> reply;
    client_->Ask(std::move(request), [&](Result<contract::ClusterReply> got) { reply.set_value(std::move(got)); });
    return reply.get_future().get();
  }
  void Apply(const std::string& name, model::WorkloadTemplate spec) {
    spec.grace = 1s;
    model::WorkloadSpec workload{.name = name};
    workload.spec = std::move(spec);
    const auto reply = Ask(contract::ApplySpec{.spec = workload});
    ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  }
  void Apply(const std::string& name, const std::string& script) { Apply(name, Process(script)); }
  static model::WorkloadTemplate Process(const std::string& script) {
    model::WorkloadTemplate spec;
    spec.type = model::WorkloadType::kProcess;
    spec.command = {"sh", "-c", script};
    return spec;
  }
  contract::WorkloadView Get(const std::string& workload) {
    auto reply = Ask(contract::GetWorkload{workload});
    return reply ? std::get<contract::WorkloadView>(*std::move(reply)) : contract::WorkloadView{};
  }
  contract::NodeView GetNode(const std::string& node) {
    auto reply = Ask(contract::GetNode{node});
    return reply ? std::get<contract::NodeView>(*std::move(reply)) : contract::NodeView{};
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
  std::string Logs(const std::string& workload) {
    std::string text;
    std::promise<Status> ended;
    const auto stream =
        client_->Logs({.workload = workload}, {.chunk = [&](const contract::LogChunk& chunk) { text += chunk.data; },
                                               .ended = [&](Status status) { ended.set_value(std::move(status)); }});
    EXPECT_EQ(ended.get_future().get(), Status()) << workload;
    return text;
  }
  void Delete(const std::string& workload) {
    ASSERT_TRUE(Ask(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = workload}).has_value());
    EXPECT_TRUE(WaitUntil([&] { return !Ask(contract::GetWorkload{workload}).has_value(); }));
  }

 private:
  static Flags With(Flags more) {
    more.insert(more.begin(), {{"--store", "memory:"},
                               {"--reconcile-interval", "200ms"},
                               {"--node-timeout", "3s"},
                               {"--monitor-interval", "200ms"}});
    return more;
  }

  std::unique_ptr<scheduler::SchedulerRole> scheduler_;
  const std::string address_;
  std::unique_ptr<rpc::ClusterClient> client_;
};

}  // namespace muster
