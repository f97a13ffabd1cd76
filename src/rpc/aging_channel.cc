#include "rpc/aging_channel.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "host/system_clock.h"
#include "rpc/certificate_check.h"

namespace muster::rpc {
namespace {
struct Door;  // names the class below
}
}  // namespace muster::rpc

// A channel makes calls for gRPC's own classes alone. This template is one of these, for any pair of types.
template <>
class grpc::internal::BlockingUnaryCallImpl<muster::rpc::Door, muster::rpc::Door> {
 public:
  static Call CreateCall(ChannelInterface& channel, const RpcMethod& method, ClientContext* context,
                         CompletionQueue* queue) {
    return channel.CreateCall(method, context, queue);
  }
  static CompletionQueue* CallbackCQ(ChannelInterface& channel) { return channel.CallbackCQ(); }
};

namespace muster::rpc {
namespace {

using DoorOf = grpc::internal::BlockingUnaryCallImpl<Door, Door>;

// Its calls fail with UNAVAILABLE, and the target says why.
std::shared_ptr<grpc::Channel> ConnectsNowhere() {
  auto channel = MakeChannel({.target = "unix:/dev/null/the-certificate-files-are-not-fit"});
  MUSTER_CHECK(channel.has_value(), "{}", channel.error().ToString());
  return *std::move(channel);
}

class AgingChannel final : public grpc::ChannelInterface {
 public:
  AgingChannel(ChannelOptions options, std::shared_ptr<grpc::Channel> first)
      : options_(std::move(options)), half_(options_.tls.connection_age / 2), current_(std::move(first)) {}

  grpc_connectivity_state GetState(bool try_to_connect) override { return Current()->GetState(try_to_connect); }
  void ConnectAgainSoon() { grpc::experimental::ChannelResetConnectionBackoff(Current().get()); }

 private:
  grpc::internal::Call CreateCall(const grpc::internal::RpcMethod& method, grpc::ClientContext* context,
                                  grpc::CompletionQueue* queue) override {
    const auto latest =
        std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(half_);
    if (context->deadline() > latest) context->set_deadline(latest);
    return DoorOf::CreateCall(*Current(), method, context, queue);
  }
  // A call knows the channel that made it, and goes on there.
  void PerformOpsOnCall(grpc::internal::CallOpSetInterface* /*ops*/, grpc::internal::Call* /*call*/) override {
    MUSTER_CHECK(false, "no call is of this channel itself");
  }
  // A registration would be of one channel; without it calls go by the method's name.
  void* RegisterMethod(const char* /*method*/) override { return nullptr; }
  void NotifyOnStateChangeImpl(grpc_connectivity_state last, gpr_timespec deadline, grpc::CompletionQueue* queue,
                               void* tag) override {
    Current()->NotifyOnStateChange(last, deadline, queue, tag);
  }
  bool WaitForStateChangeImpl(grpc_connectivity_state last, gpr_timespec deadline) override {
    return Current()->WaitForStateChange(last, deadline);
  }
  grpc::CompletionQueue* CallbackCQ() override { return DoorOf::CallbackCQ(*Current()); }

  // Files that are not fit at the moment leave the channel as it is, and in the end without a connection; the next call
  // looks again.
  std::shared_ptr<grpc::Channel> Current() {
    const MonoTime now = host::SystemClock().Read().mono;
    std::shared_ptr<grpc::Channel> before_last;  // goes after the lock
    const std::lock_guard lock(mu_);
    if (now - made_ < half_) return current_;
    auto next = MakeChannel(options_);
    if (!next) {
      const bool ends = now - made_ >= half_ + options_.tls.connection_age;
      log::Warn("a connection outlives its age",
                {{"server", options_.target}, {"why", next.error().message()}, {"ended", ends}});
      if (ends && !ended_) before_last = std::exchange(previous_, std::exchange(current_, ConnectsNowhere()));
      ended_ = ended_ || ends;
      return current_;
    }
    ended_ = false;
    made_ = now;
    before_last = std::exchange(previous_, std::exchange(current_, *std::move(next)));
    return current_;
  }

  const ChannelOptions options_;
  const Duration half_;
  std::mutex mu_;
  // Guarded by mu_.
  MonoTime made_ = host::SystemClock().Read().mono;
  std::shared_ptr<grpc::Channel> current_;
  bool ended_ = false;  // current_ connects nowhere
  // Whoever lets go of a channel last may wait for gRPC's threads; calls under way must not be the ones.
  std::shared_ptr<grpc::Channel> previous_;
};

}  // namespace

Result<std::shared_ptr<grpc::ChannelInterface>> MakeAgingChannel(const ChannelOptions& options) {
  ChannelOptions own = options;
  const bool ages = options.tls.given() && options.tls.connection_age > 0s;
  if (ages) {
    own.own_connection = true;  // else gRPC could give a new channel the old connection
    own.idle_timeout = 1min;    // of the one that takes no more calls
    own.certificates = std::make_shared<CertificateCheck>(own.tls);
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(own));
  if (!ages) return channel;
  return std::make_shared<AgingChannel>(std::move(own), std::move(channel));
}

void ConnectAgainSoon(grpc::ChannelInterface& channel) {
  if (auto* aging = dynamic_cast<AgingChannel*>(&channel)) return aging->ConnectAgainSoon();
  grpc::experimental::ChannelResetConnectionBackoff(static_cast<grpc::Channel*>(&channel));
}

}  // namespace muster::rpc
