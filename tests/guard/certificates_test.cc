// Every server and every client against every certificate that does not hold: of the wrong kind, cluster or node, of
// another host, of another CA, expired, revoked; and what becomes of a connection whose certificate stops to hold while
// it lasts. One table of clients, one of servers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guard/hostile.h"
#include "host/temp_dir_for_test.h"
#include "rpc/agent_client.h"
#include "rpc/agent_probe.h"
#include "rpc/aging_channel.h"
#include "rpc/certificates_for_test.h"
#include "rpc/channel.h"
#include "rpc/cluster_client.h"
#include "rpc/coordinator_client.h"
#include "rpc/enrol_client.h"
#include "rpc/join_client.h"
#include "rpc/open_store.h"
#include "rpc/provider_client.h"
#include "rpc/server.h"
#include "rpc/session_client.h"
#include "rpc/shard_client.h"
#include "shard/fleet.h"
#include "smoke/server.h"

namespace muster::guard {
namespace {

using rpc::TlsFiles;
using shard::Eventually;
using Asker = std::function<Status()>;

constexpr const char* kCheckHealth = "/grpc.health.v1.Health/Check";
constexpr const char* kWatchHealth = "/grpc.health.v1.Health/Watch";

// One of each kind.
const std::vector<std::string> kEveryIdentity = {
    "bigfleet://provider/p",   "bigfleet://coordinator/x", "bigfleet://shard/s-1", "bigfleet://admin",
    "bigfleet://readonly",     "muster://scheduler/blue",  "muster://tenant/t",    "muster://node/blue/n-1",
    "bigfleet://cluster/blue", "muster://join/blue"};

class Node final : public rpc::JoinHandler {
 public:
  contract::RegisterNode Registration() override { return {.facts = {.node = "n-1", .cluster = "blue"}}; }
  void Joined(const std::string&, contract::NodeRegistered) override {}
  void Acked(contract::HeartbeatAck) override {}
  void Left(const std::string&, Status why) override {
    const std::lock_guard lock(mu_);
    left_ = std::move(why);
    changed_.notify_all();
  }
  // How the next stream ends.
  Status Next() {
    std::unique_lock lock(mu_);
    left_.reset();
    changed_.wait_for(lock, shard::kPatience, [this] { return left_.has_value(); });
    return left_.value_or(Status(Code::kDeadlineExceeded, "no stream has ended"));
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::optional<Status> left_;  // guarded by mu_
};

class Session final : public rpc::SessionHandler {
 public:
  void Received(contract::ShardMessage) override {}
  void Unreadable(Status) override {}
  void Ended(Status status) override { ended.set_value(std::move(status)); }
  std::promise<Status> ended;
};

template <class Reply, class Client, class Request>
Status AskOnce(Client& client, Request request) {
  const auto reply = shard::Wait<Reply>([&](auto done) { client.Ask(std::move(request), std::move(done)); });
  return reply ? Status() : reply.error();
}

// A client as one process has it, from its certificate to the first call.
struct ClientCase {
  std::string name;
  std::string own;                   // its identity
  std::vector<std::string> servers;  // that it takes; an empty one is a server without an identity
  std::vector<std::string> others;   // of a right kind, and not who is meant
  // Makes the client once; the result calls with it.
  std::function<Asker(const std::string& target, const TlsFiles& tls)> connect;
  Code let_in = Code::kUnimplemented;  // what its call is answered by a server that knows no such method
};

Asker AskProvider(const std::string& target, const TlsFiles& tls) {
  std::shared_ptr<contract::ProviderPort> client = *rpc::MakeProviderClient(target, tls);
  return [client] {
    const auto reply = shard::Wait<contract::ProviderReply>(
        [&](auto done) { client->Ask(contract::ListRequest{}, 20s, std::move(done)); });
    return reply ? Status() : reply.error();
  };
}
Asker AskCluster(const std::string& target, const TlsFiles& tls, const std::string& cluster) {
  std::shared_ptr<rpc::ClusterClient> client = *rpc::MakeClusterClient(target, tls, cluster);
  return [client] { return AskOnce<contract::ClusterReply>(*client, contract::GetSummary{}); };
}
Asker AskAgent(const std::string& target, const TlsFiles& tls) {
  std::shared_ptr<rpc::AgentClient> client = *rpc::MakeAgentClient(tls, "blue");
  return [client, target] {
    const auto reply = shard::Wait<contract::AgentReply>([&](auto done) {
      client->Ask({.address = target, .node = "n-1"}, contract::ListOnAgent{}, 20s, std::move(done));
    });
    return reply ? Status() : reply.error();
  };
}

// A commit is not tried again, as a range would be.
Asker AskStore(const std::string& target, const TlsFiles& tls) {
  std::shared_ptr<store::Store> store = *rpc::OpenStore("etcd://" + target, {.tls = tls});
  return [store] {
    std::promise<Status> ended;
    store->Commit({.compares = {}, .writes = {contract::Put("k", "v")}}, 20s,
                  [&](const contract::CommitOutcome& outcome) {
                    const auto* unknown = std::get_if<contract::Unknown>(&outcome);
                    ended.set_value(unknown == nullptr ? Status() : unknown->status);
                  });
    return ended.get_future().get();
  };
}

std::vector<ClientCase> Clients() {
  return {
      {.name = "shard to provider",
       .own = "bigfleet://shard/s-1",
       .servers = {"bigfleet://provider/p"},
       .others = {},
       .connect = AskProvider},
      {.name = "shard to coordinator",
       .own = "bigfleet://shard/s-1",
       .servers = {"bigfleet://coordinator/x"},
       .others = {},
       .connect = [](const std::string& target, const TlsFiles& tls) -> Asker {
         std::shared_ptr<rpc::CoordinatorClient> client = *rpc::MakeCoordinatorClient(target, tls);
         return [client] {
           const auto ack =
               shard::Wait<contract::ReportAck>([&](auto done) { client->Report({}, 20s, std::move(done)); });
           return ack ? Status() : ack.error();
         };
       }},
      {.name = "operator to shard",
       .own = "bigfleet://cluster/blue",
       .servers = {"bigfleet://shard/s-1"},
       .others = {},
       .connect = [](const std::string& target, const TlsFiles& tls) -> Asker {
         return [target, tls] {
           Session session;
           const auto client = rpc::OpenSession(target, {.cluster_id = "blue"}, session, tls);
           return client ? session.ended.get_future().get() : client.error();
         };
       }},
      {.name = "operator to scheduler",
       .own = "bigfleet://cluster/blue",
       .servers = {"muster://scheduler/blue", "bigfleet://cluster/blue"},
       .others = {"muster://scheduler/green", "bigfleet://cluster/green"},
       .connect = [](const auto& target, const auto& tls) { return AskCluster(target, tls, "blue"); }},
      {.name = "scheduler to agent",
       .own = "muster://scheduler/blue",
       .servers = {"muster://node/blue/n-1"},
       .others = {"muster://node/green/n-1", "muster://node/blue/n-2"},
       .connect = AskAgent},
      {.name = "scheduler to etcd",
       .own = "muster://scheduler/blue",
       .servers = {""},
       .others = {},
       .connect = AskStore,
       .let_in = Code::kPermissionDenied},  // by a table that has no such method
      {.name = "operator to scheduler, for tokens",
       .own = "bigfleet://cluster/blue",
       .servers = {"muster://scheduler/blue", "bigfleet://cluster/blue"},
       .others = {"muster://scheduler/green", "bigfleet://cluster/green"},
       .connect = [](const std::string& target, const TlsFiles& tls) -> Asker {
         std::shared_ptr<rpc::EnrolClient> client = *rpc::MakeEnrolClient(target, tls, "blue");
         return [client] {
           const auto token = shard::Wait<rpc::TokenText>([&](auto done) { client->CreateToken(std::move(done)); });
           return token ? Status() : token.error();
         };
       }},
      {.name = "agent to scheduler",
       .own = "muster://node/blue/n-1",
       .servers = {"muster://scheduler/blue", "bigfleet://cluster/blue"},
       .others = {"muster://scheduler/green", "bigfleet://cluster/green"},
       .connect = [](const std::string& target, const TlsFiles& tls) -> Asker {
         struct Joined {
           Node node;
           std::unique_ptr<rpc::JoinClient> client;
         };
         const auto joined = std::make_shared<Joined>();
         joined->client = *rpc::MakeJoinClient(target, joined->node, tls, "blue");
         return [joined] { return joined->node.Next(); };
       }},
      {.name = "command line to shard",
       .own = "bigfleet://admin",
       .servers = {"bigfleet://shard/s-1"},
       .others = {},
       .connect = [](const std::string& target, const TlsFiles& tls) -> Asker {
         std::shared_ptr<contract::ShardPort> client = *rpc::MakeShardClient(target, tls);
         return [client] { return AskOnce<contract::ShardReply>(*client, contract::ListClusters{}); };
       }},
      {.name = "command line to scheduler",
       .own = "bigfleet://admin",
       .servers = {"muster://scheduler/blue", "bigfleet://cluster/blue", "muster://scheduler/green"},
       .others = {},
       .connect = [](const auto& target, const auto& tls) { return AskCluster(target, tls, ""); }},
      {.name = "command line to provider",
       .own = "bigfleet://readonly",
       .servers = {"bigfleet://provider/p"},
       .others = {},
       .connect = AskProvider},
      {.name = "command line to agent",
       .own = "bigfleet://admin",
       .servers = {"muster://node/blue/n-1", "muster://node/green/n-2"},
       .others = {},
       .connect = [](const std::string& target, const TlsFiles& tls) -> Asker {
         std::shared_ptr<rpc::AgentProbe> client = *rpc::MakeAgentProbe(target, tls);
         return [client] {
           const auto health = client->Health();
           return health ? Status() : health.error();
         };
       }},
  };
}

class Certificates : public ::testing::Test {
 protected:
  TlsFiles Files(const std::string& name, const std::string& alternatives, int64_t lifetime_seconds = 3600) {
    return ca_.Write(dir_.path(), name, ca_.Sign(alternatives, lifetime_seconds));
  }
  // A server without services.
  void Serve(const TlsFiles& tls) {
    server_ = std::make_unique<rpc::Server>(
        rpc::ServerOptions{.address = {"127.0.0.1", 0}, .tls = tls, .stop_grace = Duration(1ms)});
    ASSERT_EQ(server_->Start(), Status());
  }
  void Serve(const std::string& uri) { Serve(Files("server", Alternatives(uri))); }
  static std::string Alternatives(const std::string& uri) {
    return "IP:127.0.0.1" + (uri.empty() ? "" : ",URI:" + uri);
  }
  std::string target() const { return server_->address().ToString(); }
  void LetsIn(const ClientCase& one, const TlsFiles& own, const std::string& what) {
    EXPECT_EQ(one.connect(target(), own)().code(), one.let_in) << one.name << ": " << what;
  }
  void Refuses(const ClientCase& one, const TlsFiles& own, const std::string& what) {
    EXPECT_EQ(one.connect(target(), own)().code(), Code::kUnavailable) << one.name << ": " << what;
  }

  host::TempDir dir_;
  rpc::CertificateAuthorityForTest ca_;
  rpc::CertificateAuthorityForTest stranger_;
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(Certificates, AClientTakesNoServerButTheOneItMeans) {
  for (const ClientCase& one : Clients()) {
    const TlsFiles own = Files(one.name, "URI:" + one.own);
    for (const std::string& uri : one.servers) {
      Serve(uri);
      LetsIn(one, own, uri);
    }
    Serve("");
    LetsIn(one, own, "a plain server's certificate, of any make");
    std::vector<std::string> wrong = one.others;
    for (const std::string& uri : kEveryIdentity) {
      if (std::ranges::find(one.servers, uri) == one.servers.end()) wrong.push_back(uri);
    }
    for (const std::string& uri : wrong) {
      Serve(uri);
      Refuses(one, own, uri);
    }
    const std::string right = one.servers[0].empty() ? "" : ",URI:" + one.servers[0];
    Serve(Files("server", "IP:127.0.0.2" + right));
    Refuses(one, own, "of another host");
    Serve(Files("server", "IP:127.0.0.1" + right, -60));
    Refuses(one, own, "expired");
    const std::string identity = one.servers[0].empty() ? kEveryIdentity[0] : one.servers[0];
    Serve(Files("server", "IP:127.0.0.1,URI:" + identity + ",URI:" + identity + "x"));
    Refuses(one, own, "two identities");
    // The stranger's CA signs the server; the server takes certificates of the client's.
    const TlsFiles strange = stranger_.Write(dir_.path(), "server", stranger_.Sign("IP:127.0.0.1" + right));
    std::filesystem::copy_file(own.ca, strange.ca, std::filesystem::copy_options::overwrite_existing);
    Serve(strange);
    Refuses(one, own, "of another CA");
    const rpc::CertificateForTest revoked = ca_.Sign("IP:127.0.0.1" + right);
    Serve(ca_.Write(dir_.path(), "server", revoked));
    TlsFiles wary = own;
    wary.crl = dir_.File("crl.pem");
    ca_.WriteRevoked(wary.crl, {});
    LetsIn(one, wary, "not revoked");
    ca_.WriteRevoked(wary.crl, {revoked});
    Refuses(one, wary, "revoked");
  }
}

// The server keeps its connections for ever.
TEST_F(Certificates, AClientLeavesAServerWhoseCertificateStopsToHold) {
  struct Held {
    std::string name;
    Asker ask;
  };
  std::vector<std::unique_ptr<rpc::Server>> servers;
  std::vector<Held> held;
  const auto hold = [&](const ClientCase& one, const TlsFiles& server, const TlsFiles& own, const std::string& what) {
    Serve(server);
    held.push_back({one.name + ": " + what, one.connect(target(), own)});
    EXPECT_EQ(held.back().ask().code(), one.let_in) << held.back().name;
    servers.push_back(std::move(server_));
  };
  std::vector<rpc::CertificateForTest> to_revoke;
  const std::string crl = dir_.File("crl.pem");
  ca_.WriteRevoked(crl, {});
  int number = 0;
  for (const ClientCase& one : Clients()) {
    if (one.name.starts_with("command line")) continue;  // ends before
    const std::string alternatives = Alternatives(one.servers[0]);
    const auto files = [&](const std::string& what) {
      TlsFiles tls = Files(fmt::format("client-{}-{}", ++number, what), "URI:" + one.own);
      tls.connection_age = 2s;
      return tls;
    };
    hold(one, Files(fmt::format("server-{}", number), alternatives, 4), files("brief"), "expires");
    to_revoke.push_back(ca_.Sign(alternatives));
    TlsFiles wary = files("wary");
    wary.crl = crl;
    hold(one, ca_.Write(dir_.path(), fmt::format("server-{}", number), to_revoke.back()), wary, "is revoked");
    hold(one, Files(fmt::format("server-{}", number), alternatives), files("removed"), "has no CA any more");
  }
  ca_.WriteRevoked(crl, to_revoke);
  for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
    const std::string path = file.path().string();
    if (!path.contains("-removed.ca")) continue;
    const TlsFiles another = stranger_.Write(dir_.path(), "another", stranger_.Sign("URI:bigfleet://admin"));
    std::filesystem::rename(another.ca, path);
  }
  const SteadyTime start = Start();
  for (const Held& one : held) {
    EXPECT_TRUE(Eventually([&] { return one.ask().code() == Code::kUnavailable; })) << one.name;
  }
  // The age of 2 s after the last certificate has expired, 4 s from here; and 14 s for a machine that is busy: each
  // client is asked until its new handshake has failed.
  EXPECT_LT(SecondsSince(start), 20);
}

TEST_F(Certificates, AStreamOfAClientEndsAtTheAge) {
  Serve("bigfleet://provider/p");
  TlsFiles own = Files("client", "URI:bigfleet://readonly");
  own.connection_age = 2s;
  const auto channel = *rpc::MakeAgingChannel({.target = target(), .tls = own});
  const SteadyTime start = Start();
  RawStream watch(channel, kWatchHealth);
  watch.Write("");
  watch.Close();
  EXPECT_TRUE(watch.Read());
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_LT(SecondsSince(start), 2);
  EXPECT_TRUE(RawCall(channel, kCheckHealth, "").ok()) << "the next call has a connection of its own";
}

// A program with one method that `reader` may call and `wrong` may not.
struct ServerCase {
  std::string name;
  std::vector<std::string> command;
  std::string identity;
  const char* method;
  std::string wrong;
};

class ServerCertificates : public Certificates {
 protected:
  struct Running {
    ServerCase one;
    TlsFiles tls;
    std::unique_ptr<smoke::Server> server;
    std::unique_ptr<RawStream> watch;
  };

  // With certificates that are looked at again after a second.
  Running Run(const ServerCase& one) {
    Running running{.one = one, .tls = Files(one.name, Alternatives(one.identity)), .server = {}, .watch = {}};
    running.tls.crl = crl_;
    std::vector<std::string> words = {smoke::ProgramUnderTest()};
    words.insert(words.end(), one.command.begin(), one.command.end());
    words.insert(words.end(), {"--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--tls-cert",
                               running.tls.cert, "--tls-key", running.tls.key, "--tls-ca", running.tls.ca, "--tls-crl",
                               crl_, "--connection-age", "1s"});
    running.server = std::make_unique<smoke::Server>(words);
    EXPECT_NE(running.server->grpc(), "") << one.name << ": " << running.server->process().err();
    return running;
  }
  std::vector<Running> RunAll() {
    ca_.WriteRevoked(crl_, {});
    const auto data = [this](const char* name) { return dir_.File(name); };
    std::vector<Running> all;
    std::vector<std::string> provider = fleet_.ProviderCommand();
    std::vector<std::string> shard = fleet_.ShardCommand("127.0.0.1:1");
    for (std::vector<std::string>* words : {&provider, &shard}) {  // without the program and its addresses
      words->erase(words->begin());
      words->erase(words->begin() + 1, words->begin() + 5);
    }
    for (const ServerCase& one : std::vector<ServerCase>{
             {"provider", provider, "bigfleet://provider/p", "/bigfleet.v1alpha1.CapacityProvider/List",
              "bigfleet://cluster/blue"},
             {"shard", shard, "bigfleet://shard/s-1", "/muster.v1.Fleet/ListMachines", "muster://node/blue/n-1"},
             {"scheduler",
              {"scheduler", "--cluster", "blue", "--store", "memory:"},
              "muster://scheduler/blue",
              "/muster.v1.Cluster/GetSummary",
              "muster://node/blue/n-1"},
             {"agent",
              {"agent", "--cluster", "blue", "--node-id", "n-1", "--data-dir", data("agent")},
              "muster://node/blue/n-1",
              "/muster.v1.Agent/List",
              "bigfleet://cluster/blue"},
             {"operator",
              {"operator", "--cluster", "blue", "--scheduler", "127.0.0.1:1", "--shard-addr", "127.0.0.1:1"},
              "bigfleet://cluster/blue",
              "/muster.v1.Cluster/GetSummary",  // it serves none; who may not call does not learn that
              "muster://node/blue/n-1"},
         }) {
      all.push_back(Run(one));
    }
    return all;
  }
  std::shared_ptr<grpc::Channel> ChannelTo(const Running& running, const TlsFiles& tls) {
    return *rpc::MakeChannel({.target = running.server->grpc(), .tls = tls, .own_connection = true});
  }
  grpc::StatusCode Call(const Running& running, const TlsFiles& tls, const char* method) {
    return RawCall(ChannelTo(running, tls), method, "").error_code();
  }

  const std::string crl_ = dir_.File("crl.pem");
  const shard::Fleet fleet_{1};
};

TEST_F(ServerCertificates, NoServerTakesOneThatDoesNotHoldNorKeepsOneThatStops) {
  using grpc::StatusCode;
  std::vector<Running> all = RunAll();
  const TlsFiles reader = Files("reader", "URI:bigfleet://readonly");
  const TlsFiles expired = Files("expired", "URI:bigfleet://readonly", -60);
  TlsFiles strange = stranger_.Write(dir_.path(), "strange", stranger_.Sign("URI:bigfleet://readonly"));
  std::filesystem::copy_file(reader.ca, strange.ca, std::filesystem::copy_options::overwrite_existing);
  const rpc::CertificateForTest to_revoke = ca_.Sign("URI:bigfleet://readonly");
  const TlsFiles revoked = ca_.Write(dir_.path(), "revoked", to_revoke);
  std::map<std::string, std::shared_ptr<grpc::Channel>> soon_revoked;
  for (const Running& running : all) {
    const std::string& name = running.one.name;
    EXPECT_EQ(Call(running, reader, kCheckHealth), StatusCode::OK) << name;
    EXPECT_NE(Call(running, reader, running.one.method), StatusCode::PERMISSION_DENIED) << name;
    EXPECT_EQ(Call(running, Files("wrong-" + name, "URI:" + running.one.wrong), running.one.method),
              StatusCode::PERMISSION_DENIED)
        << name << ": the wrong kind";
    EXPECT_EQ(Call(running, Files("none", "DNS:x"), running.one.method), StatusCode::PERMISSION_DENIED)
        << name << ": no identity";
    EXPECT_EQ(Call(running, expired, kCheckHealth), StatusCode::UNAVAILABLE) << name << ": expired";
    EXPECT_EQ(Call(running, strange, kCheckHealth), StatusCode::UNAVAILABLE) << name << ": of another CA";
    soon_revoked[name] = ChannelTo(running, revoked);
    EXPECT_EQ(RawCall(soon_revoked[name], kCheckHealth, "").error_code(), StatusCode::OK) << name << ": not revoked";
  }
  // Connections that are open when their certificate ends: the call is refused, or the next connection.
  constexpr int kBriefSeconds = 6;
  const auto refused = [](const std::shared_ptr<grpc::Channel>& channel) {
    const StatusCode code = RawCall(channel, kCheckHealth, "").error_code();
    return code == StatusCode::PERMISSION_DENIED || code == StatusCode::UNAVAILABLE;
  };
  const TlsFiles brief = Files("brief", "URI:bigfleet://readonly", kBriefSeconds);
  const SteadyTime signed_at = Start();
  std::map<std::string, std::shared_ptr<grpc::Channel>> soon_expired;
  for (const Running& running : all) {
    soon_expired[running.one.name] = ChannelTo(running, brief);
    EXPECT_EQ(RawCall(soon_expired[running.one.name], kCheckHealth, "").error_code(), StatusCode::OK)
        << running.one.name << ": not expired";
  }
  for (const auto& [name, channel] : soon_expired) {
    EXPECT_TRUE(Eventually([&] { return refused(channel); })) << name << ": expired on an open connection";
  }
  EXPECT_LT(SecondsSince(signed_at), kBriefSeconds + 5) << "the age of 1 s, and 4 s for a machine that is busy";
  ca_.WriteRevoked(crl_, {to_revoke});
  for (const auto& [name, channel] : soon_revoked) {
    EXPECT_TRUE(Eventually([&] { return refused(channel); })) << name << ": revoked on an open connection";
  }
  for (const Running& running : all) {
    EXPECT_TRUE(Eventually([&] { return Call(running, revoked, kCheckHealth) == StatusCode::PERMISSION_DENIED; }))
        << running.one.name << ": revoked";
    EXPECT_EQ(Call(running, reader, kCheckHealth), StatusCode::OK) << running.one.name << ": another's is revoked";
  }
  // The servers no longer have the CA of their callers. A stream that is open ends at the age and its grace.
  for (Running& running : all) {
    running.watch = std::make_unique<RawStream>(ChannelTo(running, reader), kWatchHealth);
    running.watch->Write("");
    EXPECT_TRUE(running.watch->Read()) << running.one.name;
    const TlsFiles another = stranger_.Write(dir_.path(), "another", stranger_.Sign("URI:bigfleet://admin"));
    std::filesystem::rename(another.ca, running.tls.ca);
  }
  const SteadyTime start = Start();
  for (Running& running : all) EXPECT_FALSE(running.watch->Finish().ok()) << running.one.name;
  EXPECT_LT(SecondsSince(start), 8);
  for (const Running& running : all) {
    EXPECT_TRUE(Eventually([&] { return Call(running, reader, kCheckHealth) == StatusCode::UNAVAILABLE; }))
        << running.one.name << ": its CA is gone";
    EXPECT_FALSE(running.server->process().Ended()) << running.server->process().err();
  }
}

}  // namespace
}  // namespace muster::guard
