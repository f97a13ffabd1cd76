// muster.v1.Enrol between its client and its service, over real connections: who is let in, and what arrives.
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "rpc/certificates_for_test.h"
#include "rpc/enrol_client.h"
#include "rpc/enrol_service.h"
#include "rpc/node_key.h"
#include "rpc/server.h"

namespace muster::rpc {
namespace {

template <class Reply, class Ask>
Result<Reply> Await(const Ask& ask) {
  std::promise<Result<Reply>> answer;
  ask([&](Result<Reply> reply) { answer.set_value(std::move(reply)); });
  return answer.get_future().get();
}

class FakePort final : public EnrolPort {
 public:
  Result<MadeToken> CreateToken() override {
    return MadeToken{.token = {.pem = "the token", .serial = "AB", .expires = WallTime(7s)}, .ca_pem = "the CA"};
  }
  void Sign(SignNode request, Done done) override {
    const std::lock_guard lock(mu);
    asked.push_back(std::move(request));
    done(SignedNode{.chain_pem = "a chain", .ca_pem = "the CA"});
  }
  std::mutex mu;
  std::vector<SignNode> asked;  // guarded by mu
};

class EnrolRpc : public ::testing::Test {
 protected:
  EnrolRpc() : service_(MakeEnrolService(port_)) {}
  std::string Serve(const TlsFiles& tls) {
    servers_.push_back(std::make_unique<Server>(
        ServerOptions{.address = {.host = "127.0.0.1", .port = 0}, .tls = tls, .cluster = "blue"}));
    grpc::Service* const services[] = {service_.get()};
    EXPECT_EQ(servers_.back()->Start(services), Status());
    return servers_.back()->address().ToString();
  }
  TlsFiles Files(const std::string& name, const std::string& alternatives) {
    return ca_.Write(dir_.path(), name, ca_.Sign(alternatives));
  }
  static Result<SignedNode> Sign(const std::string& targets, const TlsFiles& tls, const std::string& node = "m-1") {
    const auto client = MakeEnrolClient(targets, tls);
    if (!client) return std::unexpected(client.error());
    return Await<SignedNode>(
        [&](auto done) { (*client)->Sign({.node = node, .host = "h", .csr_pem = "a request"}, std::move(done)); });
  }
  static Result<TokenText> CreateToken(const std::string& targets, const TlsFiles& tls) {
    const auto client = MakeEnrolClient(targets, tls);
    if (!client) return std::unexpected(client.error());
    return Await<TokenText>([&](auto done) { (*client)->CreateToken(std::move(done)); });
  }

  host::TempDir dir_;
  CertificateAuthorityForTest ca_;
  FakePort port_;
  std::shared_ptr<grpc::Service> service_;
  std::vector<std::unique_ptr<Server>> servers_;  // before the service goes
};

TEST_F(EnrolRpc, ATokenIsKnownByItsSerialAndANodeRenewsForItself) {
  const std::string target = Serve(Files("server", "IP:127.0.0.1,URI:muster://scheduler/blue"));
  const TlsFiles token = Files("token", "URI:muster://join/blue");
  const auto made = Sign(target, token);
  ASSERT_TRUE(made.has_value()) << made.error().message();
  EXPECT_EQ(made->chain_pem, "a chain");
  EXPECT_EQ(made->ca_pem, "the CA");
  const CertificateFacts facts = *ReadCertificate(ReadTlsMaterial(token)->cert_chain);
  ASSERT_EQ(port_.asked.size(), 1u);
  EXPECT_EQ(port_.asked[0].request.node, "m-1");
  EXPECT_EQ(port_.asked[0].request.host, "h");
  EXPECT_EQ(port_.asked[0].request.csr_pem, "a request");
  ASSERT_TRUE(port_.asked[0].token.has_value());
  EXPECT_EQ(port_.asked[0].token->serial, facts.serial);
  EXPECT_EQ(port_.asked[0].token->expires, facts.until);
  EXPECT_EQ(port_.asked[0].own_key, "") << "a token's key is nobody's";

  const TlsFiles node = Files("node", "URI:muster://node/blue/m-1");
  EXPECT_TRUE(Sign(target, node).has_value());
  ASSERT_EQ(port_.asked.size(), 2u);
  EXPECT_FALSE(port_.asked[1].token.has_value());
  EXPECT_EQ(port_.asked[1].own_key, ReadCertificate(ReadTlsMaterial(node)->cert_chain)->key_digest);
  EXPECT_EQ(port_.asked[1].own_key.size(), 64u);
  EXPECT_NE(port_.asked[1].own_key, facts.key_digest) << "of its own key, and no other's";
  EXPECT_EQ(Sign(target, node, "m-2").error().code(), Code::kPermissionDenied) << "for itself only";
  EXPECT_EQ(port_.asked.size(), 2u);
}

TEST_F(EnrolRpc, TokensAreForTheClusterAndForAdmin) {
  const std::string target = Serve(Files("server", "IP:127.0.0.1,URI:muster://scheduler/blue"));
  for (const char* uri : {"bigfleet://cluster/blue", "bigfleet://admin"}) {
    const auto made = CreateToken(target, Files("caller", std::string("URI:") + uri));
    ASSERT_TRUE(made.has_value()) << made.error().message();
    EXPECT_EQ(made->token_pem, "the token");
    EXPECT_EQ(made->ca_pem, "the CA");
    EXPECT_EQ(made->expires, WallTime(7s));
  }
  for (const char* uri : {"muster://join/blue", "muster://node/blue/m-1", "muster://tenant/t", "bigfleet://readonly",
                          "bigfleet://cluster/red"}) {
    EXPECT_EQ(CreateToken(target, Files("caller", std::string("URI:") + uri)).error().code(), Code::kPermissionDenied)
        << uri;
  }
  for (const char* uri :
       {"bigfleet://cluster/blue", "bigfleet://admin", "muster://join/red", "muster://node/red/m-1"}) {
    EXPECT_EQ(Sign(target, Files("caller", std::string("URI:") + uri)).error().code(), Code::kPermissionDenied) << uri;
  }
  EXPECT_TRUE(port_.asked.empty());
}

TEST_F(EnrolRpc, WithoutTlsNothingIsGiven) {
  const std::string target = Serve({});
  EXPECT_EQ(CreateToken(target, {}).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Sign(target, {}).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(port_.asked.empty());
}

TEST_F(EnrolRpc, TheNextSchedulerIsAskedWhereOneIsGone) {
  const TlsFiles own = Files("server", "IP:127.0.0.1,URI:muster://scheduler/blue");
  const std::string gone = Serve(own);
  servers_.clear();
  const std::string target = Serve(own);
  EXPECT_TRUE(Sign(gone + "," + target, Files("token", "URI:muster://join/blue")).has_value());
  EXPECT_EQ(Sign(gone, Files("token", "URI:muster://join/blue")).error().code(), Code::kUnavailable);
}

// A token is no scheduler, whatever it is put in front of.
TEST_F(EnrolRpc, AServerWithATokenIsNobody) {
  const std::string target = Serve(Files("server", "IP:127.0.0.1,URI:muster://join/blue"));
  EXPECT_EQ(Sign(target, Files("token", "URI:muster://join/blue")).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace muster::rpc
