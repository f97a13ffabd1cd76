// What a scheduler's CA signs, and what it does not.
#include "rpc/node_ca.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/asn1.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <filesystem>

#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "host/text_file.h"
#include "rpc/certificates_for_test.h"
#include "rpc/node_key.h"
#include "rpc/openssl_ptr.h"

namespace muster::rpc {
namespace {

X509Ptr Parsed(const std::string& pem) {
  return X509Ptr(PEM_read_bio_X509(PemReader(pem).get(), nullptr, nullptr, nullptr));
}

std::string ExtensionText(const X509& certificate, int nid) {
  const int at = X509_get_ext_by_NID(&certificate, nid, -1);
  if (at < 0) return "none";
  const BioPtr out(BIO_new(BIO_s_mem()));
  X509V3_EXT_print(out.get(), X509_get_ext(&certificate, at), 0, 0);
  char* data = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
}

// OK, or OpenSSL's word, for a chain of which only the root is trusted.
std::string Verify(const std::string& chain_pem, const std::string& root_pem, int purpose) {
  const std::unique_ptr<X509_STORE, FreedBy<X509_STORE_free>> store(X509_STORE_new());
  const X509Ptr root = Parsed(root_pem);
  X509_STORE_add_cert(store.get(), root.get());
  STACK_OF(X509)* others = sk_X509_new_null();
  const BioPtr in = PemReader(chain_pem);
  const X509Ptr own(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  while (X509* one = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) sk_X509_push(others, one);
  const std::unique_ptr<X509_STORE_CTX, FreedBy<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), own.get(), others);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  const bool good = X509_verify_cert(context.get()) == 1;
  const std::string why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  sk_X509_pop_free(others, X509_free);
  return good ? "OK" : why;
}

std::string RequestOf(EVP_PKEY& key, bool lies = false) {
  const CsrPtr csr(X509_REQ_new());
  X509_REQ_set_pubkey(csr.get(), &key);
  const KeyPtr another(EVP_EC_gen("P-256"));
  // What a request asks for beside its key: to be a CA, and admin.
  STACK_OF(X509_EXTENSION)* extensions = sk_X509_EXTENSION_new_null();
  sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE"));
  sk_X509_EXTENSION_push(extensions,
                         X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "URI:bigfleet://admin"));
  X509_REQ_add_extensions(csr.get(), extensions);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  X509_REQ_sign(csr.get(), lies ? another.get() : &key, EVP_sha256());
  return PemOf([&](BIO* out) { return PEM_write_bio_X509_REQ(out, csr.get()); });
}

class NodeCaTest : public ::testing::Test {
 protected:
  NodeCaTest() {
    const TlsFiles written = root_.Write(dir_.path(), "join", root_.SignCa());
    files_ = {.cert = written.cert, .key = written.key, .trusted = written.ca};
    ca_ = std::make_unique<NodeCa>(*NodeCa::Read(files_));
  }
  Result<NodeCertificate> Sign(const std::string& csr, const std::string& host = "10.0.0.7",
                               const std::string& node = "m-1") const {
    return ca_->SignNode("blue", {.node = node, .host = host, .csr_pem = csr}, now_, 24h);
  }
  static std::string GoodRequest() { return *MakeCertificateRequest(MakeNodeKey()); }

  host::TempDir dir_;
  CertificateAuthorityForTest root_;
  NodeCa::Files files_;
  std::unique_ptr<NodeCa> ca_;
  const WallTime now_ = host::SystemClock().Read().wall;
};

TEST_F(NodeCaTest, ANodeGetsItsNameAndHostForBothSides) {
  const auto made = Sign(GoodRequest());
  ASSERT_TRUE(made.has_value()) << made.error().message();
  const X509Ptr x = Parsed(made->chain_pem);
  ASSERT_TRUE(x);
  EXPECT_EQ(ExtensionText(*x, NID_subject_alt_name), "URI:muster://node/blue/m-1, IP Address:10.0.0.7");
  EXPECT_EQ(ExtensionText(*x, NID_ext_key_usage), "TLS Web Client Authentication, TLS Web Server Authentication");
  EXPECT_EQ(ExtensionText(*x, NID_basic_constraints), "CA:FALSE");
  EXPECT_EQ(ExtensionText(*x, NID_key_usage), "Digital Signature");
  EXPECT_EQ(X509_get_signature_nid(x.get()), NID_ecdsa_with_SHA256);
  EXPECT_EQ(Verify(made->chain_pem, ca_->trusted_pem(), X509_PURPOSE_SSL_CLIENT), "OK");
  EXPECT_EQ(Verify(made->chain_pem, ca_->trusted_pem(), X509_PURPOSE_SSL_SERVER), "OK");
  const CertificateFacts facts = *ReadCertificate(made->chain_pem);
  EXPECT_EQ(facts.uris, std::vector<std::string>{"muster://node/blue/m-1"});
  EXPECT_EQ(facts.serial, made->serial);
  EXPECT_LE(facts.from, now_ - 5min);
  EXPECT_GT(facts.from, now_ - 6min);
  EXPECT_LE(facts.until, now_ + 1h) << "not longer than its CA";
}

TEST_F(NodeCaTest, LivesAsLongAsItIsTold) {
  const auto made = ca_->SignNode("blue", {.node = "m-1", .host = "h", .csr_pem = GoodRequest()}, now_, 10min);
  ASSERT_TRUE(made.has_value());
  EXPECT_LE(made->expires, now_ + 10min);
  EXPECT_GT(made->expires, now_ + 9min);
}

TEST_F(NodeCaTest, ATokenIsAClientOfItsClusterAndNothingElse) {
  const auto token = ca_->MakeToken("blue", now_, 30min);
  ASSERT_TRUE(token.has_value()) << token.error().message();
  const X509Ptr x = Parsed(token->pem);
  EXPECT_EQ(ExtensionText(*x, NID_subject_alt_name), "URI:muster://join/blue");
  EXPECT_EQ(ExtensionText(*x, NID_ext_key_usage), "TLS Web Client Authentication");
  EXPECT_EQ(ExtensionText(*x, NID_basic_constraints), "CA:FALSE");
  EXPECT_EQ(Verify(token->pem, ca_->trusted_pem(), X509_PURPOSE_SSL_CLIENT), "OK");
  EXPECT_NE(Verify(token->pem, ca_->trusted_pem(), X509_PURPOSE_SSL_SERVER), "OK") << "nobody serves with it";
  EXPECT_LE(token->expires, now_ + 30min);
  const KeyPtr key(PEM_read_bio_PrivateKey(PemReader(token->pem).get(), nullptr, nullptr, nullptr));
  ASSERT_TRUE(key) << "its key is in the same text";
  EXPECT_EQ(X509_check_private_key(x.get(), key.get()), 1);
  const auto other = ca_->MakeToken("blue", now_, 30min);
  EXPECT_NE(other->serial, token->serial);
  EXPECT_GE(token->serial.size(), 24u) << "128 random bits";
}

TEST_F(NodeCaTest, OfARequestOnlyTheKeyIsTaken) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const auto made = Sign(RequestOf(*key));
  ASSERT_TRUE(made.has_value()) << made.error().message();
  const X509Ptr x = Parsed(made->chain_pem);
  EXPECT_EQ(ExtensionText(*x, NID_subject_alt_name), "URI:muster://node/blue/m-1, IP Address:10.0.0.7");
  EXPECT_EQ(ExtensionText(*x, NID_basic_constraints), "CA:FALSE");
  EXPECT_EQ(EVP_PKEY_eq(X509_get0_pubkey(x.get()), key.get()), 1);
  EXPECT_EQ(made->key_digest.size(), 64u);
  EXPECT_EQ(Sign(RequestOf(*key))->key_digest, made->key_digest);
  EXPECT_NE(Sign(GoodRequest())->key_digest, made->key_digest);
}

TEST_F(NodeCaTest, RefusesRequestsByTheirFault) {
  const auto why = [&](const std::string& csr) {
    const auto made = Sign(csr);
    EXPECT_TRUE(made.has_value() || made.error().code() == Code::kInvalidArgument);
    return made ? "signed" : made.error().message();
  };
  EXPECT_EQ(why(""), "csr_pem: no request for a certificate in PEM form");
  EXPECT_EQ(why("nonsense"), "csr_pem: no request for a certificate in PEM form");
  EXPECT_EQ(why(GoodRequest().substr(40)), "csr_pem: no request for a certificate in PEM form");
  EXPECT_EQ(why(ca_->trusted_pem()), "csr_pem: no request for a certificate in PEM form");
  EXPECT_TRUE(why(GoodRequest() + std::string(4096, '\n')).contains("bytes; a request has 4096 at the most"));
  const KeyPtr rsa(EVP_RSA_gen(2048));
  EXPECT_EQ(why(RequestOf(*rsa)), "csr_pem: the key of a node is one on P-256");
  const KeyPtr larger(EVP_EC_gen("P-384"));
  EXPECT_EQ(why(RequestOf(*larger)), "csr_pem: the key of a node is one on P-256");
  const KeyPtr key(EVP_EC_gen("P-256"));
  EXPECT_EQ(why(RequestOf(*key, true)), "csr_pem: not signed with its key");
}

TEST_F(NodeCaTest, HostsAreAddressesOrDnsNames) {
  const auto names = [&](const std::string& host) {
    const auto made = Sign(GoodRequest(), host);
    if (!made) return made.error().message();
    const std::string all = ExtensionText(*Parsed(made->chain_pem), NID_subject_alt_name);
    return all.substr(all.find(", ") + 2);  // after the identity
  };
  EXPECT_EQ(names("n-1.example"), "DNS:n-1.example");
  EXPECT_EQ(names("::1"), "IP Address:0:0:0:0:0:0:0:1");
  for (const std::string bad : {"", "a,URI:bigfleet://admin", "a b", "*", "*.example", ".a", "a..b", "a.", "-a", "a-",
                                "bigfleet://admin", "a/b", "a_b"}) {
    EXPECT_TRUE(names(bad).contains("is neither an IP address nor a DNS name")) << bad;
  }
  EXPECT_TRUE(names(std::string(254, 'a')).contains("is neither"));
  for (const std::string bad : {"", "a/b", "../x", "a,b"}) {
    EXPECT_EQ(Sign(GoodRequest(), "h", bad).error().code(), Code::kInvalidArgument) << bad;
  }
}

TEST_F(NodeCaTest, RefusesFilesThatAreNoCaByTheirName) {
  const auto why = [](const NodeCa::Files& files) {
    const auto ca = NodeCa::Read(files);
    return ca ? std::string("good") : ca.error().message();
  };
  EXPECT_EQ(why(files_), "good");
  NodeCa::Files files = files_;
  const TlsFiles peer = root_.Write(dir_.path(), "peer", root_.Sign("URI:bigfleet://admin"));
  files.cert = peer.cert;
  EXPECT_EQ(why(files), peer.cert + ": its first certificate is no CA's: it may sign nothing");
  files = files_;
  files.key = peer.key;
  EXPECT_EQ(why(files), fmt::format("{}: not the key of the certificate in {}", peer.key, files.cert));
  CertificateAuthorityForTest stranger;
  files = files_;
  files.trusted = stranger.Write(dir_.path(), "stranger", stranger.own()).ca;
  EXPECT_TRUE(why(files).contains("does not come from what")) << why(files);
  files = files_;
  std::filesystem::permissions(files.key, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  EXPECT_TRUE(why(files).contains("chmod 600")) << why(files);
  const TlsFiles expired = root_.Write(dir_.path(), "expired", root_.SignCa(-10));
  EXPECT_TRUE(why({.cert = expired.cert, .key = expired.key, .trusted = expired.ca}).contains("expired"));
  EXPECT_TRUE(why({.cert = dir_.File("none"), .key = files_.key, .trusted = files_.trusted}).contains("none"));
}

TEST_F(NodeCaTest, TheRootItselfMaySignAndIsNotSentAlong) {
  const TlsFiles own = root_.Write(dir_.path(), "root", root_.own());
  const auto ca = NodeCa::Read({.cert = own.cert, .key = own.key, .trusted = own.ca});
  ASSERT_TRUE(ca.has_value()) << ca.error().message();
  const auto made = ca->SignNode("blue", {.node = "m-1", .host = "h", .csr_pem = GoodRequest()}, now_, 10min);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(Verify(made->chain_pem, ca->trusted_pem(), X509_PURPOSE_SSL_SERVER), "OK");
  EXPECT_EQ(made->chain_pem.find("BEGIN", made->chain_pem.find("BEGIN") + 1), std::string::npos);
}

}  // namespace
}  // namespace muster::rpc
