// Every field of every message that is converted is carried: from the wire to the contract's type and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/source_dir_for_test.h"
#include "bigfleet/v1alpha1/coordinator.pb.h"
#include "bigfleet/v1alpha1/shard.pb.h"
#include "bigfleet/v1alpha1/shardread.pb.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/fleet.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/cluster_conversion.h"
#include "rpc/coordinator_conversion.h"
#include "rpc/field_walk_for_test.h"
#include "rpc/provider_conversion.h"
#include "rpc/rollup_conversion.h"
#include "rpc/session_conversion.h"
#include "rpc/shard_conversion.h"
#include "rpc/shared_texts.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using google::protobuf::Descriptor;
using google::protobuf::Message;

struct Pair {
  std::vector<std::unique_ptr<Message>> samples;
  RoundTrip trip;
};

// `read` gives the contract's value, or an error; ToWire writes it. Samples are in the text format.
template <class Wire, class Read>
Pair MakePair(const std::vector<std::string>& samples, Read read) {
  Pair pair;
  for (const std::string& text : samples) {
    auto sample = std::make_unique<Wire>();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, sample.get())) << text;
    pair.samples.push_back(std::move(sample));
  }
  pair.trip = [read](const Message& sent) -> std::unique_ptr<Message> {
    Wire wire = OverTheWire(dynamic_cast<const Wire&>(sent));
    const auto value = read(wire);
    if (!value) return nullptr;
    Wire back;
    ToWire(*value, back);
    return std::make_unique<Wire>(OverTheWire(back));
  };
  return pair;
}

template <class Wire>
Pair Request(const std::string& sample) {
  return MakePair<Wire>({sample}, [](Wire& wire) { return FromWire(wire); });
}
template <class Wire>
Pair Reply(const std::string& sample) {
  return MakePair<Wire>({sample}, [](Wire& wire) { return TakeReply(wire); });
}
template <class Wire>
Pair ProviderReply(const std::string& sample) {
  return MakePair<Wire>({sample}, [](Wire& wire) {
    SharedTexts texts;
    return TakeReply(wire, texts);
  });
}
template <class Wire>
Pair View(const std::string& sample) {
  return MakePair<Wire>({sample}, [](Wire& wire) {
    ProfileTable profiles;
    return TakeView(wire, "row", profiles);
  });
}

const std::string kMachine =
    R"(id: "m" state: MACHINE_STATE_CONFIGURED host { provider: "p" ref: "r" } cluster: "c" last_error: "e"
       resources {} allocatable {})";
const std::string kNeed = R"(requirements { key: "k" operator: OPERATOR_IN values: "a" } spread { topology_key: "t" })";
const std::string kNeedView =
    "need {" + kNeed + R"(} unmet_reason: UNMET_REASON_PREEMPTION_EXHAUSTED residual_deficit { resources {
      key: "cpu" value: "1" } } matching_supply {} preemption { capacity_freed {} } same_candidates {})";

const std::string kRequirement = R"(all_of { key: "k" op: OPERATOR_IN values: "a" })";
const std::string kParts = R"(resources {} ports { host: 7 } volumes { source: "/a" target: "/b" } requirements {)" +
                           kRequirement + R"(} tolerations { key: "k" value: "v" }
    spread { topology_key: "t" when: WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE selector {)" +
                           kRequirement + R"(} } colocate { topology_key: "t" selector {)" + kRequirement +
                           R"(} } exclude { topology_key: "t" selector {)" + kRequirement + "} }";
const std::string kTemplate = R"(type: WORKLOAD_TYPE_CONTAINER image: "i")" + kParts;
const std::string kComposeTemplate = R"(type: WORKLOAD_TYPE_COMPOSE compose: "c")" + kParts;
const std::string kStatus = "usage {} stamp {}";
const std::string kApply = R"(workload: "w" spec {)" + kTemplate + "} stamp {}";
const std::string kWorkloadSpec =
    R"(name: "w" max_unavailable {} max_surge {} min_available {} spec {)" + kTemplate + "}";
const std::string kNodeView = "total {} reserved {} used {} available {} taints {}";
const std::string kWorkloadView = "usage {} stamp {} spec {" + kTemplate + "}";

// What schedulers, agents and their clients say.
void AddClusterPairs(std::vector<Pair>& pairs) {
  pairs.push_back(Request<v1::ApplyOnAgent>(kApply));
  pairs.push_back(Request<v1::DeleteOnAgent>(R"(workload: "w" stamp {})"));
  pairs.push_back(Request<v1::GetStatusOnAgent>(R"(workload: "w")"));
  pairs.push_back(Request<v1::ListOnAgent>(""));
  pairs.push_back(Request<v1::LogsRequest>(R"(workload: "w")"));
  pairs.push_back(Reply<v1::AppliedOnAgent>("status {" + kStatus + "}"));
  pairs.push_back(Reply<v1::DeletedOnAgent>(""));
  pairs.push_back(Reply<v1::WorkloadStatus>(kStatus));
  pairs.push_back(Reply<v1::ListedOnAgent>("workloads {" + kStatus + "}"));
  pairs.push_back(Reply<v1::LogChunk>(""));

  pairs.push_back(
      Request<v1::JoinRequest>(R"(facts { node: "n" endpoint: "h:1" total {} taints {} } running {)" + kStatus + "}"));
  pairs.push_back(
      Request<v1::NodeHeartbeat>(R"(node: "n" used {} statuses {)" + kStatus + R"(} usage {} usage_of: "w")"));
  pairs.push_back(MakePair<v1::ApplyWorkloadRequest>(
      {R"(workload: "w" spec {)" + kTemplate + "}", R"(workload: "w" spec {)" + kComposeTemplate + "}"},
      [](v1::ApplyWorkloadRequest& wire) { return FromWire(wire); }));
  pairs.push_back(MakePair<v1::ApplySpecRequest>(
      {"spec {" + kWorkloadSpec + "}", R"(spec { name: "w" spec {)" + kComposeTemplate + "} }"},
      [](v1::ApplySpecRequest& wire) { return FromWire(wire); }));
  pairs.push_back(Request<v1::ApplyQuotaRequest>(R"(quota { tenant: "t" limits {} })"));
  pairs.push_back(Request<v1::DeleteObjectRequest>(R"(name: "w")"));
  pairs.push_back(Request<v1::RetryWorkloadRequest>(R"(workload: "w")"));
  pairs.push_back(Request<v1::ScaleSetRequest>(R"(set: "s")"));
  pairs.push_back(Request<v1::RestartSetRequest>(R"(set: "s")"));
  pairs.push_back(Request<v1::CordonNodeRequest>(R"(node: "n")"));
  pairs.push_back(Request<v1::DrainNodeRequest>(R"(node: "n")"));
  pairs.push_back(Request<v1::AcceptNodeRequest>(R"(node: "n")"));
  pairs.push_back(Request<v1::ReportMachinesRequest>("machines { resources {} taints {} }"));
  pairs.push_back(Request<v1::ListNodesRequest>("selector {} page {}"));
  pairs.push_back(Request<v1::ListWorkloadsRequest>("selector {} page {}"));
  pairs.push_back(Request<v1::GetNodeRequest>(R"(node: "n")"));
  pairs.push_back(Request<v1::GetWorkloadRequest>(R"(workload: "w")"));
  pairs.push_back(Request<v1::ListSetsRequest>("page {}"));
  pairs.push_back(Request<v1::ListQuotasRequest>(""));
  pairs.push_back(Request<v1::ListEventsRequest>(""));
  pairs.push_back(Request<v1::GetSummaryRequest>(""));
  pairs.push_back(Request<v1::ExplainWorkloadRequest>(R"(workload: "w")"));
  pairs.push_back(Request<v1::WatchRequest>(""));

  pairs.push_back(Reply<v1::NodeRegistered>("state { workloads {" + kApply + "} }"));
  pairs.push_back(Reply<v1::HeartbeatAck>(""));
  pairs.push_back(Reply<v1::Applied>(""));
  pairs.push_back(Reply<v1::Done>(""));
  pairs.push_back(Reply<v1::NodesListed>("nodes {" + kNodeView + "}"));
  pairs.push_back(Reply<v1::WorkloadsListed>("workloads {" + kWorkloadView + "}"));
  pairs.push_back(Reply<v1::NodeView>(kNodeView));
  pairs.push_back(Reply<v1::WorkloadView>(kWorkloadView));
  pairs.push_back(Reply<v1::SetsListed>("sets { spec {" + kWorkloadSpec + "} }"));
  pairs.push_back(Reply<v1::QuotasListed>(R"(quotas { quota { tenant: "t" limits {} } used {} })"));
  pairs.push_back(Reply<v1::EventsListed>("events {}"));
  pairs.push_back(Reply<v1::Summary>(""));
  pairs.push_back(Reply<v1::Explanation>("workload {" + kWorkloadView + "} nodes {} events {}"));
  pairs.push_back(MakePair<v1::WatchEvent>(
      {"decision {}", "object { node {" + kNodeView + "} }", "object { workload {" + kWorkloadView + "} }",
       "object { set { spec {" + kWorkloadSpec + "} } }"},
      [](v1::WatchEvent& wire) { return TakeReply(wire); }));
}

// Every message that a function of a *_conversion.h reads and writes whole.
std::vector<Pair> Pairs() {
  std::vector<Pair> pairs;
  pairs.push_back(Request<pb::CreateRequest>(R"(machine_id: "m")"));
  pairs.push_back(Request<pb::ConfigureRequest>(R"(machine_id: "m")"));
  pairs.push_back(Request<pb::DrainRequest>(R"(machine_id: "m")"));
  pairs.push_back(Request<pb::DeleteRequest>(R"(machine_id: "m")"));
  pairs.push_back(Request<pb::MachineRef>(R"(id: "m")"));
  pairs.push_back(Request<pb::ListFilter>(""));
  pairs.push_back(ProviderReply<pb::TransitionAck>("machine {" + kMachine + "}"));
  pairs.push_back(ProviderReply<pb::Machine>(kMachine));
  pairs.push_back(MakePair<pb::MachineList>({"machines {" + kMachine + "}"}, [](pb::MachineList& wire) {
    SharedTexts texts;
    Result<contract::ListReply> reply = TakeReply(wire, texts);
    if (!reply->rejected.empty()) reply = InvalidArgument(reply->rejected.front().reason);
    return reply;
  }));

  pairs.push_back(MakePair<pb::OperatorMessage>(
      {R"(hello { cluster_id: "c" })", R"(rollup { cluster_id: "c" needs {)" + kNeed + "} }",
       R"(bootstrap_response { request_id: "r" })", R"(reclaim_ack { instruction_id: "i" })"},
      [](pb::OperatorMessage& wire) { return TakeOperatorMessage(wire); }));
  pairs.push_back(MakePair<pb::ShardMessage>(
      {"ack {}", R"(bootstrap_request { request_id: "r" requirements { operator: OPERATOR_IN } })",
       R"(reclaim_instruction { instruction_id: "i" })",
       R"(node_state_update { machine_id: "m" state: MACHINE_STATE_IDLE resources {} taints {} })",
       "available_capacity { requirements { operator: OPERATOR_IN } resources {} }"},
      [](pb::ShardMessage& wire) { return TakeShardMessage(wire); }));

  pairs.push_back(Request<pb::ShardReport>(
      "summary {} shortfalls { requirements { operator: OPERATOR_IN } deficit {} } instruction_acks {}"));
  pairs.push_back(
      MakePair<pb::ReportAck>({"instructions { assign_domain {} }", "instructions { unassign_domain {} }",
                               "instructions { reassign_speculative {} }", "instructions { cross_shard_drain {} }",
                               "instructions { transfer_ownership {} }"},
                              [](pb::ReportAck& wire) { return TakeReply(wire); }));

  pairs.push_back(Request<pb::InspectNeedsRequest>(""));
  pairs.push_back(Request<pb::InspectNeedsHeader>(""));
  pairs.push_back(View<pb::NeedView>(kNeedView));
  pairs.push_back(View<v1::NeedView>("view {" + kNeedView + R"(} reason: "phase2.exhausted")"));
  pairs.push_back(Request<v1::ListMachinesRequest>(""));
  pairs.push_back(MakePair<v1::MachineView>({"machine {" + kMachine + "}"},
                                            [](v1::MachineView& wire) { return TakeView(wire, "row"); }));
  pairs.push_back(Request<v1::ListActionsRequest>(""));
  pairs.push_back(Reply<v1::ListActionsResponse>("actions {}"));
  pairs.push_back(Request<v1::ListClustersRequest>(""));
  pairs.push_back(Reply<v1::ListClustersResponse>(
      "clusters { mode: ACTUATION_MODE_ACTIVE last_order {} ceiling {} } last_order {}"));
  pairs.push_back(MakePair<v1::ExplainRequest>({R"(machine_id: "m")", R"(need { cluster_id: "c" fingerprint: "f" })"},
                                               [](v1::ExplainRequest& wire) { return FromWire(wire); }));
  pairs.push_back(Reply<v1::ExplainResponse>(""));
  pairs.push_back(Request<v1::SetActuationRequest>("mode: ACTUATION_MODE_ACTIVE"));
  pairs.push_back(Reply<v1::SetActuationResponse>(""));
  pairs.push_back(Request<v1::RepairMachineRequest>(R"(machine_id: "m")"));
  pairs.push_back(Reply<v1::RepairMachineResponse>(""));
  pairs.push_back(Request<v1::ForgetMachineRequest>(R"(machine_id: "m")"));
  pairs.push_back(Reply<v1::ForgetMachineResponse>(""));
  pairs.push_back(Request<v1::ListForgottenRequest>(""));
  pairs.push_back(Reply<v1::ListForgottenResponse>("orders {}"));
  pairs.push_back(Request<v1::RecallMachineRequest>(R"(machine_id: "m")"));
  pairs.push_back(Reply<v1::RecallMachineResponse>(""));
  pairs.push_back(Request<v1::AcceptLossesRequest>(""));
  pairs.push_back(Reply<v1::AcceptLossesResponse>(""));
  pairs.push_back(Request<v1::DecommissionClusterRequest>(R"(cluster_id: "c")"));
  pairs.push_back(Reply<v1::DecommissionClusterResponse>(""));
  AddClusterPairs(pairs);
  return pairs;
}

// Fields that are not carried, each because it says again what others say.
const std::map<std::string, std::set<std::string>> kNotCarried = {
    // The fingerprint follows from the need, `capped` from counts that the wire has no room for.
    {"bigfleet.v1alpha1.NeedView", {"profile_fingerprint", "matching_supply.capped"}},
    // What the walk tries is no effect and no path, and refused; ApplyOnAgent, which is not judged, shows that both are
    // carried.
    {"muster.v1.ApplyWorkloadRequest", {"spec.tolerations.effect", "spec.volumes.target"}},
    {"muster.v1.ApplySpecRequest", {"spec.spec.tolerations.effect", "spec.spec.volumes.target"}},
    // And the reason of the protocol from ours.
    {"muster.v1.NeedView", {"view.profile_fingerprint", "view.matching_supply.capped", "view.unmet_reason"}},
};

// Messages that no conversion reads, with those that only they have.
const std::map<std::string, std::set<std::string>> kNotConverted = {
    {"a frame of a stream: the service and the client read it, its two parts are converted",
     {"bigfleet.v1alpha1.InspectNeedsResponse", "muster.v1.InspectNeedsResponse", "muster.v1.JoinMessage",
      "muster.v1.JoinReply"}},
    {"texts that go through as they are, by hand: enrol_service.cc, enrol_client.cc, enrol_rpc_test.cc",
     {"muster.v1.CreateTokenRequest", "muster.v1.CreateTokenResponse", "muster.v1.SignRequest",
      "muster.v1.SignResponse"}},
    {"no role of this build calls or serves these methods of Coordinator",
     {"bigfleet.v1alpha1.AssignDomainRequest", "bigfleet.v1alpha1.AssignDomainResponse",
      "bigfleet.v1alpha1.DomainAssignment", "bigfleet.v1alpha1.JoinRaftClusterRequest",
      "bigfleet.v1alpha1.JoinRaftClusterResponse", "bigfleet.v1alpha1.ListDomainAssignmentsRequest",
      "bigfleet.v1alpha1.ListDomainAssignmentsResponse", "bigfleet.v1alpha1.ListShardReportsRequest",
      "bigfleet.v1alpha1.ListShardReportsResponse", "bigfleet.v1alpha1.ListShardsRequest",
      "bigfleet.v1alpha1.ListShardsResponse", "bigfleet.v1alpha1.RemoveShardRequest",
      "bigfleet.v1alpha1.RemoveShardResponse", "bigfleet.v1alpha1.ShardRegistryEntry",
      "bigfleet.v1alpha1.ShardReportSnapshot", "bigfleet.v1alpha1.SnapshotSaveChunk",
      "bigfleet.v1alpha1.SnapshotSaveRequest", "bigfleet.v1alpha1.UnassignDomainRequest",
      "bigfleet.v1alpha1.UnassignDomainResponse"}},
    {"gRPC's own health service reads them",
     {"grpc.health.v1.HealthCheckRequest", "grpc.health.v1.HealthCheckResponse"}},
};

// The message and those within it.
void AddTypes(const Descriptor& type, std::set<std::string>& types) {
  types.insert(type.full_name());
  for (int i = 0; i < type.field_count(); ++i) {
    const auto* field = type.field(i);
    if (field->is_map()) field = field->message_type()->map_value();
    if (field->message_type() != nullptr) AddTypes(*field->message_type(), types);
  }
}

// Every message of the files under proto/ that are compiled into this program, but for those of persys, most of which
// are converted in one direction only (persys_fields_test.cc), and those of etcd, of which the store says what it needs
// (etcd_store.cc).
std::set<std::string> CompiledMessages() {
  std::set<std::string> types;
  const std::filesystem::path root = SourceDir() + "/proto";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".proto") || path.contains("/persys/") || path.contains("/etcd/")) continue;
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
        std::filesystem::relative(entry.path(), root).generic_string());
    for (int i = 0; file != nullptr && i < file->message_type_count(); ++i) {
      types.insert(file->message_type(i)->full_name());
    }
  }
  return types;
}

TEST(CarriedFields, EveryFieldComesBack) {
  for (const Pair& pair : Pairs()) {
    const std::string& name = pair.samples.front()->GetDescriptor()->full_name();
    const auto expected = kNotCarried.find(name);
    EXPECT_EQ(LostFields(pair.samples, pair.trip),
              expected == kNotCarried.end() ? std::set<std::string>() : expected->second)
        << name;
  }
}

TEST(CarriedFields, EveryMessageIsConvertedOrListed) {
  std::set<std::string> known;
  for (const Pair& pair : Pairs()) AddTypes(*pair.samples.front()->GetDescriptor(), known);
  for (const auto& [why, types] : kNotConverted) {
    for (const std::string& type : types) EXPECT_TRUE(known.insert(type).second) << type << " is converted";
  }
  EXPECT_EQ(known, CompiledMessages());
}

// The walk itself: each of these conversions loses a field, and the walk names it.
TEST(CarriedFields, ALostFieldIsFound) {
  const auto lost = [](const Pair& pair) { return LostFields(pair.samples, pair.trip); };
  using Lost = std::set<std::string>;
  EXPECT_EQ(lost(MakePair<v1::ListActionsRequest>({""},
                                                  [](v1::ListActionsRequest& wire) {
                                                    wire.clear_limit();
                                                    return FromWire(wire);
                                                  })),
            Lost{"limit"});
  EXPECT_EQ(lost(MakePair<v1::ListActionsResponse>({"actions {}"},
                                                   [](v1::ListActionsResponse& wire) {
                                                     wire.mutable_actions(0)->clear_need_group();
                                                     return TakeReply(wire);
                                                   })),
            Lost{"actions.need_group"});
  // One value of an enum, and one of a bool whose default in the contract is true.
  EXPECT_EQ(lost(MakePair<v1::SetActuationResponse>({""},
                                                    [](v1::SetActuationResponse& wire) {
                                                      if (wire.previous() == v1::ACTUATION_MODE_PAUSED) wire.Clear();
                                                      return TakeReply(wire);
                                                    })),
            Lost{"previous"});
  EXPECT_EQ(lost(MakePair<v1::ListClustersResponse>(
                {"clusters { mode: ACTUATION_MODE_ACTIVE last_order {} ceiling {} } last_order {}"},
                [](v1::ListClustersResponse& wire) {
                  wire.mutable_clusters(0)->set_session(true);
                  return TakeReply(wire);
                })),
            Lost{"clusters.session"});
  // An alternative that no sample has.
  EXPECT_EQ(lost(MakePair<v1::ExplainRequest>({R"(machine_id: "m")"},
                                              [](v1::ExplainRequest& wire) { return FromWire(wire); })),
            (Lost{"need.cluster_id", "need.fingerprint", "need.group"}));
}

}  // namespace
}  // namespace muster::rpc
