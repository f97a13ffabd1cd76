// Real sockets and real certificates: who gets in, who does not, and that files may change while all runs.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "host/temp_dir_for_test.h"
#include "rpc/aging_channel.h"
#include "rpc/certificate_check.h"
#include "rpc/certificates_for_test.h"
#include "rpc/channel.h"
#include "rpc/health.h"
#include "rpc/server.h"
#include "rpc/server_credentials.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

constexpr Duration kPatience = 20s;
constexpr const char* kServerNames = "IP:127.0.0.1";

// Answers Get with the caller's identity as the machine's id, and lists nothing.
class Echo final : public pb::CapacityProvider::CallbackService {
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const pb::MachineRef* /*ref*/,
                                pb::Machine* machine) override {
    const std::optional<Identity> caller = CallerOf(*context);
    machine->set_id(caller ? caller->ToString() : "nobody in particular");
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class Tls : public testing::Test {
 protected:
  TlsFiles Files(const std::string& name, const std::string& alternatives, int64_t lifetime_seconds = 3600) {
    return ca_.Write(dir_.path(), name, ca_.Sign(alternatives, lifetime_seconds));
  }

  host::Address StartServer(const TlsFiles& files) {
    server_ = std::make_unique<Server>(ServerOptions{.address = {"127.0.0.1", 0}, .tls = files});
    const std::array<grpc::Service*, 1> services = {&echo_};
    const Status started = server_->Start(services);
    EXPECT_EQ(started, Status());
    server_->SetServing(true);
    return server_->address();
  }

  // At the same address, with calls under way cut off.
  void RestartServer() {
    const host::Address where = server_->address();
    server_->Stop();
    server_ = std::make_unique<Server>(
        ServerOptions{.address = where, .tls = Files("server", kServerNames), .stop_grace = 0s});
    const std::array<grpc::Service*, 1> services = {&echo_};
    ASSERT_EQ(server_->Start(services), Status());
  }

  // Who the server takes us for, on a connection of its own.
  Result<std::string> Call(const TlsFiles& files, const std::string& method = "Get") {
    const auto channel = MakeChannel({.target = server_->address().ToString(), .tls = files, .own_connection = true});
    if (!channel) return std::unexpected(channel.error());
    const auto stub = pb::CapacityProvider::NewStub(*channel);
    grpc::ClientContext context;
    SetDeadline(context, kPatience);
    pb::Machine machine;
    pb::TransitionAck ack;
    const grpc::Status status = method == "Get" ? stub->Get(&context, {}, &machine) : stub->Create(&context, {}, &ack);
    if (!status.ok()) return std::unexpected(FromGrpc(status));
    return machine.id();
  }

  host::TempDir dir_;
  CertificateAuthorityForTest ca_;
  Echo echo_;
  std::unique_ptr<Server> server_;
};

TEST_F(Tls, RolesDecideWhoMayCallWhat) {
  StartServer(Files("server", kServerNames));
  EXPECT_EQ(Call(Files("admin", "URI:bigfleet://admin")), "bigfleet://admin");
  EXPECT_EQ(Call(Files("shard", "URI:bigfleet://shard/s-1,URI:spiffe://x/y")), "bigfleet://shard/s-1");
  const auto refused = Call(Files("cluster", "URI:bigfleet://cluster/c-1"));
  EXPECT_EQ(refused.error(), Status(Code::kPermissionDenied,
                                    "\"bigfleet://cluster/c-1\" may not call "
                                    "\"/bigfleet.v1alpha1.CapacityProvider/Get\""));
  EXPECT_EQ(Call(Files("admin2", "URI:bigfleet://admin"), "Create").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(Call(Files("two", "URI:bigfleet://admin,URI:bigfleet://readonly")).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(Call(Files("none", "DNS:example.org")).error().code(), Code::kPermissionDenied);
  // Let in by role, the call meets the service, which has no Create.
  EXPECT_EQ(Call(Files("shard2", "URI:bigfleet://shard/s-1"), "Create").error().code(), Code::kUnimplemented);
}

TEST_F(Tls, HealthIsForEveryCertificateOfTheCa) {
  const host::Address where = StartServer(Files("server", kServerNames));
  EXPECT_EQ(CheckHealth(where, "", kPatience, Files("any", "DNS:example.org")), Status());
  EXPECT_EQ(CheckHealth(where, "", kPatience).code(), Code::kUnavailable);
}

TEST_F(Tls, StrangersAndTheExpiredAreRefused) {
  StartServer(Files("server", kServerNames));
  log::SetSink([](log::Level, std::string_view, std::span<const log::KeyValue>) {});
  EXPECT_EQ(Call(Files("expired", "URI:bigfleet://admin", -60)).error().code(), Code::kUnavailable);
  log::SetSink({});
  EXPECT_EQ(Call({}).error().code(), Code::kUnavailable);  // plaintext
  CertificateAuthorityForTest other;
  TlsFiles stranger = other.Write(dir_.path(), "stranger", other.Sign("URI:bigfleet://admin"));
  EXPECT_EQ(Call(stranger).error().code(), Code::kUnavailable);  // neither trusts the other
  stranger.ca = Files("known", "URI:bigfleet://admin").ca;
  EXPECT_EQ(Call(stranger).error().code(), Code::kUnavailable);  // it trusts the server, not the server it
}

TEST_F(Tls, ClientsRefuseServersThatAreNotWhomTheyDialled) {
  StartServer(Files("elsewhere", "DNS:other.example.org"));
  const TlsFiles admin = Files("admin", "URI:bigfleet://admin");
  EXPECT_EQ(Call(admin).error().code(), Code::kUnavailable);
  log::SetSink([](log::Level, std::string_view, std::span<const log::KeyValue>) {});
  StartServer(Files("expired", kServerNames, -60));
  log::SetSink({});
  EXPECT_EQ(Call(admin).error().code(), Code::kUnavailable);
  Server plaintext({.address = {"127.0.0.1", 0}});
  ASSERT_TRUE(plaintext.Start().ok());
  EXPECT_EQ(CheckHealth(plaintext.address(), "", kPatience, admin).code(), Code::kUnavailable);
}

// The serial number of the certificate that the server shows to a client of at most this TLS version; 0 if they do not
// come to terms.
int64_t SerialShown(const host::Address& server, const TlsFiles& files, int newest) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_set_max_proto_version(context.get(), newest);
  EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context.get(), files.cert.c_str()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM), 1);
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> connection(BIO_new_ssl_connect(context.get()), &BIO_free_all);
  BIO_set_conn_hostname(connection.get(), server.ToString().c_str());
  SSL* ssl = nullptr;
  BIO_get_ssl(connection.get(), &ssl);
  const std::array<unsigned char, 3> alpn = {2, 'h', '2'};
  SSL_set_alpn_protos(ssl, alpn.data(), alpn.size());
  if (BIO_do_connect(connection.get()) != 1 || BIO_do_handshake(connection.get()) != 1) return 0;
  const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(ssl), &X509_free);
  return ASN1_INTEGER_get(X509_get0_serialNumber(shown.get()));
}

TEST_F(Tls, OnlyTls13) {
  const CertificateForTest made = ca_.Sign(kServerNames);
  const host::Address where = StartServer(ca_.Write(dir_.path(), "server", made));
  const TlsFiles admin = Files("admin", "URI:bigfleet://admin");
  EXPECT_EQ(SerialShown(where, admin, TLS1_3_VERSION),
            ASN1_INTEGER_get(X509_get0_serialNumber(made.certificate.get())));
  EXPECT_EQ(SerialShown(where, admin, TLS1_2_VERSION), 0);
}

TEST_F(Tls, AServerShowsNewFilesAtTheNextHandshakeAndPassesOverHalfARotation) {
  const auto serial = [](const CertificateForTest& made) {
    return ASN1_INTEGER_get(X509_get0_serialNumber(made.certificate.get()));
  };
  const TlsFiles admin = Files("admin", "URI:bigfleet://admin");
  const CertificateForTest first = ca_.Sign(kServerNames);
  const TlsFiles files = ca_.Write(dir_.path(), "server", first);
  const host::Address where = StartServer(files);
  EXPECT_EQ(SerialShown(where, admin, TLS1_3_VERSION), serial(first));

  int complaints = 0;
  log::SetSink([&](log::Level level, std::string_view, std::span<const log::KeyValue>) {
    if (level == log::Level::kWarn) ++complaints;
  });
  const CertificateForTest second = ca_.Sign(kServerNames);
  CertificateAuthorityForTest::WriteKey(files, second);  // the certificate is still the first one's
  EXPECT_EQ(SerialShown(where, admin, TLS1_3_VERSION), serial(first));
  EXPECT_EQ(SerialShown(where, admin, TLS1_3_VERSION), serial(first));
  EXPECT_EQ(Call(admin), "bigfleet://admin");
  EXPECT_EQ(complaints, 1);
  ca_.Write(dir_.path(), "server", second);
  EXPECT_EQ(SerialShown(where, admin, TLS1_3_VERSION), serial(second));
  EXPECT_EQ(Call(admin), "bigfleet://admin");

  std::filesystem::remove(files.cert);
  EXPECT_EQ(SerialShown(where, admin, TLS1_3_VERSION), serial(second));
  log::SetSink({});
}

// One channel for a whole test; each round breaks its connection, so that the next call makes a new one.
class LastingClient {
 public:
  LastingClient(const host::Address& server, const TlsFiles& files)
      : channel_(MakeChannel({.target = server.ToString(), .tls = files, .own_connection = true})) {
    EXPECT_TRUE(channel_.has_value());
    stub_ = pb::CapacityProvider::NewStub(*channel_);
  }
  // Who the server takes us for. A call that goes out on the connection of a server that has just gone fails, however
  // patient.
  std::string Ask(Duration patience = kPatience) {
    grpc::ClientContext context;
    SetDeadline(context, patience);
    context.set_wait_for_ready(true);
    pb::Machine machine;
    return stub_->Get(&context, {}, &machine).ok() ? machine.id() : "no answer";
  }

 private:
  Result<std::shared_ptr<grpc::Channel>> channel_;
  std::unique_ptr<pb::CapacityProvider::Stub> stub_;
};

TEST_F(Tls, AClientTakesNewFilesWithoutANewChannel) {
  StartServer(Files("server", kServerNames));
  const TlsFiles files = Files("client", "URI:bigfleet://readonly");
  LastingClient client(server_->address(), files);
  EXPECT_EQ(client.Ask(), "bigfleet://readonly");
  ca_.Write(dir_.path(), "client", ca_.Sign("URI:bigfleet://admin"));
  // Until the files, looked at every second, are those of the next connection.
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  std::string seen;
  while (seen != "bigfleet://admin" && std::chrono::steady_clock::now() < give_up) {
    RestartServer();
    seen = client.Ask();
  }
  EXPECT_EQ(seen, "bigfleet://admin");
}

// A key without its certificate makes no connection, and one that there is stays; the certificate ends that.
TEST_F(Tls, AClientOutlivesHalfARotation) {
  StartServer(Files("server", kServerNames));
  const TlsFiles files = Files("client", "URI:bigfleet://readonly");
  LastingClient client(server_->address(), files);
  EXPECT_EQ(client.Ask(), "bigfleet://readonly");
  const CertificateForTest renewed = ca_.Sign("URI:bigfleet://admin");
  CertificateAuthorityForTest::WriteKey(files, renewed);
  const auto noticed = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < noticed) {
    RestartServer();
    const std::string seen = client.Ask(1s);
    EXPECT_TRUE(seen == "bigfleet://readonly" || seen == "no answer") << seen;
  }
  ca_.Write(dir_.path(), "client", renewed);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  std::string seen;
  while (seen != "bigfleet://admin" && std::chrono::steady_clock::now() < give_up) {
    RestartServer();
    seen = client.Ask();
  }
  EXPECT_EQ(seen, "bigfleet://admin");
}

constexpr const char* kNotFit = "the-certificate-files-are-not-fit";

class AgingClient {
 public:
  AgingClient(const host::Address& server, const TlsFiles& files)
      : channel_(*MakeAgingChannel({.target = server.ToString(), .tls = files})),
        stub_(pb::CapacityProvider::NewStub(channel_)) {}

  Status Ask() {
    grpc::ClientContext context;
    SetDeadline(context, kPatience);
    pb::Machine machine;
    return FromGrpc(stub_->Get(&context, {}, &machine));
  }
  // The last answer, which has this code unless it is long in coming.
  Status AskUntil(Code code) {
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    Status status;
    do {
      status = Ask();
    } while (status.code() != code && std::chrono::steady_clock::now() < give_up);
    return status;
  }

 private:
  const std::shared_ptr<grpc::ChannelInterface> channel_;
  const std::unique_ptr<pb::CapacityProvider::Stub> stub_;
};

TEST_F(Tls, AClientWhoseCaIsGoneEndsItsConnectionAfterOneMoreAge) {
  StartServer(Files("server", kServerNames));
  TlsFiles files = Files("client", "URI:bigfleet://readonly");
  files.connection_age = 1s;
  const auto began = std::chrono::steady_clock::now();
  AgingClient client(server_->address(), files);
  EXPECT_EQ(client.AskUntil(Code::kOk), Status());
  std::filesystem::rename(files.ca, files.ca + ".away");
  const Status refused = client.AskUntil(Code::kUnavailable);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_TRUE(refused.message().contains(kNotFit)) << refused.message();
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1500ms) << "half a rotation does no harm";
  std::filesystem::rename(files.ca + ".away", files.ca);
  EXPECT_EQ(client.AskUntil(Code::kOk), Status());
}

TEST_F(Tls, AClientKeepsTheLastRevocationListThatWasFit) {
  StartServer(Files("server", kServerNames));
  TlsFiles files = Files("client", "URI:bigfleet://readonly");
  files.crl = dir_.File("lists.pem");
  ca_.WriteRevoked(files.crl, {});
  files.connection_age = 1s;
  AgingClient client(server_->address(), files);
  EXPECT_EQ(client.AskUntil(Code::kOk), Status());
  CertificateAuthorityForTest::Replace(files.crl, "nonsense");
  // Longer than the 1.5 ages after which files that are not fit end it.
  const auto enough = std::chrono::steady_clock::now() + 2500ms;
  while (std::chrono::steady_clock::now() < enough) {
    const Status status = client.Ask();
    ASSERT_FALSE(status.message().contains(kNotFit)) << status.message();
  }
  EXPECT_EQ(client.AskUntil(Code::kOk), Status());
}

TEST_F(Tls, FilesThatAreNotFitAreNamed) {
  const TlsFiles good = Files("good", kServerNames);
  const auto start = [](const TlsFiles& files) { return Server({.address = {"127.0.0.1", 0}, .tls = files}).Start(); };
  TlsFiles bad = good;
  bad.key = Files("other", kServerNames).key;
  EXPECT_EQ(start(bad), Status(Code::kInvalidArgument, bad.key + ": not the key of the certificate in " + good.cert));
  EXPECT_EQ(MakeChannel({.target = "h:1", .tls = bad}).error().code(), Code::kInvalidArgument);
  bad = good;
  bad.cert = good.key;
  EXPECT_EQ(start(bad).message(), good.key + ": no certificate in PEM form; give the file with BEGIN CERTIFICATE");
  bad = good;
  bad.key = good.cert;
  EXPECT_EQ(start(bad).message(), good.cert + ": no private key in PEM form; a key with a passphrase cannot be used");
  bad = good;
  bad.ca = dir_.File("missing");
  EXPECT_EQ(start(bad).code(), Code::kNotFound);

  EXPECT_EQ(TlsFilesFromFlags("", "", ""), TlsFiles());
  EXPECT_FALSE(TlsFiles().given());
  EXPECT_EQ(TlsFilesFromFlags("c", "k", "a"), (TlsFiles{.cert = "c", .key = "k", .ca = "a"}));
  EXPECT_EQ(TlsFilesFromFlags("c", "k", "").error(),
            Status(Code::kInvalidArgument,
                   "--tls-ca is missing: TLS needs --tls-cert, --tls-key and --tls-ca, all three or none"));
  EXPECT_EQ(TlsFilesFromFlags("", "", "a").error().code(), Code::kInvalidArgument);
}

// The lists of a CA and of the one it has signed for machines stand in one file.
class RevocationLists : public Tls {
 protected:
  RevocationLists() {
    const TlsFiles written = Files("any", kServerNames);
    files_ = {.cert = written.cert, .key = written.key, .ca = dir_.File("both.ca"), .crl = dir_.File("lists.pem")};
    CertificateAuthorityForTest::Replace(
        files_.ca, CertificateAuthorityForTest::PemOf(ca_.own()) + CertificateAuthorityForTest::PemOf(machines_));
  }
  Result<Revoked> Read(const std::string& content) {
    CertificateAuthorityForTest::Replace(files_.crl, content);
    return ReadRevoked(files_);
  }
  static std::string List(const CertificateForTest& ca, const std::vector<CertificateForTest>& revoked) {
    return CertificateAuthorityForTest::RevokedBy(ca, revoked);
  }
  Status Check(CertificateCheck& check, const CertificateForTest& made) {
    return check.Check(CertificateAuthorityForTest::PemOf(made));
  }

  const CertificateForTest machines_ = ca_.SignCa();
  TlsFiles files_;
};

TEST_F(RevocationLists, AllOfAFileCount) {
  const CertificateForTest first = ca_.Sign("URI:bigfleet://admin");
  const CertificateForTest second = ca_.Sign("URI:bigfleet://admin", 3600, machines_);
  const CertificateForTest third = ca_.Sign("URI:bigfleet://admin");
  const auto read = Read("words of a CA\n" + List(ca_.own(), {first}) + "\n" + List(machines_, {second}));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->lists, 2u);
  EXPECT_EQ(read->certificates.size(), 2u);
  EXPECT_TRUE(read->until);
  CertificateCheck check(files_);
  EXPECT_EQ(Check(check, first).code(), Code::kPermissionDenied);
  EXPECT_EQ(Check(check, second).code(), Code::kPermissionDenied);
  EXPECT_EQ(Check(check, third), Status());
}

TEST_F(RevocationLists, ASerialNumberIsOfTheCaThatGaveIt) {
  const CertificateForTest one = ca_.Sign("URI:bigfleet://admin");
  ASSERT_TRUE(Read(List(machines_, {one})));
  CertificateCheck check(files_);
  EXPECT_EQ(Check(check, one), Status());
}

TEST_F(RevocationLists, ANameIsTheSameInAnotherEncoding) {
  const CertificateForTest one = ca_.Sign("URI:bigfleet://admin");
  const std::unique_ptr<X509_NAME, decltype(&X509_NAME_free)> name(X509_NAME_new(), &X509_NAME_free);
  X509_NAME_add_entry_by_txt(name.get(), "CN", V_ASN1_PRINTABLESTRING,
                             reinterpret_cast<const unsigned char*>("Test CA"), -1, -1, 0);
  const auto read = Read(CertificateAuthorityForTest::RevokedBy(ca_.own(), {one}, name.get()));
  ASSERT_TRUE(read) << read.error().ToString();
  CertificateCheck check(files_);
  EXPECT_EQ(Check(check, one).code(), Code::kPermissionDenied);
}

TEST_F(RevocationLists, AreReadAgainWhenTheirCaIsThere) {
  const CertificateForTest one = ca_.Sign("URI:bigfleet://admin", 3600, machines_);
  CertificateAuthorityForTest::Replace(files_.ca, CertificateAuthorityForTest::PemOf(ca_.own()));
  EXPECT_FALSE(Read(List(machines_, {one})));
  CertificateCheck check(files_);
  EXPECT_EQ(check.Fit().code(), Code::kInvalidArgument);
  EXPECT_EQ(Check(check, one), Status());
  CertificateAuthorityForTest::Replace(
      files_.ca, CertificateAuthorityForTest::PemOf(ca_.own()) + CertificateAuthorityForTest::PemOf(machines_));
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (Check(check, one).ok() && std::chrono::steady_clock::now() < give_up) {
  }
  EXPECT_EQ(Check(check, one).code(), Code::kPermissionDenied);
  EXPECT_EQ(check.Fit(), Status());
}

TEST_F(RevocationLists, ADamagedFirstListIsNoWords) {
  const std::string lists = List(ca_.own(), {}) + List(machines_, {});
  EXPECT_EQ(Read(lists.substr(1)).error().message(),
            files_.crl + ": before its first list stands one that is damaged, or no list; give lists in PEM form");
  EXPECT_FALSE(Read(CertificateAuthorityForTest::PemOf(machines_) + lists));
  EXPECT_TRUE(Read("- words -----\n" + lists));
}

TEST_F(RevocationLists, WhatIsNoListBehindTheFirstIsNamed) {
  const std::string good = List(ca_.own(), {});
  const auto refused = [&](const std::string& content) { return Read(content).error().message(); };
  const std::string no_list =
      files_.crl + ": what follows list 1 is no list; give lists in PEM form and nothing between them";
  EXPECT_EQ(refused(good + "garbage\n"), no_list);
  EXPECT_EQ(refused(good + List(machines_, {}).substr(1)), no_list);
  EXPECT_EQ(refused(good + CertificateAuthorityForTest::PemOf(machines_)), no_list);
  EXPECT_EQ(refused(good + good.substr(0, good.size() / 2)), files_.crl + ": list 2 cannot be read");
  EXPECT_EQ(refused("garbage"), files_.crl + ": no revocation list in PEM form; give the file with BEGIN X509 CRL");
  const CertificateAuthorityForTest other;
  EXPECT_EQ(refused(good + List(other.own(), {})), files_.crl + ": list 2 is not signed by its CA in " + files_.ca);
}

TEST(Channel, ATargetIsHostAndPort) {
  for (const char* target : {"", "host", ":7000", "host:", "host:0", "host:65536", "host:7000x", "host:-1"}) {
    EXPECT_EQ(MakeChannel({.target = target}).error().code(), Code::kInvalidArgument) << target;
  }
}

}  // namespace
}  // namespace muster::rpc
