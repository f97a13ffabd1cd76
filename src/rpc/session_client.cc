#include "rpc/session_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/time.h"
#include "bigfleet/v1alpha1/shard.pb.h"
#include "rpc/aging_channel.h"
#include "rpc/bounded_read.h"
#include "rpc/bounded_rows.h"
#include "rpc/session_conversion.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

// How long a destroyed client waits for the shard to end the stream in good order.
constexpr Duration kFarewell = 2s;

// Whoever set `writing_` may start the next write, and nobody else; the hold keeps the call from ending before that.
class GrpcSessionClient final : public SessionClient, grpc::ClientBidiReactor<pb::OperatorMessage, grpc::ByteBuffer> {
 public:
  GrpcSessionClient(std::string target, const std::shared_ptr<grpc::ChannelInterface>& channel, contract::Hello hello,
                    SessionHandler& handler)
      : target_(std::move(target)), handler_(handler), channel_(channel) {
    StartDialogue<pb::OperatorMessage>(channel_, "/bigfleet.v1alpha1.Shard/Session", &context_, this);
    AddHold();
    StartRead(&in_);
    StartCall();
    Send(std::move(hello));
  }

  ~GrpcSessionClient() override {
    Close();
    std::unique_lock lock(mu_);
    if (!ended_.wait_for(lock, kFarewell, [this] { return over_; })) context_.TryCancel();
    ended_.wait(lock, [this] { return over_; });
  }
  GrpcSessionClient(const GrpcSessionClient&) = delete;
  GrpcSessionClient& operator=(const GrpcSessionClient&) = delete;

  void Send(contract::OperatorMessage message) override {
    {
      const std::lock_guard lock(mu_);
      if (closing_ || broken_) return;
      queue_.push_back(std::move(message));
      if (std::exchange(writing_, true)) return;
    }
    WriteNext();
  }

  void Close() override {
    {
      const std::lock_guard lock(mu_);
      if (std::exchange(closing_, true) || broken_) return;
      if (std::exchange(writing_, true)) return;
    }
    WriteNext();
  }

 private:
  // Called by who holds `writing_`.
  void WriteNext() {
    std::optional<contract::OperatorMessage> next;
    bool say_done = false;
    bool release = false;
    {
      const std::lock_guard lock(mu_);
      if (!broken_ && !queue_.empty()) {
        next = std::move(queue_.front());
        queue_.pop_front();
      } else if (!broken_ && closing_ && !half_closed_) {
        half_closed_ = say_done = true;
      } else {
        writing_ = false;
        release = broken_ && std::exchange(held_, false);
      }
    }
    if (next) {
      out_.Clear();
      ToWire(*next, out_);
      StartWrite(&out_);
    } else if (say_done) {
      StartWritesDone();
    } else if (release) {
      RemoveHold();  // after this, the client may be gone
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) Break();
    WriteNext();
  }
  void OnWritesDoneDone(bool ok) override {
    if (!ok) Break();
    WriteNext();
  }
  // Nothing can be sent any more; who holds `writing_` sees to the rest.
  void Break() {
    const std::lock_guard lock(mu_);
    broken_ = true;
    queue_.clear();
  }

  Result<contract::ShardMessage> Take() {
    pb::ShardMessage message;
    if (Status read = ReadBounded(in_, kServerReplyBounds, message); !read.ok())
      return std::unexpected(std::move(read));
    return TakeShardMessage(message);
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      Result<contract::ShardMessage> message = Take();
      if (message) {
        handler_.Received(*std::move(message));
      } else {
        handler_.Unreadable({Code::kInternal, fmt::format("shard {} sends a message that cannot be read: {}", target_,
                                                          message.error().message())});
      }
      return StartRead(&in_);
    }
    Break();
    {
      const std::lock_guard lock(mu_);
      if (std::exchange(writing_, true)) return;
    }
    WriteNext();
  }

  void OnDone(const grpc::Status& status) override {
    handler_.Ended(Explain(FromGrpc(status)));
    const std::lock_guard lock(mu_);
    over_ = true;
    ended_.notify_all();  // under the lock: after it, the client may be gone
  }

  Status Explain(Status status) {
    {
      const std::lock_guard lock(mu_);
      if (closing_ && (status.ok() || status.code() == Code::kCancelled)) return {};
    }
    if (status.code() != Code::kUnavailable) return status;
    return {status.code(), fmt::format("shard {} does not answer: {}", target_, status.message())};
  }

  const std::string target_;
  SessionHandler& handler_;
  const std::shared_ptr<grpc::ChannelInterface> channel_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_;      // of the read under way
  pb::OperatorMessage out_;  // of the write under way

  std::mutex mu_;
  std::condition_variable ended_;
  // Guarded by mu_.
  std::deque<contract::OperatorMessage> queue_;  // not sent yet
  bool writing_ = false;
  bool closing_ = false;
  bool half_closed_ = false;
  bool broken_ = false;
  bool held_ = true;
  bool over_ = false;  // Ended has returned
};

}  // namespace

Result<std::unique_ptr<SessionClient>> OpenSession(const std::string& target, contract::Hello hello,
                                                   SessionHandler& handler, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelInterface> channel,
                          MakeAgingChannel({.target = target,
                                            .tls = tls,
                                            .serves = {.kinds = {Identity::Kind::kShard}},
                                            .max_message_bytes = static_cast<int>(kServerReplyBounds.bytes)}));
  return std::make_unique<GrpcSessionClient>(target, channel, std::move(hello), handler);
}

}  // namespace muster::rpc
