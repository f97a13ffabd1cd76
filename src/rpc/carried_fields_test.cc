// Every field of every message that is converted is carried: from the wire to the contract's type and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/source_dir_for_test.h"
#include "bigfleet/v1alpha1/coordinator.pb.h"
#include "bigfleet/v1alpha1/shard.pb.h"
#include "bigfleet/v1alpha1/shardread.pb.h"
#include "muster/v1/fleet.pb.h"
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
  pairs.push_back(
      Reply<v1::ListClustersResponse>("clusters { mode: ACTUATION_MODE_ACTIVE last_order {} } last_order {}"));
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
  return pairs;
}

// Fields that are not carried, each because it says again what others say.
const std::map<std::string, std::set<std::string>> kNotCarried = {
    // The fingerprint follows from the need, `capped` from counts that the wire has no room for.
    {"bigfleet.v1alpha1.NeedView", {"profile_fingerprint", "matching_supply.capped"}},
    // And the reason of the protocol from ours.
    {"muster.v1.NeedView", {"view.profile_fingerprint", "view.matching_supply.capped", "view.unmet_reason"}},
};

// Messages that no conversion reads, with those that only they have.
const std::map<std::string, std::set<std::string>> kNotConverted = {
    {"a frame of a stream: the service and the client read it, its two parts are converted",
     {"bigfleet.v1alpha1.InspectNeedsResponse", "muster.v1.InspectNeedsResponse"}},
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

// Every message of the files under proto/ that are compiled into this program.
std::set<std::string> CompiledMessages() {
  std::set<std::string> types;
  const std::filesystem::path root = SourceDir() + "/proto";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".proto") continue;
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
  EXPECT_EQ(
      lost(MakePair<v1::ListClustersResponse>({"clusters { mode: ACTUATION_MODE_ACTIVE last_order {} } last_order {}"},
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
