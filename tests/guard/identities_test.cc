// Who a server is to its clients, and what becomes of a certificate that no longer holds, over real connections.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/x509.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>

#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "guard/hostile.h"
#include "host/http_get_for_test.h"
#include "host/log_backend.h"
#include "host/temp_dir_for_test.h"
#include "muster/v1/cluster.grpc.pb.h"
#include "persys/control/v1/control.grpc.pb.h"
#include "rpc/agent_probe.h"
#include "rpc/agent_services.h"
#include "rpc/certificates_for_test.h"
#include "rpc/channel.h"
#include "rpc/cluster_client.h"
#include "rpc/coordinator_client.h"
#include "rpc/health.h"
#include "rpc/provider_client.h"
#include "rpc/provider_service.h"
#include "rpc/role_server.h"
#include "rpc/shard_client.h"
#include "shard/fleet.h"
#include "smoke/server.h"

namespace muster::guard {
namespace {

namespace pb = bigfleet::v1alpha1;
using rpc::TlsFiles;
using shard::Eventually;

// Answers every request with UNAVAILABLE from itself: whoever hears that was let in.
class Closed final : public contract::ProviderPort {
 public:
  void Ask(contract::ProviderRequest, Duration, Done done) override {
    done(Error(Code::kUnimplemented, "it was let in"));
  }
};

class ClosedAgent final : public contract::AgentPort, public contract::LogsPort {
 public:
  void Ask(contract::AgentRequest, Done done) override { done(Error(Code::kUnimplemented, "it was let in")); }
  void Read(contract::ReadLogs, std::shared_ptr<contract::LogsSink> sink) override { sink->End({}); }
};

// The lines of this process with their message, as a person reads them.
class OwnLog {
 public:
  OwnLog() {
    log::SetSink([this](log::Level, std::string_view message, std::span<const log::KeyValue> fields) {
      const std::lock_guard lock(mu_);
      lines_.push_back(host::FormatText(message, fields));
    });
  }
  ~OwnLog() { log::SetSink({}); }
  OwnLog(const OwnLog&) = delete;
  OwnLog& operator=(const OwnLog&) = delete;

  // The only line that begins so, once there is one.
  std::string Only(const std::string& start) {
    std::vector<std::string> found;
    static_cast<void>(Eventually([&] {
      const std::lock_guard lock(mu_);
      found.clear();
      std::ranges::copy_if(lines_, std::back_inserter(found),
                           [&](const auto& line) { return line.starts_with(start); });
      return !found.empty();
    }));
    return found.size() == 1 ? found[0] : fmt::format("{} lines", found.size());
  }

 private:
  std::mutex mu_;
  std::vector<std::string> lines_;  // guarded by mu_
};

// Keeps its requests until it is told to answer them.
class Waiting final : public contract::ProviderPort {
 public:
  void Ask(contract::ProviderRequest, Duration, Done done) override {
    const std::lock_guard lock(mu_);
    kept_.push_back(std::move(done));
    came_.notify_all();
  }
  bool HasKept(size_t count) {
    std::unique_lock lock(mu_);
    return came_.wait_for(lock, 20s, [&] { return kept_.size() >= count; });
  }
  void AnswerAll() {
    std::vector<Done> kept;
    {
      const std::lock_guard lock(mu_);
      kept.swap(kept_);
    }
    for (const Done& done : kept) done(Error(Code::kAborted, "it was taken"));
  }

 private:
  std::mutex mu_;
  std::condition_variable came_;
  std::vector<Done> kept_;  // guarded by mu_
};

class Identities : public ::testing::Test {
 protected:
  TlsFiles Files(const std::string& name, const std::string& alternatives, int64_t lifetime_seconds = 3600) {
    return ca_.Write(dir_.path(), name, ca_.Sign(alternatives, lifetime_seconds));
  }
  void Serve(const TlsFiles& tls, Duration age = 0s) { Serve(port_, tls, age); }
  void Serve(contract::ProviderPort& port, const TlsFiles& tls, Duration age = 0s) {
    rpc::RoleServerOptions options;
    options.listen = options.metrics_addr = {"127.0.0.1", 0};
    options.tls = tls;
    options.tls.connection_age = age;
    server_ = std::make_unique<rpc::RoleServer>(options);
    ASSERT_EQ(server_->Listen({{rpc::kProviderService, rpc::MakeProviderService(port)}}), Status());
    server_->Serve();
  }
  std::string target() const { return server_->listen_address().ToString(); }

  // What the provider at the server answers a shard that dials it.
  Status AskAsShard(const TlsFiles& tls, const contract::FenceToken& token = {"s-1", 1, 1}) {
    const auto client = rpc::MakeProviderClient(target(), tls);
    if (!client) return client.error();
    const auto reply = shard::Wait<contract::ProviderReply>([&](auto done) {
      (*client)->Ask(contract::CreateRequest{.machine_id = "m", .fence = token}, 20s, std::move(done));
    });
    return reply ? Status() : reply.error();
  }
  std::string Metrics() const { return host::HttpGet(server_->metrics_address(), "/metrics").body; }

  host::TempDir dir_;
  rpc::CertificateAuthorityForTest ca_;
  Closed port_;
  std::unique_ptr<rpc::RoleServer> server_;
};

TEST_F(Identities, OnlyACertificateOfAProviderServesAsOne) {
  const TlsFiles shard = Files("shard", "URI:bigfleet://shard/s-1");
  for (const char* wrong :
       {"bigfleet://cluster/c", "bigfleet://shard/s-1", "bigfleet://admin", "bigfleet://readonly",
        "bigfleet://coordinator/x", "muster://node/c/n", "muster://tenant/t", "muster://scheduler/c"}) {
    Serve(Files("server", std::string("IP:127.0.0.1,URI:") + wrong));
    EXPECT_EQ(AskAsShard(shard).code(), Code::kUnavailable) << wrong;
  }
  Serve(Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p"));
  EXPECT_EQ(AskAsShard(shard).message(), "it was let in");
  Serve(Files("server", "IP:127.0.0.1"));
  EXPECT_EQ(AskAsShard(shard).message(), "it was let in") << "a plain server's certificate, of any make";
}

TEST_F(Identities, ATokenlessCallIsRefusedUnderTls) {
  Serve(Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p"));
  const TlsFiles shard = Files("shard", "URI:bigfleet://shard/s-1");
  EXPECT_EQ(AskAsShard(shard, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(AskAsShard(shard, {"s-2", 1, 1}).code(), Code::kPermissionDenied);
  EXPECT_EQ(AskAsShard(Files("cluster", "URI:bigfleet://cluster/c")).code(), Code::kPermissionDenied);
  EXPECT_TRUE(Metrics().contains("muster_server_refused_total{reason=\"denied\"} 2")) << Metrics();
}

// Two callers have nearly all that there is for requests, and ask for more.
TEST_F(Identities, ACallerHasItsPartThoughOthersHaveAll) {
  Waiting port;
  Serve(port, Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p"));
  std::vector<std::unique_ptr<contract::ProviderPort>> clients;
  std::vector<std::future<Status>> taken;
  const auto ask = [&](const std::string& shard, int64_t sequence) {
    auto ended = std::make_shared<std::promise<Status>>();
    const contract::ConfigureRequest request{.machine_id = "m",
                                             .cluster_id = "c",
                                             .bootstrap_blob = std::string(3 << 20, 'x'),
                                             .fence = {shard, 1, sequence}};
    clients.back()->Ask(request, 60s,
                        [ended](const auto& reply) { ended->set_value(reply ? Status() : reply.error()); });
    return ended->get_future();
  };
  const auto dial = [&](const std::string& shard) {
    clients.push_back(*rpc::MakeProviderClient(target(), Files(shard, "URI:bigfleet://shard/" + shard)));
  };
  for (const char* shard : {"s-1", "s-2"}) {
    dial(shard);
    for (int64_t i = 1; i <= 5; ++i) {
      taken.push_back(ask(shard, i));
      ASSERT_TRUE(port.HasKept(taken.size()));
    }
    const Status refused = ask(shard, 6).get();
    EXPECT_EQ(refused.code(), Code::kResourceExhausted);
    EXPECT_TRUE(refused.message().contains("are under way here")) << refused.message();
  }
  dial("s-3");
  taken.push_back(ask("s-3", 1));
  EXPECT_TRUE(port.HasKept(taken.size()));
  port.AnswerAll();
  for (auto& ended : taken) EXPECT_EQ(ended.get().message(), "it was taken");
  server_.reset();
}

TEST_F(Identities, ARevokedCertificateIsRefusedOnBothSides) {
  TlsFiles server = Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p");
  const rpc::CertificateForTest signed_shard = ca_.Sign("URI:bigfleet://shard/s-1");
  TlsFiles shard = ca_.Write(dir_.path(), "shard", signed_shard);
  server.crl = shard.crl = dir_.File("crl.pem");
  ca_.WriteRevoked(server.crl, {});
  Serve(server);
  EXPECT_EQ(AskAsShard(shard).message(), "it was let in");
  ca_.WriteRevoked(server.crl, {signed_shard});
  EXPECT_TRUE(Eventually([&] { return AskAsShard(shard).code() == Code::kPermissionDenied; }));
  EXPECT_TRUE(AskAsShard(shard).message().contains("is revoked")) << AskAsShard(shard).message();
  // The client's side: another list, with the server on it.
  const rpc::CertificateForTest signed_server = ca_.Sign("IP:127.0.0.1,URI:bigfleet://provider/p");
  TlsFiles other = ca_.Write(dir_.path(), "server2", signed_server);
  Serve(other);
  TlsFiles wary = Files("shard2", "URI:bigfleet://shard/s-1");
  EXPECT_EQ(AskAsShard(wary).message(), "it was let in");
  wary.crl = dir_.File("crl2.pem");
  ca_.WriteRevoked(wary.crl, {signed_server});
  EXPECT_EQ(AskAsShard(wary).code(), Code::kUnavailable);
  std::ofstream(wary.crl) << "nonsense";
  EXPECT_EQ(AskAsShard(wary).code(), Code::kInvalidArgument);
  rpc::CertificateAuthorityForTest stranger;
  stranger.WriteRevoked(wary.crl, {});
  EXPECT_TRUE(AskAsShard(wary).message().contains("not signed by its CA")) << AskAsShard(wary).message();
}

TEST_F(Identities, AConnectionEndsAtItsAge) {
  Serve(Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p"), 1s);
  const auto channel = *rpc::MakeChannel(
      {.target = target(), .tls = Files("reader", "URI:bigfleet://readonly"), .own_connection = true});
  // Health/Watch never ends by itself.
  grpc::ClientContext context;
  rpc::SetDeadline(context, 60s);
  const grpc::internal::RpcMethod watch("/grpc.health.v1.Health/Watch", grpc::internal::RpcMethod::BIDI_STREAMING,
                                        channel);
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(channel.get(), watch,
                                                                                            &context));
  const SteadyTime start = Start();
  stream->Write(Bytes(""));
  stream->WritesDone();
  grpc::ByteBuffer heard;
  while (stream->Read(&heard)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
  EXPECT_LT(SecondsSince(start), 10) << "the age, and its grace";
}

TEST_F(Identities, AnExpiredCertificateIsRefusedThoughItsConnectionLasts) {
  Serve(Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p"));
  const auto channel = *rpc::MakeChannel(
      {.target = target(), .tls = Files("brief", "URI:bigfleet://readonly", 3), .own_connection = true});
  const auto stub = pb::CapacityProvider::NewStub(channel);
  const auto code = [&] {
    grpc::ClientContext context;
    rpc::SetDeadline(context, 20s);
    pb::Machine machine;
    pb::MachineRef request;
    request.set_id("m");
    return stub->Get(&context, request, &machine).error_code();
  };
  EXPECT_EQ(code(), grpc::StatusCode::UNIMPLEMENTED) << "it was let in";
  EXPECT_TRUE(Eventually([&] { return code() == grpc::StatusCode::PERMISSION_DENIED; }));
}

TEST_F(Identities, PlaintextToAnotherMachineNeedsInsecure) {
  const auto refused = rpc::MakeProviderClient("provider.example:9100");
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(refused.error().message().contains("--insecure")) << refused.error().message();
  EXPECT_TRUE(rpc::MakeProviderClient("provider.example:9100", {.insecure = true}));
  EXPECT_TRUE(rpc::MakeProviderClient("127.0.0.1:9100"));
  EXPECT_TRUE(rpc::MakeProviderClient("[::1]:9100"));
  EXPECT_TRUE(rpc::MakeProviderClient("localhost:9100"));
  EXPECT_EQ(rpc::MakeShardClient("10.0.0.1:7780").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(rpc::MakeCoordinatorClient("10.0.0.1:7780").error().code(), Code::kInvalidArgument);
}

TEST_F(Identities, TheOwnerOfTheDataDirectoryNeedsNoCertificate) {
  rpc::RoleServerOptions options;
  options.listen = options.metrics_addr = {"127.0.0.1", 0};
  options.tls = Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p");
  options.data_dir = dir_.File("data");
  rpc::RoleServer server(options);
  ASSERT_EQ(server.OpenDataDir(), Status());
  ASSERT_EQ(server.Listen({{rpc::kProviderService, rpc::MakeProviderService(port_)}}), Status());
  server.Serve();
  const std::string socket = dir_.File("data") + "/control.sock";
  EXPECT_EQ(std::filesystem::status(socket).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const auto client = rpc::MakeProviderClient("unix:" + socket, Files("any", "URI:bigfleet://readonly"));
  ASSERT_TRUE(client.has_value()) << client.error().message();
  const auto reply = shard::Wait<contract::ProviderReply>(
      [&](auto done) { (*client)->Ask(contract::CreateRequest{.machine_id = "m"}, 20s, std::move(done)); });
  EXPECT_EQ(reply.error().message(), "it was let in");
}

// Whoever calls there is an operator, whatever programs call the same methods elsewhere.
TEST_F(Identities, WhatIsChangedOverTheSocketIsAnOrder) {
  OwnLog log;
  ClosedAgent agent;
  rpc::RoleServerOptions options;
  options.listen = options.metrics_addr = {"127.0.0.1", 0};
  options.data_dir = dir_.File("data");
  rpc::RoleServer server(options);
  ASSERT_EQ(server.OpenDataDir(), Status());
  ASSERT_EQ(server.Listen({{rpc::kProviderService, rpc::MakeProviderService(port_)},
                           {rpc::kAgentService, rpc::MakeAgentService(agent, agent)}}),
            Status());
  server.Serve();
  const auto change = [&](const std::string& target) {
    const auto provider = *rpc::MakeProviderClient(target);
    for (const contract::ProviderRequest& request :
         {contract::ProviderRequest(contract::DeleteRequest{.machine_id = "m", .fence = {}}),
          contract::ProviderRequest(contract::GetRequest{.machine_id = "m"})}) {
      const auto reply =
          shard::Wait<contract::ProviderReply>([&](auto done) { provider->Ask(request, 20s, std::move(done)); });
      EXPECT_EQ(reply.error().message(), "it was let in");
    }
    const auto probe = *rpc::MakeAgentProbe(target);
    for (const contract::AgentRequest& request :
         {contract::AgentRequest(contract::DeleteOnAgent{.workload = "w", .grace = {}, .stamp = {}}),
          contract::AgentRequest(contract::ListOnAgent{})}) {
      EXPECT_FALSE(probe->Ask(rpc::AgentProbe::Service::kNative, request));
    }
  };
  change("unix:" + dir_.File("data") + "/control.sock");
  change(server.listen_address().ToString());
  EXPECT_TRUE(log.Only("order who=local what=/bigfleet.v1alpha1.CapacityProvider/")
                  .starts_with("order who=local what=/bigfleet.v1alpha1.CapacityProvider/Delete object=machine/m "));
  EXPECT_TRUE(log.Only("order who=local what=/muster.v1.Agent/")
                  .starts_with("order who=local what=/muster.v1.Agent/Delete object=workload/w "));
}

TEST_F(Identities, TheControlAddressIsForOperatorsAlone) {
  rpc::RoleServerOptions options;
  options.listen = options.control_listen = options.metrics_addr = {"127.0.0.1", 0};
  options.tls = Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p");
  rpc::RoleServer server(options);
  ASSERT_EQ(server.Listen({{rpc::kProviderService, rpc::MakeProviderService(port_)}}), Status());
  server.Serve();
  const std::string target = server.control_address().ToString();
  const auto get = [&](const std::string& name, const std::string& uri) {
    const auto channel =
        *rpc::MakeChannel({.target = target, .tls = Files(name, "URI:" + uri), .own_connection = true});
    grpc::ClientContext context;
    rpc::SetDeadline(context, 20s);
    pb::Machine machine;
    pb::MachineRef request;
    request.set_id("m");
    return pb::CapacityProvider::NewStub(channel)->Get(&context, request, &machine);
  };
  EXPECT_EQ(get("readonly", "bigfleet://readonly").error_message(), "it was let in");
  EXPECT_EQ(get("admin", "bigfleet://admin").error_message(), "it was let in");
  const grpc::Status shard = get("shard", "bigfleet://shard/s");
  EXPECT_EQ(shard.error_code(), grpc::StatusCode::PERMISSION_DENIED) << "who may call it at the other address";
  EXPECT_EQ(shard.error_message(), "\"bigfleet://shard/s\" is no operator, and this address is for operators alone");
  EXPECT_EQ(rpc::CheckHealth(server.control_address(), "", 20s, Files("shard-2", "URI:bigfleet://shard/s")).code(),
            Code::kPermissionDenied);
  EXPECT_EQ(rpc::CheckHealth(server.control_address(), "", 20s, Files("admin-2", "URI:bigfleet://admin")), Status());
}

// A scheduler program of the cluster blue under TLS, and callers with certificates of this CA.
class ClusterIdentities : public Identities {
 protected:
  ClusterIdentities() {
    const TlsFiles tls = Files("scheduler", "IP:127.0.0.1,URI:muster://scheduler/blue");
    scheduler_ = std::make_unique<smoke::Server>(std::vector<std::string>{
        smoke::ProgramUnderTest(), "scheduler", "--cluster", "blue", "--store", "memory:", "--listen", "127.0.0.1:0",
        "--metrics-addr", "127.0.0.1:0", "--tls-cert", tls.cert, "--tls-key", tls.key, "--tls-ca", tls.ca});
  }
  void SetUp() override { ASSERT_NE(scheduler_->grpc(), "") << scheduler_->process().err(); }

  std::shared_ptr<grpc::Channel> ChannelOf(const std::string& uri) {
    const TlsFiles tls = Files(fmt::format("caller-{}", ++callers_), "URI:" + uri);
    return *rpc::MakeChannel({.target = scheduler_->grpc(), .tls = tls, .own_connection = true});
  }
  template <class Request, class Reply, class Stub>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*), Stub& stub,
                    const Request& request) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, 20s);
    Reply reply;
    return (stub.*method)(&context, request, &reply);
  }
  // Asks until the scheduler leads.
  template <class Request>
  Status Ask(const std::string& uri, const Request& request) {
    const TlsFiles tls = Files(fmt::format("caller-{}", ++callers_), "URI:" + uri);
    const auto client = rpc::MakeClusterClient(scheduler_->grpc(), tls);
    if (!client) return client.error();
    Status status;
    Eventually([&] {
      const auto reply =
          shard::Wait<contract::ClusterReply>([&](auto done) { (*client)->Ask(request, std::move(done)); });
      status = reply ? Status() : reply.error();
      return status.code() != Code::kUnavailable;
    });
    return status;
  }
  Status Apply(const std::string& uri) {
    contract::ApplySpec request{.spec = {.kind = model::WorkloadKind::kSet, .name = "web"}};
    request.spec.spec.type = model::WorkloadType::kProcess;
    request.spec.spec.command = {"serve"};
    return Ask(uri, request);
  }
  grpc::Status Register(const std::string& uri, const std::string& node) {
    const auto stub = persys::control::v1::AgentControl::NewStub(ChannelOf(uri));
    persys::control::v1::RegisterNodeRequest request;
    request.set_node_id(node);
    request.set_grpc_endpoint("127.0.0.1:1");
    request.mutable_capabilities()->set_cpu_total_millicores(1000);
    request.mutable_capabilities()->set_memory_total_mb(1000);
    return Call(&persys::control::v1::AgentControl::Stub::RegisterNode, *stub, request);
  }
  grpc::Status Join(const std::string& uri) {
    RawStream stream(ChannelOf(uri), "/muster.v1.Cluster/Join");
    stream.Write("no message");  // who hears that it cannot be read was let in
    return stream.Finish();
  }
  // Standard error so far. Lines come after the answer to the caller.
  bool Logged(const std::vector<std::string>& parts) {
    return Eventually([&] {
      static_cast<void>(scheduler_->process().Ended());
      const std::string& text = scheduler_->process().err();
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        if (std::ranges::all_of(parts, [&](const std::string& part) { return line.contains(part); })) return true;
        at = end + 1;
      }
      return false;
    });
  }
  std::string SchedulerMetrics() {
    return host::HttpGet(*host::ParseListenAddress(scheduler_->http(), false, "http"), "/metrics").body;
  }

  std::unique_ptr<smoke::Server> scheduler_;
  int callers_ = 0;
};

TEST_F(ClusterIdentities, ACertificateOfAnotherClusterIsRefused) {
  using grpc::StatusCode;
  EXPECT_EQ(Apply("bigfleet://cluster/blue"), Status());
  EXPECT_EQ(Apply("bigfleet://cluster/red"),
            Status(Code::kPermissionDenied,
                   "\"bigfleet://cluster/red\" is of cluster \"red\", and this server of cluster \"blue\"; call the "
                   "servers of your own cluster"));
  EXPECT_EQ(Register("muster://node/red/n-1", "n-1").error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Join("muster://node/red/n-1").error_code(), StatusCode::PERMISSION_DENIED);
  const grpc::Status node = Register("muster://node/blue/n-1", "n-1");
  EXPECT_TRUE(node.ok()) << node.error_message();
  EXPECT_EQ(Register("muster://node/blue/n-1", "n-2").error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Join("muster://node/blue/n-1").error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Apply("bigfleet://admin"), Status()) << "of no one cluster";
  EXPECT_TRUE(SchedulerMetrics().contains("muster_server_refused_total{reason=\"denied\"} 4")) << SchedulerMetrics();
  EXPECT_TRUE(Logged({"\"msg\":\"call refused\"", "\"reason\":\"denied\"", "\"who\":\"bigfleet://cluster/red\"",
                      "\"what\":\"/muster.v1.Cluster/ApplySpec\"", "this server of cluster"}))
      << scheduler_->process().err();
}

TEST_F(ClusterIdentities, AnOrderIsALineWithWhoWhatTheObjectAndTheReason) {
  ASSERT_EQ(Apply("bigfleet://cluster/blue"), Status());
  ASSERT_TRUE(Register("muster://node/blue/n-1", "n-1").ok());
  const std::string admin = "bigfleet://admin";
  EXPECT_EQ(Ask(admin, contract::DrainNode{.node = "n-1", .reason = "a new disk"}), Status());
  EXPECT_EQ(Ask(admin, contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = "web"}), Status());
  EXPECT_EQ(Ask(admin, contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = "none"}).code(),
            Code::kNotFound);
  const std::string who = "\"msg\":\"order\",\"who\":\"bigfleet://admin\"";
  EXPECT_TRUE(Logged({who, "\"what\":\"/muster.v1.Cluster/DrainNode\"", "\"object\":\"node/n-1\"",
                      "\"reason\":\"a new disk\"", "\"code\":\"OK\""}))
      << scheduler_->process().err();
  EXPECT_TRUE(
      Logged({who, "\"what\":\"/muster.v1.Cluster/DeleteObject\"", "\"object\":\"set/web\"", "\"code\":\"OK\""}))
      << scheduler_->process().err();
  EXPECT_TRUE(Logged({who, "\"object\":\"set/none\"", "\"code\":\"NOT_FOUND\""})) << scheduler_->process().err();
  EXPECT_TRUE(Logged({"\"msg\":\"order of a client\",\"who\":\"bigfleet://cluster/blue\"",
                      "\"what\":\"/muster.v1.Cluster/ApplySpec\"", "\"object\":\"set/web\""}))
      << scheduler_->process().err();
}

TEST_F(ClusterIdentities, ATenantReadsAndWatchesWhatIsItsOwn) {
  const std::string shop = "muster://tenant/shop";
  const std::string bank = "muster://tenant/bank";
  ASSERT_EQ(Apply(shop), Status());
  const contract::GetWorkload own{.workload = "web-0"};
  EXPECT_TRUE(Eventually([&] { return Ask(shop, own).ok(); }));
  EXPECT_EQ(Ask(bank, own), Status(Code::kNotFound, "there is no workload web-0"));
  const auto logs = [&](const std::string& uri) {
    const auto client = *rpc::MakeClusterClient(scheduler_->grpc(), Files("reader", "URI:" + uri));
    std::promise<Status> ended;
    const auto stream = client->Logs({.workload = "web-0"}, {.chunk = [](const contract::LogChunk&) {},
                                                             .ended = [&](Status end) { ended.set_value(end); }});
    return ended.get_future().get().code();
  };
  EXPECT_EQ(logs(bank), Code::kNotFound);
  EXPECT_EQ(logs(shop), Code::kFailedPrecondition) << "it is on no node";
  const auto stub = persys::control::v1::AgentControl::NewStub(ChannelOf(bank));
  grpc::ClientContext context;
  rpc::SetDeadline(context, 20s);
  persys::control::v1::ListWorkloadsResponse listed;
  EXPECT_TRUE(stub->ListWorkloads(&context, {}, &listed).ok());
  EXPECT_EQ(listed.workloads_size(), 0);
  // A change of the other comes first, and is not told.
  const auto client = *rpc::MakeClusterClient(scheduler_->grpc(), Files("watcher", "URI:" + bank));
  std::promise<contract::ClusterChange> first;
  std::atomic<bool> told = false;
  const auto watch = client->Watch({.workloads = true, .sets = true}, {.changed =
                                                                           [&](contract::ClusterChange change) {
                                                                             if (!told.exchange(true))
                                                                               first.set_value(std::move(change));
                                                                           },
                                                                       .ended = [](const Status&) {}});
  EXPECT_EQ(Ask(shop, contract::ScaleSet{.set = "web", .replicas = 2}), Status());
  EXPECT_EQ(Ask(bank, contract::ScaleSet{.set = "web", .replicas = 3}).code(), Code::kPermissionDenied);
  contract::ApplySpec request{.spec = {.kind = model::WorkloadKind::kSet, .name = "vault"}};
  request.spec.spec.type = model::WorkloadType::kProcess;
  request.spec.spec.command = {"serve"};
  EXPECT_EQ(Ask(bank, request), Status());
  EXPECT_TRUE(std::get<contract::ObjectChanged>(first.get_future().get()).name.starts_with("vault"));
}

// A request lasts as long as its stream: were they large, two tenants would keep every other caller out.
TEST_F(ClusterIdentities, ARequestThatBeginsAStreamIsSmall) {
  ASSERT_EQ(Apply("muster://tenant/shop"), Status());
  const std::string padded = "\x7A" + Delimited(std::string(256 << 10, 'x'));  // a field that WatchRequest has not
  std::vector<std::unique_ptr<RawStream>> streams;
  for (const char* uri : {"muster://tenant/shop", "muster://tenant/bank"}) {
    const auto channel = ChannelOf(uri);
    for (int i = 0; i < 64; ++i) {
      streams.push_back(std::make_unique<RawStream>(channel, "/muster.v1.Cluster/Watch"));
      streams.back()->Write(padded);
      streams.back()->Close();
    }
  }
  EXPECT_EQ(Ask("muster://tenant/club", contract::GetWorkload{.workload = "none"}).code(), Code::kNotFound);
  for (const auto& stream : streams) {
    const grpc::Status end = stream->Finish();
    ASSERT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    ASSERT_TRUE(end.error_message().contains("one that begins a stream may take 65536")) << end.error_message();
  }
  EXPECT_TRUE(SchedulerMetrics().contains("muster_server_refused_total{reason=\"too_large\"} 128"));
}

TEST_F(Identities, AConnectionWithoutAHandshakeEnds) {
  Serve(Files("server", "IP:127.0.0.1,URI:bigfleet://provider/p"));
  const SteadyTime start = Start();
  const SlowClient silent(server_->listen_address(), "");
  const SlowClient begun(server_->listen_address(), std::string_view("\x16\x03\x01\x02\x00\x01", 6));
  EXPECT_FALSE(silent.Closed());
  EXPECT_TRUE(Eventually([&] { return silent.Closed() && begun.Closed(); }));
  EXPECT_LT(SecondsSince(start), 10);
  const std::string refused = "muster_server_refused_total{reason=\"handshake\"} ";
  EXPECT_TRUE(Eventually([&] { return Metrics().contains(refused + "2\n"); })) << Metrics();
  const SlowClient plain(server_->listen_address(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return Metrics().contains(refused + "3\n"); })) << Metrics();
  rpc::CertificateAuthorityForTest another;
  TlsFiles strange = another.Write(dir_.path(), "strange", another.Sign("URI:bigfleet://admin"));
  strange.ca = Files("any", "URI:bigfleet://admin").ca;
  EXPECT_EQ(rpc::CheckHealth(server_->listen_address(), "", 20s, strange).code(), Code::kUnavailable);
  EXPECT_TRUE(Eventually([&] { return Metrics().contains(refused + "4\n"); })) << Metrics();
}

// Half a handshake, and a call without any: neither takes a megabyte, nor lasts ten seconds.
TEST_F(ClusterIdentities, StrangersHoldLittleAndNotForLong) {
  constexpr int kStrangers = 200;
  const pid_t pid = scheduler_->process().pid();
  const host::Address address = *host::ParseListenAddress(scheduler_->grpc(), false, "grpc");
  const std::string half = std::string("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc", 9) + std::string(12 << 10, 'x');
  const std::string plain = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(12 << 10, '\0');
  ForgetPeak(pid);
  const double before = PeakMiB(pid);
  const SteadyTime start = Start();
  std::vector<SlowClient> strangers;
  for (int i = 0; i < kStrangers; ++i) strangers.emplace_back(address, i % 2 == 0 ? half : plain);
  EXPECT_TRUE(Eventually([&] { return std::ranges::all_of(strangers, &SlowClient::Closed); }));
  EXPECT_LT(SecondsSince(start), 10);
  const double growth = PeakMiB(pid) - before;
  std::cout << fmt::format("{} strangers took {:.1f} MiB\n", kStrangers, growth);
  EXPECT_LT(growth, 64) << "a third of a megabyte each";
  EXPECT_FALSE(scheduler_->process().Ended()) << scheduler_->process().err();
}

TEST_F(Identities, AKeyThatEveryoneMayReadIsRefused) {
  const TlsFiles open = Files("open", "IP:127.0.0.1");
  std::filesystem::permissions(open.key, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  rpc::Server server({.address = {"127.0.0.1", 0}, .tls = open});
  EXPECT_TRUE(server.Start().message().contains("every user of this machine")) << server.Start().message();
  EXPECT_FALSE(rpc::MakeChannel({.target = "127.0.0.1:1", .tls = open}).has_value());
}

}  // namespace
}  // namespace muster::guard
