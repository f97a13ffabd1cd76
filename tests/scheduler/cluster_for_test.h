// A scheduler in this process behind real gRPC, with short settings, and a client of it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "contract/cluster.h"
#include "host/system_clock.h"
#include "role/scheduler/scheduler_role.h"
#include "rpc/cluster_client.h"

namespace muster::scheduler {

constexpr Duration kPatience = 20s;

// Asks again and again until it holds; false when it does not in time.
inline bool Eventually(const std::function<bool()>& holds, Duration patience = kPatience) {
  const host::SystemClock clock;
  for (const MonoTime end = clock.Read().mono + patience; clock.Read().mono < end;) {
    if (holds()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

inline RoleOptions ShortSettings(const std::string& store) {
  RoleOptions options;
  options.server.listen = {.host = "127.0.0.1", .port = 0};
  options.server.metrics_addr = {.host = "127.0.0.1", .port = 0};
  options.store = store;
  options.store_lost_after = 1s;
  options.config.reconcile_interval = 200ms;
  options.config.node_timeout = 1500ms;
  options.config.monitor_interval = 100ms;
  options.config.missing_grace = 300ms;
  options.config.retry_base = 100ms;
  options.config.retry_cap = 400ms;
  options.config.agent_timeout = 500ms;
  options.config.preempt_after = 100ms;
  return options;
}

class Cluster {
 public:
  explicit Cluster(RoleOptions options) : role_(std::move(options)) {
    EXPECT_EQ(role_.Start({}), Status());
    client_ = *rpc::MakeClusterClient(address());
    // Nodes and workloads are taken once the store was read.
    EXPECT_TRUE(Eventually([this] { return role_.View()->ready; }));
  }

  std::string address() const { return role_.listen_address().ToString(); }
  std::string metrics_address() const { return role_.metrics_address().ToString(); }
  SchedulerRole& role() { return role_; }
  rpc::ClusterClient& client() { return *client_; }
  void Stop() { role_.Stop(); }

  Result<contract::ClusterReply> Ask(contract::ClusterRequest request) {
    std::promise<Result<contract::ClusterReply>> answer;
    client_->Ask(std::move(request), [&](Result<contract::ClusterReply> reply) { answer.set_value(std::move(reply)); });
    return answer.get_future().get();
  }
  template <class Reply, class Request>
  Reply Get(Request request) {
    auto reply = Ask(std::move(request));
    EXPECT_TRUE(reply.has_value()) << reply.error().ToString();
    return reply ? std::get<Reply>(*std::move(reply)) : Reply();
  }

  static contract::ApplyWorkload Container(const std::string& id, int64_t cpu_milli = 100) {
    contract::ApplyWorkload apply;
    apply.workload = id;
    apply.spec.emplace();
    apply.spec->type = model::WorkloadType::kContainer;
    apply.spec->image = "i";
    apply.spec->resources = {{"cpu", cpu_milli}};
    return apply;
  }
  Status Apply(const contract::ApplyWorkload& apply) {
    const auto reply = Ask(apply);
    return reply ? Status() : reply.error();
  }
  contract::WorkloadView View(const std::string& id) {
    return Get<contract::WorkloadView>(contract::GetWorkload{.workload = id});
  }
  contract::NodeView Node(const std::string& id) { return Get<contract::NodeView>(contract::GetNode{.node = id}); }
  bool Has(const std::string& id) { return Ask(contract::GetWorkload{.workload = id}).has_value(); }
  bool Becomes(const std::string& id, model::WorkloadPhase phase, Duration patience = kPatience) {
    model::WorkloadPhase seen = model::WorkloadPhase::kUnknown;
    const bool came = Eventually([&] { return (seen = View(id).phase) == phase; }, patience);
    EXPECT_TRUE(came) << id << " is " << model::WorkloadPhaseName(seen) << ": " << View(id).message;
    return came;
  }
  bool NodeBecomes(const std::string& id, model::NodeStatus status) {
    const bool came = Eventually([&] {
      const auto node = Ask(contract::GetNode{.node = id});
      return node && std::get<contract::NodeView>(*node).status == status;
    });
    EXPECT_TRUE(came) << id << " is not " << model::NodeStatusName(status);
    return came;
  }

 private:
  SchedulerRole role_;
  std::unique_ptr<rpc::ClusterClient> client_;
};

}  // namespace muster::scheduler
