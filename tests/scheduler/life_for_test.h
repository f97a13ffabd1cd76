// A scheduler in a process of its own with short settings, and a client of it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contract/cluster.h"
#include "rpc/cluster_client.h"
#include "smoke/server.h"

namespace muster::scheduler {

inline std::vector<std::string> SchedulerCommand(const std::string& store, const std::string& listen = ":0",
                                                 const std::string& crash_point = {}) {
  std::vector<std::string> words;
  if (!crash_point.empty()) words = {"env", "MUSTER_CRASH_POINT=" + crash_point};
  for (const std::string& word : std::vector<std::string>{smoke::ProgramUnderTest(),
                                                          "scheduler",
                                                          "--store",
                                                          store,
                                                          "--listen",
                                                          listen,
                                                          "--metrics-addr",
                                                          ":0",
                                                          "--reconcile-interval",
                                                          "200ms",
                                                          "--node-timeout",
                                                          "3s",
                                                          "--monitor-interval",
                                                          "100ms",
                                                          "--missing-grace",
                                                          "1s",
                                                          "--retry-base",
                                                          "100ms",
                                                          "--retry-cap",
                                                          "400ms",
                                                          "--agent-rpc-timeout",
                                                          "1s",
                                                          "--store-lost-after",
                                                          "1s",
                                                          "--log-level",
                                                          "info"}) {
    words.push_back(word);
  }
  return words;
}

class SchedulerLife : public smoke::Server {
 public:
  // Comes back when it listens or is dead.
  explicit SchedulerLife(std::vector<std::string> command) : Server(std::move(command)) {
    if (!grpc().empty()) client_ = *rpc::MakeClusterClient(grpc());
  }
  bool up() const { return client_ != nullptr; }
  rpc::ClusterClient& client() { return *client_; }

  Result<contract::ClusterReply> Ask(contract::ClusterRequest request) {
    process().Ended();  // takes in what it logs: it must not wait for its reader
    std::promise<Result<contract::ClusterReply>> answer;
    client_->Ask(std::move(request), [&](Result<contract::ClusterReply> reply) { answer.set_value(std::move(reply)); });
    return answer.get_future().get();
  }
  // Every workload; nothing while the scheduler cannot answer.
  std::vector<contract::WorkloadView> Workloads() {
    std::vector<contract::WorkloadView> all;
    contract::ListWorkloads list;
    do {
      auto reply = Ask(list);
      if (!reply) return {};
      auto& page = std::get<contract::WorkloadsListed>(*reply);
      for (contract::WorkloadView& view : page.workloads) all.push_back(std::move(view));
      list.page.token = page.next;
    } while (!list.page.token.empty());
    return all;
  }
  std::vector<contract::NodeView> Nodes() {
    auto reply = Ask(contract::ListNodes{});
    return reply ? std::get<contract::NodesListed>(*std::move(reply)).nodes : std::vector<contract::NodeView>();
  }
  bool Leads() {
    const auto reply = Ask(contract::GetSummary{});
    return reply && std::get<contract::Summary>(*reply).leading;
  }

 private:
  std::unique_ptr<rpc::ClusterClient> client_;
};

}  // namespace muster::scheduler
