// A machine that is bought gets its certificate by a join token, with all roles under TLS in processes of their own;
// and what a token is worth to a thief.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "contract/cluster.h"
#include "host/parser.h"
#include "host/temp_dir_for_test.h"
#include "host/text_file.h"
#include "rpc/certificates_for_test.h"
#include "rpc/cluster_client.h"
#include "rpc/enrol_client.h"
#include "rpc/node_key.h"
#include "scheduler/life_for_test.h"
#include "shard/fleet.h"

namespace muster::guard {
namespace {

namespace fs = std::filesystem;
using rpc::TlsFiles;
using shard::Eventually;
using Words = std::vector<std::string>;

class Enrol : public ::testing::Test {
 protected:
  Enrol() {
    fs::create_directory(dir_.File("certificates"));
    fs::create_directory(dir_.File("state"));
    join_ca_ = Write("join-ca", ca_.SignCa());
    admin_ = Files("admin", "URI:bigfleet://admin");
  }
  TlsFiles Write(const std::string& name, const rpc::CertificateForTest& made) {
    return ca_.Write(dir_.File("certificates"), name, made);
  }
  TlsFiles Files(const std::string& name, const std::string& alternatives) {
    return Write(name, ca_.Sign(alternatives));
  }
  static Words With(Words words, const TlsFiles& tls, const Words& more = {}) {
    words.insert(words.end(), {"--tls-cert", tls.cert, "--tls-key", tls.key, "--tls-ca", tls.ca});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words SchedulerCommand(const std::string& cluster, const Words& more = {}) {
    Words words = With(scheduler::SchedulerCommand("sqlite:" + State("store-" + cluster), "127.0.0.1:0"),
                       Files("scheduler-" + cluster, "IP:127.0.0.1,URI:muster://scheduler/" + cluster),
                       {"--cluster", cluster, "--join-ca", join_ca_.cert, "--join-ca-key", join_ca_.key});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string State(const std::string& name) const { return dir_.File("state/" + name); }

  Result<contract::ClusterReply> Ask(const std::string& target, contract::ClusterRequest request,
                                     const TlsFiles& as) const {
    const auto client = rpc::MakeClusterClient(target, as);
    if (!client) return std::unexpected(client.error());
    return shard::Wait<contract::ClusterReply>([&](auto done) { (*client)->Ask(std::move(request), std::move(done)); });
  }
  // The one node of the cluster, if it is Ready.
  std::optional<contract::NodeView> ReadyNode(const std::string& target) const {
    auto reply = Ask(target, contract::ListNodes{}, admin_);
    if (!reply) return std::nullopt;
    const auto& nodes = std::get<contract::NodesListed>(*reply).nodes;
    if (nodes.size() != 1 || nodes[0].status != model::NodeStatus::kReady) return std::nullopt;
    return nodes[0];
  }
  // How many workloads run.
  size_t Running(const std::string& target) const {
    const auto reply = Ask(target, contract::ListWorkloads{}, admin_);
    if (!reply) return 0;
    const auto& all = std::get<contract::WorkloadsListed>(*reply).workloads;
    return static_cast<size_t>(std::ranges::count_if(
        all, [](const contract::WorkloadView& one) { return one.phase == model::WorkloadPhase::kRunning; }));
  }
  void Apply(const std::string& target, const std::string& name) {
    std::ofstream(dir_.File("file.yaml")) << fmt::format(
        "kind: Workload\nname: {}\ntemplate:\n  type: process\n  command: [/bin/sh, -c, 'while :; do sleep 1; "
        "done']\n  resources: {{cpu: 100m}}\n  grace: 1s\n",
        name);
    smoke::Process apply(
        With({smoke::ProgramUnderTest(), "apply", "-f", dir_.File("file.yaml"), "--scheduler", target}, admin_));
    EXPECT_EQ(apply.Wait(), 0) << apply.err();
  }
  // Files of the roles whose text contains the marker.
  std::vector<std::string> FilesWith(const std::string& marker) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(dir_.File("state"))) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      if (bytes.contains(marker)) found.push_back(entry.path().string());
    }
    return found;
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat found = {};
    stat(path.c_str(), &found);
    return found.st_mode & 0777U;
  }
  static std::string SerialIn(const std::string& file) {
    const auto pem = host::ReadTextFile(file);
    if (!pem) return {};
    const auto facts = rpc::ReadCertificate(*pem);
    return facts ? facts->serial : std::string();
  }

  rpc::TokenText Token(const std::string& target) {
    const auto client = rpc::MakeEnrolClient(target, admin_);
    const auto token = shard::Wait<rpc::TokenText>([&](auto done) { (*client)->CreateToken(std::move(done)); });
    EXPECT_TRUE(token.has_value()) << token.error().message();
    return token.value_or(rpc::TokenText());
  }
  // The token as files, as a thief would have them.
  TlsFiles TokenFiles(const rpc::TokenText& token) const {
    const TlsFiles files = {
        .cert = dir_.File("stolen.pem"), .key = dir_.File("stolen.pem"), .ca = dir_.File("stolen-ca.pem")};
    std::ofstream(files.cert) << token.token_pem;
    std::ofstream(files.ca) << token.ca_pem;
    chmod(files.key.c_str(), S_IRUSR | S_IWUSR);
    return files;
  }
  static Status Sign(const std::string& target, const TlsFiles& as, const std::string& node,
                     const std::string& key = rpc::MakeNodeKey()) {
    const auto client = rpc::MakeEnrolClient(target, as);
    if (!client) return client.error();
    const auto made = shard::Wait<rpc::SignedNode>([&](auto done) {
      (*client)->Sign({.node = node, .host = "127.0.0.1", .csr_pem = *rpc::MakeCertificateRequest(key)},
                      std::move(done));
    });
    return made ? Status() : made.error();
  }
  // An agent whose configuration has the token, as a machine gets it.
  Words AgentCommand(const std::string& target, const rpc::TokenText& token) const {
    std::string config = fmt::format("scheduler: {}\ncluster: blue\nrestart-pause: 50ms\n", target);
    const auto block = [&](const std::string& key, const std::string& text) {
      config += key + ": |\n";
      for (const std::string_view line : host::SplitAt(text, '\n')) config += fmt::format("  {}\n", line);
    };
    if (!token.token_pem.empty()) {
      block("join-token", token.token_pem);
      block("join-ca", token.ca_pem);
    }
    std::ofstream(dir_.File("agent.yaml")) << config;
    return {smoke::ProgramUnderTest(),
            "agent",
            "--config",
            dir_.File("agent.yaml"),
            "--listen",
            "127.0.0.1:0",
            "--metrics-addr",
            "127.0.0.1:0",
            "--node-id",
            "n1",
            "--data-dir",
            State("agent")};
  }

  const host::TempDir dir_;
  rpc::CertificateAuthorityForTest ca_;
  TlsFiles join_ca_;
  TlsFiles admin_;
};

TEST_F(Enrol, AMachineThatIsBoughtJoinsWithoutACertificateOfItsOwn) {
  scheduler::SchedulerLife scheduler(SchedulerCommand("blue", {"--node-certificate-life", "15s"}));
  ASSERT_NE(scheduler.grpc(), "") << scheduler.process().err();
  const std::string target = scheduler.grpc();
  std::ofstream(dir_.File("catalogue.yaml")) << "zones: [a]\ntypes:\n  - name: small\n    capacity: on-demand\n"
                                             << "    resources: {cpu: 1, memory: 1Gi}\n    price: 1\n";
  smoke::Server provider(
      With(provider::ProviderCommand(State("provider"), dir_.File("catalogue.yaml"), 1,
                                     {"--backend", "local", "--retire", "--journal", State("provider-journal")},
                                     "127.0.0.1:0"),
           Files("provider", "IP:127.0.0.1,URI:bigfleet://provider/m")));
  ASSERT_NE(provider.grpc(), "") << provider.process().err();
  smoke::Server shard(With({smoke::ProgramUnderTest(), "shard", "--listen", "127.0.0.1:0", "--metrics-addr", ":0",
                            "--data-dir", State("shard"), "--journal", State("shard-journal"), "--provider-addr",
                            provider.grpc(), "--cycle-interval", "200ms"},
                           Files("shard", "IP:127.0.0.1,URI:bigfleet://shard/shard-0")));
  ASSERT_NE(shard.grpc(), "") << shard.process().err();
  smoke::Server cluster(
      With({smoke::ProgramUnderTest(), "operator", "--cluster", "blue", "--listen", "127.0.0.1:0", "--metrics-addr",
            ":0", "--shard-addr", shard.grpc(), "--scheduler", target, "--journal", State("operator-journal")},
           Files("operator", "IP:127.0.0.1,URI:bigfleet://cluster/blue")));
  ASSERT_NE(cluster.grpc(), "") << cluster.process().err();
  const auto drain_pipes = [&] {  // a role that logs must not wait for its reader
    for (smoke::Server* one : {static_cast<smoke::Server*>(&scheduler), &provider, &shard, &cluster}) {
      EXPECT_FALSE(one->process().Ended());
    }
  };

  Apply(target, "web");
  ASSERT_TRUE(Eventually([&] {
    drain_pipes();
    return Running(target) == 1;
  })) << scheduler.process().err()
      << cluster.process().err() << provider.process().err();
  const auto node = ReadyNode(target);
  ASSERT_TRUE(node.has_value());

  // What is left of it: key, certificate and CA of the agent.
  std::vector<std::string> keys;
  Eventually([&] {  // the provider has the bootstrap data until it sees that the agent has joined
    drain_pipes();
    keys = FilesWith("PRIVATE KEY");
    return keys.size() == 1;
  });
  ASSERT_EQ(keys.size(), 1u) << fmt::format("{}", fmt::join(keys, "\n"));
  const fs::path tls = fs::path(keys[0]).parent_path();
  EXPECT_EQ(fs::path(keys[0]).filename().string(), "key.pem");
  EXPECT_EQ(tls.parent_path().filename().string(), "agent");
  EXPECT_EQ(ModeOf(tls), 0700u);
  for (const char* name : {"key.pem", "cert.pem", "ca.pem"}) EXPECT_EQ(ModeOf(tls / name), 0600u) << name;
  EXPECT_FALSE(fs::exists(tls / "join"));
  EXPECT_TRUE(Eventually([&] { return FilesWith("join-token").empty(); })) << "nor is the token anywhere";
  EXPECT_FALSE(FilesWith(node->node).empty()) << "the search finds what is there";

  // The certificate is renewed before it ends, more than once.
  std::string serial = SerialIn(tls / "cert.pem");
  ASSERT_NE(serial, "");
  for (int renewal = 0; renewal < 2; ++renewal) {
    const std::string before = serial;
    ASSERT_TRUE(Eventually([&] {
      drain_pipes();
      serial = SerialIn(tls / "cert.pem");
      return !serial.empty() && serial != before;
    }));
  }
  EXPECT_TRUE(ReadyNode(target).has_value());
  EXPECT_EQ(Running(target), 1u);
  EXPECT_EQ(FilesWith("PRIVATE KEY"), keys) << "the key stays";

  // An agent that dies comes back with what it has.
  const auto pid = [&] {
    std::ifstream file(tls.parent_path() / "agent.status");
    std::string word;
    int number = 0;
    return file >> word >> number && word == "pid" ? number : 0;
  };
  const int first = pid();
  ASSERT_GT(first, 1);
  ASSERT_EQ(kill(first, SIGKILL), 0);
  ASSERT_TRUE(Eventually([&] {
    drain_pipes();
    const auto again = ReadyNode(target);
    return pid() > 1 && pid() != first && again && again->epoch > node->epoch;
  }));
  Apply(target, "second");
  EXPECT_TRUE(Eventually([&] {
    drain_pipes();
    return Running(target) == 2;
  })) << "the scheduler calls the agent, which shows a renewed certificate";

  provider.process().Signal(SIGTERM);  // retires the machine
  EXPECT_EQ(provider.process().Wait(), 0);
}

TEST_F(Enrol, AStolenTokenBuysNothing) {
  smoke::Server blue(SchedulerCommand("blue"));
  ASSERT_NE(blue.grpc(), "") << blue.process().err();
  smoke::Server red(SchedulerCommand("red"));
  ASSERT_NE(red.grpc(), "") << red.process().err();
  const rpc::TokenText token = Token(blue.grpc());
  const TlsFiles thief = TokenFiles(token);
  EXPECT_EQ(Sign(red.grpc(), thief, "n1").code(), Code::kPermissionDenied) << "another cluster's";
  EXPECT_EQ(Ask(blue.grpc(), contract::ListNodes{}, thief).error().code(), Code::kPermissionDenied);
  {
    smoke::Server agent(AgentCommand(blue.grpc(), token));
    ASSERT_NE(agent.grpc(), "") << agent.process().err();
    EXPECT_TRUE(Eventually([&] { return ReadyNode(blue.grpc()).has_value(); }));
    EXPECT_FALSE(agent.process().err().contains("PRIVATE KEY"));
    EXPECT_EQ(Sign(blue.grpc(), thief, "n2").code(), Code::kPermissionDenied);
    EXPECT_EQ(Sign(blue.grpc(), thief, "n1").code(), Code::kPermissionDenied) << "not with another key";
    EXPECT_EQ(Sign(blue.grpc(), TokenFiles(Token(blue.grpc())), "n1").code(), Code::kFailedPrecondition)
        << "another token does not take the place of a node that is there";
    agent.process().Signal(SIGTERM);
    EXPECT_EQ(agent.process().Wait(), 0);
  }
  // Without the token, by what it has.
  const TlsFiles own = {
      .cert = State("agent/tls/cert.pem"), .key = State("agent/tls/key.pem"), .ca = State("agent/tls/ca.pem")};
  {
    smoke::Server agent(AgentCommand(blue.grpc(), {}));
    ASSERT_NE(agent.grpc(), "") << agent.process().err();
    agent.process().Signal(SIGTERM);
    EXPECT_EQ(agent.process().Wait(), 0);
  }
  const std::string key = *host::ReadTextFile(own.key);
  EXPECT_EQ(Sign(blue.grpc(), own, "n1", key), Status()) << "a node renews";
  EXPECT_EQ(Sign(blue.grpc(), own, "n2", key).code(), Code::kPermissionDenied) << "for itself";
  EXPECT_EQ(Sign(blue.grpc(), own, "n1"),
            Status(Code::kPermissionDenied,
                   "csr_pem: a node renews its certificate with the key that it has, and this is another"));
  ASSERT_TRUE(Eventually([&] { return !ReadyNode(blue.grpc()).has_value(); }));
  ASSERT_TRUE(Ask(blue.grpc(), contract::DeleteObject{.kind = contract::ObjectKind::kNode, .name = "n1"}, admin_));
  EXPECT_EQ(Sign(blue.grpc(), own, "n1", key).code(), Code::kPermissionDenied) << "and not once it is deleted";
  blue.process().Signal(SIGTERM);
  EXPECT_EQ(blue.process().Wait(), 0);
  EXPECT_TRUE(blue.process().err().contains("certificate of a node signed"));
  EXPECT_TRUE(blue.process().err().contains("/muster.v1.Enrol/CreateToken")) << "each token is a line";
  EXPECT_FALSE(blue.process().err().contains("PRIVATE KEY"));
}

}  // namespace
}  // namespace muster::guard
