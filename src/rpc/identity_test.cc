#include "rpc/identity.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::rpc {
namespace {

using Uris = std::vector<std::string>;

TEST(Identity, SevenFormsAndNothingElse) {
  for (const std::string uri :
       {"bigfleet://cluster/c-1", "bigfleet://shard/shard-0", "bigfleet://readonly", "bigfleet://admin",
        "bigfleet://shard/a/b", "muster://scheduler/c", "muster://node/c/n-1", "muster://tenant/t",
        "bigfleet://provider/p", "bigfleet://coordinator/1", "muster://join/c"}) {
    const auto identity = ParseIdentity(uri);
    ASSERT_TRUE(identity.has_value()) << uri;
    EXPECT_EQ(identity->ToString(), uri);
  }
  for (const std::string uri : {"", "bigfleet://", "bigfleet://cluster/", "bigfleet://shard", "bigfleet://admin/",
                                "bigfleet://Admin", "https://admin", "bigfleet://operator/x", "muster://node/n",
                                "muster://node/c/", "muster://node//n", "muster://admin", "muster://join/"}) {
    EXPECT_EQ(ParseIdentity(uri).error().code(), Code::kInvalidArgument) << uri;
  }
  EXPECT_EQ(ParseIdentity("bigfleet://x\n").error().message(),
            "\"bigfleet://x\\n\" is no identity: use bigfleet://cluster/<id>, bigfleet://shard/<id>, "
            "bigfleet://provider/<name>, bigfleet://coordinator/<id>, bigfleet://readonly, bigfleet://admin, "
            "muster://scheduler/<cluster>, muster://node/<cluster>/<id>, muster://tenant/<tenant> or "
            "muster://join/<cluster>");
}

TEST(Identity, ACertificateHasExactlyOne) {
  EXPECT_EQ(IdentityOf(Uris{"spiffe://other/x", "bigfleet://shard/s"}),
            (Identity{.kind = Identity::Kind::kShard, .id = "s"}));
  EXPECT_EQ(IdentityOf(Uris{}).error(),
            Status(Code::kPermissionDenied,
                   "the caller's certificate has 0 bigfleet:// or muster:// URIs; it must have exactly one"));
  EXPECT_EQ(IdentityOf(Uris{"bigfleet://admin", "bigfleet://readonly"}).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(IdentityOf(Uris{"bigfleet://root"}).error().code(), Code::kPermissionDenied);
}

TEST(Identity, AServerIsOfTheKindThatIsMeantOrHasNoUri) {
  using enum Identity::Kind;
  const ExpectedServer providers = {.kinds = {kProvider}};
  EXPECT_EQ(CheckServer(Uris{"bigfleet://provider/p"}, providers), Status());
  EXPECT_EQ(CheckServer(Uris{}, providers), Status());
  EXPECT_EQ(CheckServer(Uris{"spiffe://other/x"}, providers), Status());
  EXPECT_EQ(CheckServer(Uris{"bigfleet://cluster/c"}, providers).code(), Code::kPermissionDenied);
  EXPECT_EQ(CheckServer(Uris{"bigfleet://provider/p", "bigfleet://admin"}, providers).code(), Code::kPermissionDenied);
  EXPECT_EQ(CheckServer(Uris{"bigfleet://provider"}, providers).code(), Code::kPermissionDenied);
  EXPECT_EQ(CheckServer(Uris{"bigfleet://cluster/c"}, {}), Status()) << "anybody";
}

TEST(Identity, AServerThatIsNoneOfOursHasNoIdentity) {
  const ExpectedServer etcd = {.foreign = true};
  EXPECT_EQ(CheckServer(Uris{}, etcd), Status());
  EXPECT_EQ(CheckServer(Uris{"spiffe://other/x"}, etcd), Status());
  EXPECT_EQ(CheckServer(Uris{"muster://node/blue/n-1"}, etcd),
            Status(Code::kPermissionDenied,
                   "\"muster://node/blue/n-1\" is not who this address must be, which has no such identity; check the "
                   "address and the server's certificate"));
}

TEST(Identity, AServerIsOfTheClusterThatIsMeant) {
  using enum Identity::Kind;
  const ExpectedServer blue = {.kinds = {kScheduler, kCluster}, .cluster = "blue"};
  EXPECT_EQ(CheckServer(Uris{"muster://scheduler/blue"}, blue), Status());
  EXPECT_EQ(CheckServer(Uris{"bigfleet://cluster/blue"}, blue), Status());
  EXPECT_EQ(CheckServer(Uris{}, blue), Status()) << "a plain server's, of any make";
  EXPECT_EQ(CheckServer(Uris{"muster://scheduler/green"}, blue),
            Status(Code::kPermissionDenied,
                   "\"muster://scheduler/green\" is not of cluster \"blue\"; check the address and the server's "
                   "certificate"));
  EXPECT_EQ(CheckServer(Uris{"bigfleet://cluster/green"}, blue).code(), Code::kPermissionDenied);
  EXPECT_EQ(CheckServer(Uris{"muster://scheduler/green"}, {.kinds = {kScheduler}}), Status()) << "any cluster";
  EXPECT_EQ(CheckServer(Uris{"bigfleet://shard/s"}, {.kinds = {kShard}, .cluster = "blue"}), Status())
      << "a shard is of no one cluster";
}

TEST(Identity, AServerIsTheNodeThatIsMeant) {
  const ExpectedServer node = {.kinds = {Identity::Kind::kNode}, .cluster = "blue", .node = "n-1"};
  EXPECT_EQ(CheckServer(Uris{"muster://node/blue/n-1"}, node), Status());
  EXPECT_EQ(CheckServer(Uris{"muster://node/blue/n-2"}, node),
            Status(Code::kPermissionDenied,
                   "\"muster://node/blue/n-2\" is not node \"n-1\"; check the address and the server's certificate"));
  EXPECT_EQ(CheckServer(Uris{"muster://node/green/n-1"}, node).code(), Code::kPermissionDenied);
  EXPECT_EQ(CheckServer(Uris{"muster://scheduler/blue"}, node).code(), Code::kPermissionDenied);
  EXPECT_EQ(CheckServer(Uris{}, node), Status()) << "an agent of another make";
  EXPECT_EQ(CheckServer(Uris{"muster://node/green/n-2"}, {.kinds = {Identity::Kind::kNode}}), Status());
}

TEST(Identity, AnOrderIsWhatOperatorsMayAndReadersMayNot) {
  EXPECT_TRUE(IsOrder("/muster.v1.Fleet/SetActuation", std::nullopt));
  EXPECT_TRUE(IsOrder("/muster.v1.Cluster/DrainNode", std::nullopt));
  EXPECT_FALSE(IsOrder("/muster.v1.Fleet/ListMachines", std::nullopt));
  EXPECT_FALSE(IsOrder("/bigfleet.v1alpha1.Shard/Session", std::nullopt));
  EXPECT_FALSE(IsOrder("/grpc.health.v1.Health/Check", std::nullopt));
  EXPECT_TRUE(IsOrder("/muster.v1.Enrol/CreateToken", Identity{.kind = Identity::Kind::kCluster, .id = "c"}));
  EXPECT_FALSE(IsOrder("/muster.v1.Enrol/Sign", Identity{.kind = Identity::Kind::kJoin, .id = "c"}));
  EXPECT_FALSE(IsOrder("/muster.v1.Agent/Apply", std::nullopt)) << "a scheduler calls it all the time";
  EXPECT_TRUE(IsOrder("/muster.v1.Agent/Apply", Identity{.kind = Identity::Kind::kAdmin, .id = {}}));
  EXPECT_FALSE(IsOrder("/muster.v1.Agent/Apply", Identity{.kind = Identity::Kind::kScheduler, .id = "c"}));
  for (const char* changes : {"/muster.v1.Agent/Apply", "/muster.v1.Agent/Delete", "/muster.v1.Fleet/SetActuation",
                              "/bigfleet.v1alpha1.CapacityProvider/Delete"}) {
    EXPECT_TRUE(IsOrder(changes, std::nullopt, true)) << changes;
  }
  EXPECT_FALSE(IsOrder("/muster.v1.Agent/List", std::nullopt, true));
  EXPECT_FALSE(IsOrder("/bigfleet.v1alpha1.CapacityProvider/Get", std::nullopt, true));
  EXPECT_FALSE(IsOrder("/grpc.health.v1.Health/Check", std::nullopt, true));
}

TEST(Identity, WhoMayCallWhat) {
  struct Row {
    std::string method;
    // c, s, r, a: cluster, shard, readonly, admin; d, n, t, j: scheduler, node, tenant, join token
    std::string callers;
  };
  const std::vector<Row> rows = {
      {"/bigfleet.v1alpha1.CapacityProvider/Create", "s"},
      {"/bigfleet.v1alpha1.CapacityProvider/Configure", "s"},
      {"/bigfleet.v1alpha1.CapacityProvider/Drain", "s"},
      {"/bigfleet.v1alpha1.CapacityProvider/Delete", "s"},
      {"/bigfleet.v1alpha1.CapacityProvider/Get", "sra"},
      {"/bigfleet.v1alpha1.CapacityProvider/List", "sra"},
      {"/bigfleet.v1alpha1.Shard/Session", "c"},
      {"/bigfleet.v1alpha1.ShardRead/InspectNeeds", "ra"},
      {"/bigfleet.v1alpha1.Coordinator/ReportShard", "s"},
      {"/bigfleet.v1alpha1.Coordinator/AssignDomain", "a"},
      {"/bigfleet.v1alpha1.Coordinator/ListShards", "ra"},
      {"/bigfleet.v1alpha1.Coordinator/SnapshotSave", "a"},
      {"/muster.v1.Fleet/InspectNeeds", "ra"},
      {"/muster.v1.Fleet/ListMachines", "ra"},
      {"/muster.v1.Fleet/ListClusters", "ra"},
      {"/muster.v1.Fleet/SetActuation", "a"},
      {"/muster.v1.Fleet/ListForgotten", "ra"},
      {"/muster.v1.Fleet/RecallMachine", "a"},
      {"/muster.v1.Fleet/AcceptLosses", "a"},
      {"/muster.v1.Fleet/DecommissionCluster", "a"},
      {"/persys.control.v1.AgentControl/RegisterNode", "na"},
      {"/persys.control.v1.AgentControl/ControlStream", "na"},
      {"/persys.control.v1.AgentControl/ApplyWorkload", "cat"},
      {"/persys.control.v1.AgentControl/ListNodes", "crat"},
      {"/persys.agent.v1.AgentService/ApplyWorkload", "da"},
      {"/persys.agent.v1.AgentService/ListWorkloads", "dra"},
      {"/muster.v1.Agent/Apply", "da"},
      {"/muster.v1.Agent/Logs", "dra"},
      {"/muster.v1.Cluster/Join", "n"},
      {"/muster.v1.Cluster/Watch", "crat"},
      {"/muster.v1.Cluster/ApplySpec", "cat"},
      {"/muster.v1.Cluster/ScaleSet", "cat"},
      {"/muster.v1.Cluster/DrainNode", "ca"},
      {"/muster.v1.Cluster/ApplyQuota", "a"},
      {"/muster.v1.Enrol/CreateToken", "ca"},
      {"/muster.v1.Enrol/Sign", "nj"},
      {"/grpc.health.v1.Health/Check", "csradntj"},
      {"/bigfleet.v1alpha1.CapacityProvider/Createx", ""},
      {"/bigfleet.v1alpha1.CapacityProvider", ""},
      {"", ""},
  };
  const std::vector<std::pair<char, std::string>> callers = {{'c', "bigfleet://cluster/x"}, {'s', "bigfleet://shard/x"},
                                                             {'r', "bigfleet://readonly"},  {'a', "bigfleet://admin"},
                                                             {'d', "muster://scheduler/x"}, {'n', "muster://node/x/n"},
                                                             {'t', "muster://tenant/x"},    {'j', "muster://join/x"}};
  for (const Row& row : rows) {
    for (const auto& [letter, uri] : callers) {
      const Status status = Authorise(row.method, Uris{uri});
      EXPECT_EQ(status.ok(), row.callers.find(letter) != std::string::npos) << row.method << " " << uri;
      EXPECT_TRUE(status.ok() || status.code() == Code::kPermissionDenied);
    }
  }
  EXPECT_EQ(Authorise("/muster.v1.Fleet/SetActuation", Uris{"bigfleet://readonly"}).message(),
            "\"bigfleet://readonly\" may not call \"/muster.v1.Fleet/SetActuation\"");
  EXPECT_TRUE(Authorise("/grpc.health.v1.Health/Check", Uris{}).ok());  // any certificate of the CA
}

TEST(Identity, ANodeSpeaksForItselfOnly) {
  const Identity node = *ParseIdentity("muster://node/c/n-1");
  EXPECT_TRUE(CheckNode(node, "n-1").ok());
  EXPECT_EQ(CheckNode(node, "n-2"),
            Status(Code::kPermissionDenied, "\"muster://node/c/n-1\" may not speak for node \"n-2\""));
  EXPECT_TRUE(CheckNode(*ParseIdentity("bigfleet://admin"), "n-2").ok());
  EXPECT_TRUE(CheckNode(std::nullopt, "n-2").ok());
}

TEST(Identity, ACertificateOfAnotherClusterIsWorthNothingToAServerThatHasOne) {
  const auto ask = [](const std::string& method, const std::string& uri, std::string_view own) {
    return Authorise(method, Uris{uri}, ForeignNodes::kAllowed, own);
  };
  const std::vector<std::pair<std::string, std::string>> callers = {
      {"/muster.v1.Cluster/ApplySpec", "bigfleet://cluster/"},
      {"/persys.control.v1.AgentControl/ApplyWorkload", "bigfleet://cluster/"},
      {"/muster.v1.Agent/Apply", "muster://scheduler/"},
      {"/muster.v1.Agent/Logs", "muster://scheduler/"},
      {"/muster.v1.Cluster/Join", "muster://node/"},
      {"/persys.control.v1.AgentControl/RegisterNode", "muster://node/"},
      {"/muster.v1.Enrol/Sign", "muster://node/"},
      {"/muster.v1.Enrol/Sign", "muster://join/"},
      {"/muster.v1.Enrol/CreateToken", "bigfleet://cluster/"},
  };
  for (const auto& [method, prefix] : callers) {
    const std::string tail = prefix == "muster://node/" ? "/n-1" : "";
    EXPECT_EQ(ask(method, prefix + "blue" + tail, "blue"), Status()) << method;
    EXPECT_EQ(ask(method, prefix + "red" + tail, ""), Status()) << method << ", a server without a cluster";
    EXPECT_EQ(ask(method, prefix + "red" + tail, "blue").code(), Code::kPermissionDenied) << method;
    EXPECT_EQ(ask(method, prefix + "blue2" + tail, "blue").code(), Code::kPermissionDenied) << method;
    EXPECT_EQ(ask(method, prefix + "blu" + tail, "blue").code(), Code::kPermissionDenied) << method;
  }
  EXPECT_EQ(ask("/muster.v1.Cluster/Join", "muster://node/red/n-1", "blue").message(),
            "\"muster://node/red/n-1\" is of cluster \"red\", and this server of cluster \"blue\"; call the servers of "
            "your own cluster");
  EXPECT_EQ(ask("/muster.v1.Cluster/Join", "muster://node/red/blue", "blue").code(), Code::kPermissionDenied)
      << "the node's id is not its cluster";
  for (const char* none : {"bigfleet://admin", "muster://tenant/red"}) {
    EXPECT_EQ(ask("/muster.v1.Cluster/ApplySpec", none, "blue"), Status()) << none << " is of no one cluster";
  }
  EXPECT_EQ(ask("/persys.control.v1.AgentControl/RegisterNode", "https://other", "blue"), Status()) << "a foreign node";
  EXPECT_EQ(ask("/grpc.health.v1.Health/Check", "bigfleet://cluster/red", "blue"), Status());
}

TEST(Identity, ForeignNodesMayDoWhatNodesOfTheirProtocolDoWhereTheyAreAllowed) {
  const auto may = [](const std::string& method, const Uris& uris) {
    return Authorise(method, uris, ForeignNodes::kAllowed).ok();
  };
  EXPECT_TRUE(may("/persys.control.v1.AgentControl/RegisterNode", {"https://other"}));
  EXPECT_TRUE(may("/persys.control.v1.AgentControl/ControlStream", {}));
  EXPECT_FALSE(may("/persys.control.v1.AgentControl/ApplyWorkload", {}));
  EXPECT_FALSE(may("/muster.v1.Cluster/Join", {}));
  EXPECT_FALSE(may("/persys.control.v1.AgentControl/RegisterNode", {"bigfleet://readonly"}));
  EXPECT_FALSE(Authorise("/persys.control.v1.AgentControl/RegisterNode", Uris{}).ok());
  const Identity node{.kind = Identity::Kind::kForeignNode, .id = "n-1,n-1.example"};
  EXPECT_TRUE(CheckNode(node, "n-1").ok());
  EXPECT_TRUE(CheckNode(node, "n-1.example").ok());
  EXPECT_FALSE(CheckNode(node, "n-1.exam").ok());
  EXPECT_FALSE(CheckNode(node, "n-2").ok());
}

}  // namespace
}  // namespace muster::rpc
