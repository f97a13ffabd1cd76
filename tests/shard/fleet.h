// A fleet in processes of their own for tests: a provider, a shard, and clusters that answer.
#pragma once

#include <condition_variable>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "contract/session.h"
#include "contract/shard.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "provider/life.h"
#include "rpc/session_client.h"
#include "rpc/shard_client.h"
#include "smoke/server.h"

namespace muster::shard {

constexpr Duration kPatience = smoke::kPatience;

// Blocks for the answer.
template <class Reply>
Result<Reply> Wait(const std::function<void(std::function<void(Result<Reply>)>)>& ask) {
  std::mutex mu;
  std::condition_variable answered;
  std::optional<Result<Reply>> result;
  ask([&](Result<Reply> reply) {
    const std::lock_guard lock(mu);
    result = std::move(reply);
    answered.notify_all();
  });
  std::unique_lock lock(mu);
  answered.wait(lock, [&] { return result.has_value(); });
  return *std::move(result);
}

// Asks again and again until it holds; false when it does not in time.
inline bool Eventually(const std::function<bool()>& holds) {
  const host::SystemClock clock;
  for (const MonoTime end = clock.Read().mono + kPatience; clock.Read().mono < end;) {
    if (holds()) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

class ShardLife : public smoke::Server {
 public:
  explicit ShardLife(std::vector<std::string> command) : Server(std::move(command)) {
    if (grpc().empty()) return;
    auto client = rpc::MakeShardClient(grpc());
    if (client) client_ = *std::move(client);
  }
  bool up() const { return client_ != nullptr; }

  // The reply that belongs to the request; nothing while the shard cannot answer.
  template <class Reply, class Request>
  std::optional<Reply> Ask(Request request) {
    auto reply = Wait<contract::ShardReply>([&](auto done) { client_->Ask(std::move(request), std::move(done)); });
    if (!reply) return std::nullopt;
    return std::get<Reply>(*std::move(reply));
  }
  std::optional<contract::NeedsInspected> Needs() { return Ask<contract::NeedsInspected>(contract::InspectNeeds{}); }
  // Every need of these clusters is covered by machines that serve, and nothing is on its way.
  bool Settled(size_t needs) {
    if (process().Ended()) return false;
    const auto seen = Needs();
    if (!seen || seen->needs.size() != needs) return false;
    int64_t wanted = 0;
    for (const contract::NeedView& view : seen->needs) {
      if (!view.satisfied || view.bootstraps + view.provisions > 0 || !view.has_session) return false;
      wanted += view.need.aggregate.Get("cpu") / 1000;
    }
    const auto machines = Ask<contract::MachinesListed>(contract::ListMachines{});
    if (!machines) return false;
    for (const contract::MachineView& view : machines->machines) {
      if (!model::IsStable(view.machine->state)) return false;
      wanted -= view.machine->state == model::MachineState::kConfigured ? 1 : 0;  // each has one cpu
    }
    return wanted <= 0;  // a machine that has just been bought satisfies its need before it is bound
  }
  int64_t Cycle() {
    const auto seen = Needs();
    return seen ? seen->cycle : 0;
  }

 private:
  std::unique_ptr<contract::ShardPort> client_;
};

// A cluster's operator: connects again whenever the session ends, tells what it wants, answers what it is asked.
class TestCluster final : rpc::SessionHandler {
 public:
  TestCluster(std::string id, std::string target) : id_(std::move(id)), target_(std::move(target)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }

  void Want(std::vector<model::Need> needs) {
    const std::lock_guard lock(mu_);
    needs_ = std::move(needs);
    dirty_ = true;
    wakes_.notify_all();
  }
  // Node states as the shard told them.
  std::map<std::string, model::MachineState> nodes() const {
    const std::lock_guard lock(mu_);
    return nodes_;
  }
  size_t reclaimed() const {
    const std::lock_guard lock(mu_);
    return reclaimed_;
  }

 private:
  void Run(const std::stop_token& stop) {
    const host::SystemClock clock;
    while (!stop.stop_requested()) {
      {
        const std::lock_guard lock(mu_);
        ended_ = false;
        dirty_ = true;
      }
      auto client = rpc::OpenSession(
          target_, {.cluster_id = id_, .protocol_version = std::string(contract::kProtocolVersion)}, *this);
      if (!client) return;
      std::unique_lock lock(mu_);
      while (!stop.stop_requested() && !ended_) {
        if (std::exchange(dirty_, false)) {
          const contract::Rollup rollup{
              .cluster_id = id_, .timestamp = clock.Read().wall, .rows = contract::NeedRows(needs_)};
          lock.unlock();
          (*client)->Send(rollup);
          lock.lock();
        }
        for (contract::OperatorMessage& message : std::exchange(to_send_, {})) {
          lock.unlock();
          (*client)->Send(std::move(message));
          lock.lock();
        }
        wakes_.wait_for(lock, stop, 1s, [this] { return ended_ || dirty_ || !to_send_.empty(); });
      }
      lock.unlock();
      client->reset();
      lock.lock();
      to_send_.clear();
      // The shard may be away for a moment.
      wakes_.wait_for(lock, stop, 50ms, [] { return false; });
    }
  }

  void Received(contract::ShardMessage message) override {
    const std::lock_guard lock(mu_);
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
      to_send_.push_back(contract::BootstrapResponse{.request_id = request->request_id, .user_data = "join"});
    } else if (const auto* instruction = std::get_if<contract::ReclaimInstruction>(&message)) {
      reclaimed_ += instruction->nodes.size();
      to_send_.push_back(contract::ReclaimAck{.instruction_id = instruction->instruction_id, .nodes_started = 1});
    } else if (const auto* update = std::get_if<contract::NodeStateUpdate>(&message)) {
      nodes_[update->machine_id] = update->state;
    }
    wakes_.notify_all();
  }
  void Unreadable(Status) override {}
  void Ended(Status) override {
    const std::lock_guard lock(mu_);
    ended_ = true;
    wakes_.notify_all();
  }

  const std::string id_;
  const std::string target_;
  mutable std::mutex mu_;
  std::condition_variable_any wakes_;
  std::vector<model::Need> needs_;                    // guarded by mu_
  bool dirty_ = true;                                 // guarded by mu_
  bool ended_ = false;                                // guarded by mu_
  size_t reclaimed_ = 0;                              // guarded by mu_
  std::vector<contract::OperatorMessage> to_send_;    // guarded by mu_
  std::map<std::string, model::MachineState> nodes_;  // guarded by mu_
  std::jthread thread_;
};

inline model::Need NeedOf(const std::string& cluster, int64_t cpus, int32_t priority = 0) {
  model::Need need{.cluster = cluster, .profile = model::Profile({.priority = priority})};
  need.aggregate.Set("cpu", cpus * 1000);
  need.min_unit.Set("cpu", 1000);
  return need;
}

// Directories, a catalogue of quick machines with one cpu each, and the commands.
class Fleet {
 public:
  explicit Fleet(uint64_t machines) : machines_(machines) {
    std::ofstream(dir_.File("catalogue.yaml")) << R"(
zones: [a, b]
types:
  - name: quick
    capacity: on-demand
    resources: {cpu: 1}
    price: 1
    create: {median: 50ms, p99: 150ms}
    configure: {median: 50ms, p99: 150ms}
    drain: {median: 50ms, p99: 150ms}
    delete: {median: 50ms, p99: 150ms}
)";
  }
  std::vector<std::string> ProviderCommand(const std::string& listen = ":0") const {
    return provider::ProviderCommand(dir_.File("provider"), dir_.File("catalogue.yaml"), machines_, {}, listen);
  }
  std::vector<std::string> ShardCommand(const std::string& provider, const std::string& listen = ":0",
                                        const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {smoke::ProgramUnderTest(),
                                      "shard",
                                      "--listen",
                                      listen,
                                      "--metrics-addr",
                                      ":0",
                                      "--data-dir",
                                      dir_.File("shard"),
                                      "--provider-addr",
                                      provider,
                                      "--audit-log",
                                      dir_.File("audit.log"),
                                      "--surplus-hold",
                                      "1s",
                                      "--release-hold",
                                      "on-demand=1s",
                                      "--reclaim-budget",
                                      "100%/1s",
                                      "--reclaim-cap-fraction",
                                      "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string File(const std::string& name) const { return dir_.File(name); }

 private:
  const host::TempDir dir_;
  const uint64_t machines_;
};

}  // namespace muster::shard
