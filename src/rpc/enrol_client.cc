#include "rpc/enrol_client.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <utility>
#include <vector>

#include "host/parser.h"
#include "muster/v1/enrol.pb.h"
#include "rpc/aging_channel.h"
#include "rpc/open_calls.h"

namespace muster::rpc {
namespace {

constexpr Duration kEnrolTimeout = 10s;

using Channels = std::vector<std::shared_ptr<grpc::ChannelInterface>>;

Result<TokenText> ReadToken(v1::CreateTokenResponse& reply) {
  if (reply.token_pem().empty()) return InvalidArgument("token_pem: missing");
  if (reply.ca_pem().empty()) return InvalidArgument("ca_pem: missing");
  return TokenText{.token_pem = std::move(*reply.mutable_token_pem()),
                   .ca_pem = std::move(*reply.mutable_ca_pem()),
                   .expires = WallTime(Duration(reply.expires_at_unix_nanos()))};
}
Result<SignedNode> ReadSigned(v1::SignResponse& reply) {
  if (reply.chain_pem().empty()) return InvalidArgument("chain_pem: missing");
  if (reply.ca_pem().empty()) return InvalidArgument("ca_pem: missing");
  return SignedNode{.chain_pem = std::move(*reply.mutable_chain_pem()), .ca_pem = std::move(*reply.mutable_ca_pem())};
}

class GrpcEnrolClient final : public EnrolClient {
 public:
  GrpcEnrolClient(const std::string& names, Channels schedulers)
      : schedulers_(std::move(schedulers)), calls_("scheduler " + names, "answer") {}

  void CreateToken(TokenDone done) override {
    Try(v1::CreateTokenRequest(), "/muster.v1.Enrol/CreateToken", &ReadToken, std::move(done), first_,
        schedulers_.size());
  }
  void Sign(const NodeRequest& request, SignDone done) override {
    v1::SignRequest wire;
    wire.set_node(request.node);
    wire.set_host(request.host);
    wire.set_csr_pem(request.csr_pem);
    Try(std::move(wire), "/muster.v1.Enrol/Sign", &ReadSigned, std::move(done), first_, schedulers_.size());
  }

 private:
  // Asks scheduler `index`, and the ones after it while `left` allows it.
  template <class WireRequest, class WireReply, class Reply>
  void Try(WireRequest wire, const char* path, Result<Reply> (*take)(WireReply&),
           std::function<void(Result<Reply>)> done, size_t index, size_t left) {
    auto ended = [this, wire, path, take, done = std::move(done), index, left](Result<Reply> reply) {
      const bool silent = !reply && reply.error().code() == Code::kUnavailable;
      const size_t next = (index + 1) % schedulers_.size();
      if (silent && left > 1) return Try(wire, path, take, done, next, left - 1);
      first_ = silent ? next : index;
      done(std::move(reply));
    };
    calls_.BoundedUnary<WireReply>(schedulers_[index], path, std::move(wire), kEnrolTimeout, MessageBounds(), take,
                                   std::move(ended));
  }

  std::atomic<size_t> first_ = 0;  // who is asked first
  const Channels schedulers_;
  OpenCalls calls_;  // last, and of all: its end waits for answers, which may ask the next scheduler
};

}  // namespace

Result<std::unique_ptr<EnrolClient>> MakeEnrolClient(const std::string& schedulers, const TlsFiles& tls,
                                                     const std::string& cluster) {
  Channels all;
  for (const std::string_view part : host::SplitAt(schedulers, ',')) {
    const std::string target(part);
    // A connection of its own: what it shows is the certificate that these files hold now.
    MUSTER_ASSIGN_OR_RETURN(
        const std::shared_ptr<grpc::ChannelInterface> channel,
        MakeAgingChannel(
            {.target = target,
             .tls = tls,
             .serves = {.kinds = {Identity::Kind::kScheduler, Identity::Kind::kCluster}, .cluster = cluster},
             .longest_reconnect = 1s,
             .own_connection = true}));
    all.push_back(channel);
  }
  return std::make_unique<GrpcEnrolClient>(schedulers, std::move(all));
}

}  // namespace muster::rpc
