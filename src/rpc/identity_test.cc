#include "rpc/identity.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::rpc {
namespace {

using Uris = std::vector<std::string>;

TEST(Identity, FourFormsAndNothingElse) {
  for (const std::string uri : {"bigfleet://cluster/c-1", "bigfleet://shard/shard-0", "bigfleet://readonly",
                                "bigfleet://admin", "bigfleet://shard/a/b"}) {
    const auto identity = ParseIdentity(uri);
    ASSERT_TRUE(identity.has_value()) << uri;
    EXPECT_EQ(identity->ToString(), uri);
  }
  for (const std::string uri : {"", "bigfleet://", "bigfleet://cluster/", "bigfleet://shard", "bigfleet://admin/",
                                "bigfleet://Admin", "https://admin", "bigfleet://operator/x"}) {
    EXPECT_EQ(ParseIdentity(uri).error().code(), Code::kInvalidArgument) << uri;
  }
  EXPECT_EQ(ParseIdentity("bigfleet://x\n").error().message(),
            "\"bigfleet://x\\n\" is no identity: use bigfleet://cluster/<id>, bigfleet://shard/<id>, "
            "bigfleet://readonly or bigfleet://admin");
}

TEST(Identity, ACertificateHasExactlyOne) {
  EXPECT_EQ(IdentityOf(Uris{"spiffe://other/x", "bigfleet://shard/s"}),
            (Identity{.kind = Identity::Kind::kShard, .id = "s"}));
  EXPECT_EQ(
      IdentityOf(Uris{}).error(),
      Status(Code::kPermissionDenied, "the caller's certificate has 0 bigfleet:// URIs; it must have exactly one"));
  EXPECT_EQ(IdentityOf(Uris{"bigfleet://admin", "bigfleet://readonly"}).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(IdentityOf(Uris{"bigfleet://root"}).error().code(), Code::kPermissionDenied);
}

TEST(Identity, WhoMayCallWhat) {
  struct Row {
    std::string method;
    std::string callers;  // c, s, r, a: cluster, shard, readonly, admin
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
      {"/grpc.health.v1.Health/Check", "csra"},
      {"/bigfleet.v1alpha1.CapacityProvider/Createx", ""},
      {"/bigfleet.v1alpha1.CapacityProvider", ""},
      {"", ""},
  };
  const std::vector<std::pair<char, std::string>> callers = {{'c', "bigfleet://cluster/x"},
                                                             {'s', "bigfleet://shard/x"},
                                                             {'r', "bigfleet://readonly"},
                                                             {'a', "bigfleet://admin"}};
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

}  // namespace
}  // namespace muster::rpc
