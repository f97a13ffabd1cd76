#include "role/agent/join_link.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace muster::agent {

Status JoinLink::Start() {
  auto client = rpc::MakeJoinClient(options_.schedulers, *this, options_.tls, options_.cluster);
  if (!client) return client.error();
  {
    const std::lock_guard lock(mu_);
    client_ = *std::move(client);
    if (interval_ == Duration::zero()) interval_ = options_.heartbeat;
  }
  heartbeats_ = std::thread([this] { SendHeartbeats(); });
  return {};
}

void JoinLink::Stop() {
  std::unique_ptr<rpc::JoinClient> client;
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    wakes_.notify_all();
  }
  if (heartbeats_.joinable()) heartbeats_.join();
  {
    const std::lock_guard lock(mu_);
    client = std::move(client_);
  }
  client.reset();  // outside the lock: it waits for the handler
}

void JoinLink::Beat() {
  const std::lock_guard lock(mu_);
  due_ = true;
  wakes_.notify_all();
}

void JoinLink::Rejoin() {
  const std::lock_guard lock(mu_);
  if (client_ != nullptr) client_->Rejoin();
}

bool JoinLink::WaitForJoin(const std::function<bool()>& cancelled) {
  std::unique_lock lock(mu_);
  while (!accepted_) {
    if (cancelled()) return false;
    wakes_.wait_for(lock, 50ms);
  }
  return true;
}

Status JoinLink::status() const {
  const std::lock_guard lock(mu_);
  return status_;
}

void JoinLink::Joined(const std::string& scheduler, contract::NodeRegistered registered) {
  if (!registered.accepted) {
    log::Warn("the scheduler does not accept this node", {{"scheduler", scheduler}, {"reason", registered.reason}});
    const std::lock_guard lock(mu_);
    status_ = Status(Code::kUnavailable, registered.reason);
    return;
  }
  log::Info(
      "joined",
      {{"scheduler", scheduler}, {"epoch", registered.state.epoch}, {"workloads", registered.state.workloads.size()}});
  const uint64_t epoch = registered.state.epoch;
  // Before the first heartbeat with this epoch: what it reports is then what the state asks for.
  ports_.joined(std::move(registered.state));
  const std::lock_guard lock(mu_);
  epoch_ = epoch;
  status_ = {};
  accepted_ = true;
  due_ = true;
  interval_ = registered.heartbeat_interval > Duration::zero() ? registered.heartbeat_interval : options_.heartbeat;
  wakes_.notify_all();
}

void JoinLink::Acked(contract::HeartbeatAck ack) {
  const std::lock_guard lock(mu_);
  if (std::exchange(drains_, ack.drain_node) != ack.drain_node) {
    log::Info(ack.drain_node ? log::Message("the scheduler drains this node")
                             : log::Message("the scheduler no longer drains this node"));
  }
}

void JoinLink::Left(const std::string& scheduler, Status why) {
  const std::lock_guard lock(mu_);
  if (status_.ok()) log::Warn("left the scheduler", {{"scheduler", scheduler}, {"reason", why.message()}});
  status_ = why.ok() ? Status(Code::kUnavailable, "the scheduler ended the stream") : std::move(why);
}

// A heartbeat has every workload: the more there are, the longer its successor waits for company.
Duration JoinLink::PauseAfter(size_t workloads) const {
  constexpr Duration kForEach = 200us;
  return std::min<Duration>(options_.least_pause + static_cast<int64_t>(workloads) * kForEach, options_.most_pause);
}

void JoinLink::SendHeartbeats() {
  std::unique_lock lock(mu_);
  Duration pause = options_.least_pause;
  while (!stopping_) {
    wakes_.wait_for(lock, interval_, [this] { return stopping_ || due_; });
    if (stopping_) return;
    due_ = false;
    const bool joined = status_.ok();
    const uint64_t epoch = epoch_;
    lock.unlock();
    if (joined) {
      contract::Heartbeat heartbeat = ports_.heartbeat();
      heartbeat.epoch = epoch;
      pause = PauseAfter(heartbeat.statuses.size());
      client_->Beat(std::move(heartbeat));
    }
    lock.lock();
    // States that change together go together.
    wakes_.wait_for(lock, pause, [this] { return stopping_; });
  }
}

}  // namespace muster::agent
