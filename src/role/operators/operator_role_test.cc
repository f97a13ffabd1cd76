// The role over real sockets, between a scheduler and a shard that do what the test says.
#include "role/operators/operator_role.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "contract/cluster.h"
#include "contract/logs.h"
#include "contract/session.h"
#include "rpc/cluster_services.h"
#include "rpc/server.h"
#include "rpc/shard_services.h"

namespace muster::operators {
namespace {

constexpr Duration kPatience = 20s;

// A scheduler of an empty cluster that leaves drains without an answer, and a shard that keeps what it receives.
class Peers final : public contract::ClusterPort,
                    public rpc::WatchPort,
                    public contract::LogsPort,
                    public rpc::TenantPort,
                    public contract::SessionPort {
 public:
  void Ask(contract::ClusterRequest request, Done done) override {
    if (std::holds_alternative<contract::ListNodes>(request)) return done(contract::NodesListed{.revision = 1});
    if (std::holds_alternative<contract::ListWorkloads>(request)) return done(contract::WorkloadsListed{.revision = 1});
    if (!std::holds_alternative<contract::DrainNode>(request)) return done(contract::Done{});
    const std::lock_guard lock(mu_);
    drains_.push_back(std::move(done));
    changed_.notify_all();
  }
  void AskFor(const std::string& /*tenant*/, contract::ClusterRequest request, Done done) override {
    Ask(std::move(request), std::move(done));
  }
  void Watch(const contract::WatchCluster& /*what*/, std::shared_ptr<rpc::WatchSink> sink) override {
    const std::lock_guard lock(mu_);
    watches_.push_back(std::move(sink));
  }
  void Read(contract::ReadLogs /*request*/, std::shared_ptr<contract::LogsSink> sink) override { sink->End({}); }

  contract::SessionId Open(contract::Hello /*hello*/, std::shared_ptr<contract::SessionSink> sink) override {
    sink->Send(contract::Acknowledgement{.echo = "hello"});
    const std::lock_guard lock(mu_);
    session_ = std::move(sink);
    changed_.notify_all();
    return 1;
  }
  void Receive(contract::SessionId /*session*/, contract::OperatorMessage message,
               std::shared_ptr<void> /*until_taken*/) override {
    const std::lock_guard lock(mu_);
    received_.push_back(std::move(message));
    changed_.notify_all();
  }
  void RefuseRollup(contract::SessionId /*session*/, Status why, std::shared_ptr<void> /*until_taken*/) override {
    ADD_FAILURE() << why.ToString();
  }
  void Closed(contract::SessionId /*session*/) override {}

  std::shared_ptr<contract::SessionSink> WaitForSession() {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, kPatience, [this] { return session_ != nullptr; });
    return session_;
  }
  bool WaitForDrain() {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, kPatience, [this] { return !drains_.empty(); });
  }
  template <class Message>
  bool WaitFor() {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, kPatience, [this] {
      return std::ranges::any_of(received_, [](const auto& one) { return std::holds_alternative<Message>(one); });
    });
  }
  // Answers all drains; how many there were.
  size_t AnswerDrains() {
    std::vector<Done> drains;
    {
      const std::lock_guard lock(mu_);
      drains.swap(drains_);
    }
    for (const Done& done : drains) done(contract::Done{});
    return drains.size();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<Done> drains_;  // guarded by mu_, as the rest
  std::vector<std::shared_ptr<rpc::WatchSink>> watches_;
  std::shared_ptr<contract::SessionSink> session_;
  std::vector<contract::OperatorMessage> received_;
};

// The end of the client cancels what is open: a core that still ran would start the order that waits for it.
TEST(OperatorRole, StopsWhileAnOrderWaitsForTheAnswerToTheOneBefore) {
  Peers peers;
  const auto scheduler = rpc::MakeClusterService(peers, peers, peers, peers);
  const auto shard = rpc::MakeSessionService(peers);
  rpc::Server server({.address = {.host = "127.0.0.1", .port = 0}, .stop_grace = 0s});
  const std::array<grpc::Service*, 2> services = {scheduler.get(), shard.get()};
  ASSERT_EQ(server.Start(services), Status());
  const std::string address = server.address().ToString();
  OperatorRole role(Options{.server = {.listen = {"127.0.0.1", 0}, .metrics_addr = {"127.0.0.1", 0}},
                            .config = {.cluster = "blue"},
                            .shard = address,
                            .scheduler = address});
  ASSERT_EQ(role.Start({}), Status());
  const auto session = peers.WaitForSession();
  ASSERT_NE(session, nullptr);
  session->Send(contract::ReclaimInstruction{.instruction_id = "first", .nodes = {"m"}, .grace_period_seconds = 60});
  ASSERT_TRUE(peers.WaitForDrain());
  session->Send(contract::ReclaimInstruction{.instruction_id = "second", .nodes = {"m"}, .grace_period_seconds = 60});
  // Its answer says that the core has taken the instruction before it.
  session->Send(contract::BootstrapRequest{.request_id = "blob", .cluster_id = "blue"});
  ASSERT_TRUE(peers.WaitFor<contract::BootstrapResponse>());
  role.Stop();
  EXPECT_EQ(peers.AnswerDrains(), 1U);
}

}  // namespace
}  // namespace muster::operators
