#include "rpc/provider_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>
#include <variant>

#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/provider_conversion.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

// The call under way, alive until its answer was given.
template <class WireRequest, class WireReply>
struct Open {
  grpc::ClientContext context;
  WireRequest request;
  WireReply reply;
  contract::ProviderPort::Done done;
};

class ProviderClient final : public contract::ProviderPort {
 public:
  ProviderClient(std::string target, const std::shared_ptr<grpc::Channel>& channel)
      : target_(std::move(target)), stub_(pb::CapacityProvider::NewStub(channel)) {}

  ~ProviderClient() override {
    std::unique_lock lock(mu_);
    for (grpc::ClientContext* context : open_) context->TryCancel();
    closed_.wait(lock, [this] { return unfinished_ == 0; });
  }
  ProviderClient(const ProviderClient&) = delete;
  ProviderClient& operator=(const ProviderClient&) = delete;

  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override {
    std::visit([&](const auto& typed) { Send(typed, timeout, std::move(done)); }, request);
  }

 private:
  void Send(const contract::CreateRequest& request, Duration timeout, Done done) {
    Start<pb::CreateRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                                [this](auto&... args) { stub_->async()->Create(args...); });
  }
  void Send(const contract::ConfigureRequest& request, Duration timeout, Done done) {
    Start<pb::ConfigureRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                                   [this](auto&... args) { stub_->async()->Configure(args...); });
  }
  void Send(const contract::DrainRequest& request, Duration timeout, Done done) {
    Start<pb::DrainRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                               [this](auto&... args) { stub_->async()->Drain(args...); });
  }
  void Send(const contract::DeleteRequest& request, Duration timeout, Done done) {
    Start<pb::DeleteRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                                [this](auto&... args) { stub_->async()->Delete(args...); });
  }
  void Send(const contract::GetRequest& request, Duration timeout, Done done) {
    Start<pb::MachineRef, pb::Machine>(request, timeout, std::move(done),
                                       [this](auto&... args) { stub_->async()->Get(args...); });
  }
  void Send(const contract::ListRequest& request, Duration timeout, Done done) {
    Start<pb::ListFilter, pb::MachineList>(request, timeout, std::move(done),
                                           [this](auto&... args) { stub_->async()->List(args...); });
  }

  template <class WireRequest, class WireReply, class Request, class Call>
  void Start(const Request& request, Duration timeout, Done done, const Call& call) {
    auto* open = new Open<WireRequest, WireReply>;  // until Finished
    ToWire(request, open->request);
    open->done = std::move(done);
    SetDeadline(open->context, timeout);
    {
      const std::lock_guard lock(mu_);
      open_.insert(&open->context);
      ++unfinished_;
    }
    grpc::ClientContext* context = &open->context;
    const WireRequest* wire_request = &open->request;
    WireReply* wire_reply = &open->reply;
    const std::function<void(grpc::Status)> finished = [this, open](const grpc::Status& status) {
      Finished(std::unique_ptr<Open<WireRequest, WireReply>>(open), status);
    };
    call(context, wire_request, wire_reply, finished);
  }

  template <class WireRequest, class WireReply>
  void Finished(std::unique_ptr<Open<WireRequest, WireReply>> open, const grpc::Status& status) {
    open->done(status.ok() ? Read(open->reply) : std::unexpected(Explain(status)));
    {
      const std::lock_guard lock(mu_);
      open_.erase(&open->context);
    }
    // The context holds the channel, and whoever lets go of a channel last waits for gRPC's threads, of which this is
    // one. So it goes before the client can.
    open.reset();
    const std::lock_guard lock(mu_);
    --unfinished_;
    closed_.notify_all();  // under the lock: after it, the client may be gone
  }

  template <class WireReply>
  Result<contract::ProviderReply> Read(WireReply& wire) const {
    auto reply = TakeReply(wire);
    if (!reply) {
      return Error(Code::kInternal,
                   fmt::format("provider {} answers with a bad record: {}", target_, reply.error().message()));
    }
    return *std::move(reply);
  }

  Status Explain(const grpc::Status& grpc_status) const {
    const Status status = FromGrpc(grpc_status);
    const bool silent = status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
    if (!silent) return status;
    return {status.code(), fmt::format("provider {} does not answer: {}", target_, status.message())};
  }

  const std::string target_;
  const std::unique_ptr<pb::CapacityProvider::Stub> stub_;
  std::mutex mu_;
  std::condition_variable closed_;
  std::set<grpc::ClientContext*> open_;  // guarded by mu_: calls whose answer was not given yet
  size_t unfinished_ = 0;                // guarded by mu_: these, and those that are being cleared away
};

}  // namespace

Result<std::unique_ptr<contract::ProviderPort>> MakeProviderClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = target, .tls = tls, .max_message_bytes = kLargeMessageBytes}));
  return std::make_unique<ProviderClient>(target, channel);
}

}  // namespace muster::rpc
