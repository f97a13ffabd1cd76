#include "rpc/join_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "host/parser.h"
#include "host/system_clock.h"
#include "muster/v1/cluster.pb.h"
#include "rpc/aging_channel.h"
#include "rpc/bounded_read.h"
#include "rpc/bounded_rows.h"
#include "rpc/cluster_conversion.h"

namespace muster::rpc {
namespace {

constexpr Duration kFirstPause = 200ms;
constexpr Duration kLongestPause = 5s;

struct Target {
  std::string address;
  std::shared_ptr<grpc::ChannelInterface> channel;
};

// One stream, from the registration to its end. Who sets `writing_` may start the next write, and nothing else; the
// hold keeps the call from ending before that.
class JoinCall final : grpc::ClientBidiReactor<v1::JoinMessage, grpc::ByteBuffer> {
 public:
  JoinCall(const Target& target, JoinHandler& handler) : target_(target), handler_(handler) {}
  JoinCall(const JoinCall&) = delete;
  JoinCall& operator=(const JoinCall&) = delete;

  // Once, before Wait.
  void Begin() {
    contract::RegisterNode request = handler_.Registration();
    request.facts.native = true;
    ToWire(request, *out_.mutable_join());
    StartDialogue<v1::JoinMessage>(target_.channel, "/muster.v1.Cluster/Join", &context_, this);
    AddHold();
    StartRead(&in_);
    StartWrite(&out_);
    StartCall();
  }
  void Beat(contract::Heartbeat heartbeat) {
    {
      const std::lock_guard lock(mu_);
      if (!joined_ || broken_) return;
      beat_ = std::move(heartbeat);
      if (std::exchange(writing_, true)) return;
    }
    WriteNext();
  }
  void Cancel() { context_.TryCancel(); }
  // Waits for the end of the stream and tells why it ended.
  Status Wait() {
    std::unique_lock lock(mu_);
    over_.wait(lock, [this] { return end_.has_value(); });
    return *end_;
  }
  bool accepted() {
    const std::lock_guard lock(mu_);
    return joined_;
  }

 private:
  // Called by who holds `writing_`.
  void WriteNext() {
    std::optional<contract::Heartbeat> next;
    bool release = false;
    {
      const std::lock_guard lock(mu_);
      if (!broken_) next = std::exchange(beat_, std::nullopt);
      if (!next) {
        writing_ = false;
        release = broken_ && std::exchange(held_, false);
      }
    }
    if (next) {
      out_.Clear();
      ToWire(*next, *out_.mutable_heartbeat());
      StartWrite(&out_);
    } else if (release) {
      RemoveHold();  // after this, the call may be gone
    }
  }
  void OnWriteDone(bool ok) override {
    if (!ok) Break();
    WriteNext();
  }
  void Break() {
    const std::lock_guard lock(mu_);
    broken_ = true;
  }

  void OnReadDone(bool ok) override {
    if (ok && Receive()) return StartRead(&in_);
    Break();
    {
      const std::lock_guard lock(mu_);
      if (std::exchange(writing_, true)) return;
    }
    WriteNext();
  }
  bool Receive() {
    v1::JoinReply reply;
    if (const Status read = ReadBounded(in_, kNodeStateBounds, reply); !read.ok()) return Wrong(read);
    if (reply.has_registered()) {
      auto registered = TakeReply(*reply.mutable_registered());
      if (!registered) return Wrong(registered.error());
      {
        const std::lock_guard lock(mu_);
        joined_ = registered->accepted;
      }
      handler_.Joined(target_.address, *std::move(registered));
    } else if (reply.has_ack()) {
      auto ack = TakeReply(*reply.mutable_ack());
      if (!ack) return Wrong(ack.error());
      handler_.Acked(*ack);
    }
    return true;
  }
  bool Wrong(const Status& error) {
    wrong_ = {Code::kInternal, fmt::format("scheduler {} sends a bad answer: {}", target_.address, error.message())};
    context_.TryCancel();
    return false;
  }

  void OnDone(const grpc::Status& status) override {
    Status end = wrong_.ok() ? FromGrpc(status) : wrong_;
    const std::lock_guard lock(mu_);
    end_ = std::move(end);
    over_.notify_all();  // under the lock: after it, this may be gone
  }

  const Target& target_;
  JoinHandler& handler_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_;  // of the read under way
  v1::JoinMessage out_;  // of the write under way
  Status wrong_;

  std::mutex mu_;
  std::condition_variable over_;
  // Guarded by mu_.
  std::optional<contract::Heartbeat> beat_;  // not sent yet
  bool joined_ = false;
  bool writing_ = true;  // the registration
  bool broken_ = false;
  bool held_ = true;
  std::optional<Status> end_;
};

class GrpcJoinClient final : public JoinClient {
 public:
  GrpcJoinClient(std::vector<Target> targets, JoinHandler& handler)
      : targets_(std::move(targets)), handler_(handler), thread_([this](const std::stop_token& stop) { Run(stop); }) {}
  ~GrpcJoinClient() override {
    thread_.request_stop();
    {
      const std::lock_guard lock(mu_);
      if (call_ != nullptr) call_->Cancel();
    }
    wakes_.notify_all();
  }
  GrpcJoinClient(const GrpcJoinClient&) = delete;
  GrpcJoinClient& operator=(const GrpcJoinClient&) = delete;

  void Beat(contract::Heartbeat heartbeat) override {
    const std::lock_guard lock(mu_);
    if (call_ != nullptr) call_->Beat(std::move(heartbeat));
  }
  void Rejoin() override {
    const std::lock_guard lock(mu_);
    if (call_ != nullptr) call_->Cancel();
  }

 private:
  void Run(const std::stop_token& stop) {
    Duration pause = kFirstPause;
    for (size_t next = 0; !stop.stop_requested(); ++next) {
      const Target& target = targets_[next % targets_.size()];
      const bool accepted = JoinOnce(target, stop);
      pause = accepted ? kFirstPause : std::min(2 * pause, kLongestPause);
      Sleep(pause, stop);
    }
  }

  // True if the node was accepted.
  bool JoinOnce(const Target& target, const std::stop_token& stop) {
    auto call = std::make_unique<JoinCall>(target, handler_);
    {
      const std::lock_guard lock(mu_);
      call_ = call.get();
      if (stop.stop_requested()) call_->Cancel();
    }
    call->Begin();
    const Status why = call->Wait();
    {
      const std::lock_guard lock(mu_);
      call_ = nullptr;
    }
    const bool accepted = call->accepted();
    call.reset();
    handler_.Left(target.address, why);
    return accepted;
  }

  // Agents that lost one scheduler do not all come back at one moment.
  void Sleep(Duration pause, const std::stop_token& stop) {
    const Duration part(host::SystemClock().Read().wall.time_since_epoch().count() % (pause.count() / 2));
    std::unique_lock lock(mu_);
    wakes_.wait_for(lock, pause / 2 + part, [&] { return stop.stop_requested(); });
  }

  const std::vector<Target> targets_;
  JoinHandler& handler_;
  std::mutex mu_;
  std::condition_variable wakes_;
  JoinCall* call_ = nullptr;  // guarded by mu_
  std::jthread thread_;       // last: it uses the rest
};

}  // namespace

Result<std::unique_ptr<JoinClient>> MakeJoinClient(const std::string& schedulers, JoinHandler& handler,
                                                   const TlsFiles& tls, const std::string& cluster) {
  std::vector<Target> targets;
  for (const std::string_view part : host::SplitAt(schedulers, ',')) {
    const std::string address(part);
    MUSTER_ASSIGN_OR_RETURN(
        const std::shared_ptr<grpc::ChannelInterface> channel,
        MakeAgingChannel(
            {.target = address,
             .tls = tls,
             .serves = {.kinds = {Identity::Kind::kScheduler, Identity::Kind::kCluster}, .cluster = cluster},
             .max_message_bytes = static_cast<int>(kNodeStateBounds.bytes),
             .keep_alive = 30s,
             .longest_reconnect = 1s}));
    targets.push_back({.address = address, .channel = channel});
  }
  return std::make_unique<GrpcJoinClient>(std::move(targets), handler);
}

}  // namespace muster::rpc
