#include "rpc/enrol_service.h"

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/grpcpp.h>

#include <utility>
#include <vector>

#include "muster/v1/enrol.grpc.pb.h"
#include "rpc/call_subject.h"
#include "rpc/channel.h"
#include "rpc/identity.h"
#include "rpc/node_key.h"
#include "rpc/server_credentials.h"

namespace muster::rpc {
namespace {

Status RefuseWithoutTls() {
  return {Code::kFailedPrecondition, "without TLS no caller is known, and no certificate is given"};
}

Result<CertificateFacts> PeerCertificate(const grpc::ServerContextBase& context) {
  const std::vector<grpc::string_ref> pem =
      context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.empty()) return Error(Code::kPermissionDenied, "the peer shows no certificate");
  return ReadCertificate({pem.front().data(), pem.front().size()});
}

class EnrolService final : public v1::Enrol::CallbackService {
 public:
  explicit EnrolService(EnrolPort& port) : port_(port) {}

 private:
  using Context = grpc::CallbackServerContext;

  grpc::ServerUnaryReactor* CreateToken(Context* context, const v1::CreateTokenRequest* /*request*/,
                                        v1::CreateTokenResponse* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(MakeToken(*context, *reply)));
    return reactor;
  }

  Status MakeToken(const Context& context, v1::CreateTokenResponse& reply) {
    if (!CallerOf(context)) return RefuseWithoutTls();
    Result<MadeToken> made = port_.CreateToken();
    if (!made) return made.error();
    SetSubject(context, {.object = fmt::format("token/{}", made->token.serial)});
    reply.set_token_pem(std::move(made->token.pem));
    reply.set_ca_pem(std::move(made->ca_pem));
    reply.set_expires_at_unix_nanos(made->token.expires.time_since_epoch().count());
    return {};
  }

  grpc::ServerUnaryReactor* Sign(Context* context, const v1::SignRequest* request, v1::SignResponse* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    Result<SignNode> asked = Read(*context, *request);
    if (!asked) {
      reactor->Finish(ToGrpc(asked.error()));
      return reactor;
    }
    // gRPC keeps the reply until Finish.
    port_.Sign(*std::move(asked), [reactor, reply](Result<SignedNode> made) {
      if (!made) return reactor->Finish(ToGrpc(made.error()));
      reply->set_chain_pem(std::move(made->chain_pem));
      reply->set_ca_pem(std::move(made->ca_pem));
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

  static Result<SignNode> Read(const Context& context, const v1::SignRequest& wire) {
    const std::optional<Identity> caller = CallerOf(context);
    if (!caller) return std::unexpected(RefuseWithoutTls());
    SignNode asked{
        .request = {.node = wire.node(), .host = wire.host(), .csr_pem = wire.csr_pem()}, .token = {}, .own_key = {}};
    MUSTER_ASSIGN_OR_RETURN(const CertificateFacts facts, PeerCertificate(context));
    if (caller->kind != Identity::Kind::kJoin) {
      if (Status own = CheckNode(caller, wire.node()); !own.ok()) return std::unexpected(std::move(own));
      asked.own_key = facts.key_digest;
      return asked;
    }
    asked.token = TokenUse{.serial = facts.serial, .expires = facts.until};
    return asked;
  }

  EnrolPort& port_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeEnrolService(EnrolPort& port) { return std::make_shared<EnrolService>(port); }

}  // namespace muster::rpc
