// Every field of every persys message that is read makes a difference to what is read, or is listed here with the
// reason why not.
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/codec.h"
#include "persys/agent/v1/agent.pb.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/control_conversion.h"
#include "rpc/field_walk_for_test.h"
#include "rpc/persys_agent_conversion.h"

namespace muster::rpc {
namespace {

namespace agent = persys::agent::v1;
namespace control = persys::control::v1;
using google::protobuf::Message;

struct Reader {
  std::vector<std::unique_ptr<Message>> samples;
  Read read;
};

template <class Wire, class Fn>
Reader MakeReader(const std::vector<std::string>& samples, Fn fn) {
  Reader reader;
  for (const std::string& text : samples) {
    auto sample = std::make_unique<Wire>();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, sample.get())) << text;
    reader.samples.push_back(std::move(sample));
  }
  reader.read = [fn](const Message& sent) -> std::optional<std::string> {
    Wire wire = dynamic_cast<const Wire&>(sent);
    const auto value = fn(wire);
    return value ? std::optional(codec::ToBytes(*value)) : std::nullopt;
  };
  return reader;
}
template <class Wire>
Reader Request(const std::vector<std::string>& samples) {
  return MakeReader<Wire>(samples, [](Wire& wire) { return FromWire(wire); });
}
template <class Wire>
Reader Reply(const std::string& sample) {
  return MakeReader<Wire>({sample}, [](Wire& wire) { return TakeReply(wire); });
}

const std::string kVolumes = R"(volumes { host_path: "/a" container_path: "/b" }
                                managed_volumes { name: "v" mount_path: "/m" })";

std::vector<Reader> Readers() {
  std::vector<Reader> readers;
  readers.push_back(Request<agent::ApplyWorkloadRequest>(
      {R"(id: "w" spec { container { image: "i" ports { host_port: 9 } resources {} restart_policy {} )" + kVolumes +
           "} }",
       R"(id: "w" spec { compose { compose_yaml: "a: b" } })",
       R"(id: "w" spec { vm { disks {} networks {} cloud_init_config {} managed_volumes {} } })"}));
  readers.push_back(Request<agent::DeleteWorkloadRequest>({R"(id: "w")"}));
  readers.push_back(Request<agent::GetWorkloadStatusRequest>({R"(id: "w")"}));
  readers.push_back(Request<agent::ListWorkloadsRequest>({""}));
  readers.push_back(Reply<agent::ApplyWorkloadResponse>("status { usage {} }"));
  readers.push_back(Reply<agent::DeleteWorkloadResponse>(""));
  readers.push_back(Reply<agent::GetWorkloadStatusResponse>("status { usage {} }"));
  readers.push_back(Reply<agent::ListWorkloadsResponse>("workloads { usage {} }"));

  readers.push_back(Request<control::RegisterNodeRequest>(
      {R"(node_id: "n" grpc_endpoint: "h:1" capabilities { storage_pools {} } timestamp {})"}));
  readers.push_back(Request<control::HeartbeatRequest>(
      {R"(node_id: "n" usage {} timestamp {} workload_statuses { workload_id: "w" last_transition {}
          reason { last_transition {} next_retry_at {} } usage { collected_at {} } })",
       R"(node_id: "n" workload_statuses { workload_id: "w" }
          workload_usage { workload_id: "w" collected_at {} })"}));
  readers.push_back(Request<control::ApplyWorkloadRequest>(
      {R"(workload_id: "w" spec { resources {} container { image: "i" ports { host_port: 9 } )" + kVolumes + "} }",
       R"(workload_id: "w" spec { compose { inline_yaml: "a: b" } })",
       R"(workload_id: "w" spec { vm { disks {} networks {} cloud_init {} managed_volumes {} } })",
       R"(workload_id: "w" spec { type: "vm" metadata { key: "persys.vm_spec_b64" value: "e30=" } })"}));
  readers.push_back(Request<control::DeleteWorkloadRequest>({R"(workload_id: "w")"}));
  readers.push_back(Request<control::RetryWorkloadRequest>({R"(workload_id: "w")"}));
  readers.push_back(Request<control::ListNodesRequest>({""}));
  readers.push_back(Request<control::GetNodeRequest>({R"(node_id: "n")"}));
  readers.push_back(Request<control::ListWorkloadsRequest>({""}));
  readers.push_back(Request<control::GetWorkloadRequest>({R"(workload_id: "w")"}));
  readers.push_back(Request<control::GetClusterSummaryRequest>({""}));
  const std::string suggestion = R"(suggestion { target_workload: "w" suggested_at {} action_type: AUTOMATION_ACTION_)";
  readers.push_back(Request<control::SubmitAutomationSuggestionRequest>(
      {suggestion + R"(SET_DESIRED_STATE desired_state: "Stopped" })", suggestion + "RETRY_WORKLOAD }",
       suggestion + "DELETE_WORKLOAD }", suggestion + "SCALE_REPLICAS desired_replicas: 2 }"}));
  return readers;
}

// What fields take besides names, numbers and paths.
const FieldWords kWords = {{"protocol", "udp"},
                           {"policy", "no"},
                           {"restart_policy", "no"},
                           {"grpc_endpoint", "h:7"},
                           {"supported_workload_types", "vm"},
                           {"type", "vm"},
                           {"state", "running"},
                           {"desired_state", "Stopped"},
                           {"container_path", "/7"},
                           {"host_path", "/7"},
                           {"mount_path", "/7"}};

// Fields that make no difference, by the reason.
const std::map<std::string, std::map<std::string, std::set<std::string>>> kIgnored = {
    {"what is around it says so already",
     {{"persys.agent.v1.ApplyWorkloadRequest", {"type", "spec.compose.project_name"}},
      {"persys.agent.v1.ApplyWorkloadResponse", {"status.usage.type", "status.usage.workload_id"}},
      {"persys.agent.v1.GetWorkloadStatusResponse", {"status.usage.type", "status.usage.workload_id"}},
      {"persys.agent.v1.ListWorkloadsResponse", {"workloads.usage.type", "workloads.usage.workload_id"}},
      {"persys.control.v1.HeartbeatRequest",
       {"workload_statuses.usage.type", "workload_statuses.usage.workload_id", "workload_usage.type"}}}},
    {"the scheduler goes by its own clock, accounts and retries",
     {{"persys.control.v1.RegisterNodeRequest", {"timestamp.seconds", "timestamp.nanos"}},
      {"persys.control.v1.HeartbeatRequest",
       {"timestamp.seconds", "timestamp.nanos", "usage.cpu_allocated_millicores", "usage.disk_allocated_gb",
        "usage.memory_allocated_mb", "workload_statuses.reason.code",
        "workload_statuses.reason.last_transition.seconds", "workload_statuses.reason.last_transition.nanos",
        "workload_statuses.reason.next_retry_at.seconds", "workload_statuses.reason.next_retry_at.nanos",
        "workload_statuses.reason.retryable"}}}},
    {"the service reads it",
     {{"persys.agent.v1.ListWorkloadsRequest", {"type"}},
      {"persys.control.v1.SubmitAutomationSuggestionRequest",
       {"suggestion.desired_replicas", "suggestion.replica_delta", "suggestion.reason"}}}},
    {"it says who suggests it, and nothing depends on that",
     {{"persys.control.v1.SubmitAutomationSuggestionRequest",
       {"suggestion.policy_id", "suggestion.policy_name", "suggestion.suggested_at.seconds",
        "suggestion.suggested_at.nanos", "suggestion.suggestion_id"}}}},
    {"a template has no room for it, and it is dropped",
     {{"persys.agent.v1.ApplyWorkloadRequest",
       {"spec.container.resources.memory_swap_bytes", "spec.container.restart_policy.max_retry_count"}},
      {"persys.control.v1.RegisterNodeRequest", {"capabilities.storage_pools.name", "capabilities.storage_pools.type"}},
      {"persys.control.v1.ApplyWorkloadRequest",
       {"spec.container.privileged", "spec.vm.disks.mount_point", "spec.vm.disks.pool_name",
        "spec.vm.networks.dhcp"}}}},
    {"another value than none is refused: git is not supported",
     {{"persys.control.v1.ApplyWorkloadRequest",
       {"spec.compose.git_ref", "spec.compose.git_repo", "spec.compose.source_type"}}}},
};

// Messages of the two services that are not walked.
const std::map<std::string, std::set<std::string>> kNotWalked = {
    {"each part is a request that is walked by itself; parts for nodes are only written",
     {"persys.control.v1.ControlMessage"}},
    {"the service answers by itself: agent_services.cc",
     {"persys.agent.v1.HealthCheckRequest", "persys.agent.v1.ListActionsRequest"}},
    {"conformance of agents reads them by hand: agent_probe.cc",
     {"persys.agent.v1.HealthCheckResponse", "persys.agent.v1.ListActionsResponse"}},
};

TEST(PersysFields, EveryFieldIsReadOrListed) {
  std::map<std::string, std::set<std::string>> ignored;
  for (const auto& [why, messages] : kIgnored) {
    for (const auto& [message, fields] : messages) ignored[message].insert(fields.begin(), fields.end());
  }
  for (const Reader& reader : Readers()) {
    const std::string& name = reader.samples.front()->GetDescriptor()->full_name();
    EXPECT_EQ(UnreadFields(reader.samples, reader.read, kWords), ignored[name]) << name;
    ignored.erase(name);
  }
  EXPECT_TRUE(ignored.empty()) << "of messages that are not walked: " << ignored.begin()->first;
}

// A scheduler reads requests of control and replies of agents, an agent reads requests.
TEST(PersysFields, EveryMessageThatIsReadIsWalkedOrListed) {
  std::set<std::string> known;
  for (const Reader& reader : Readers()) known.insert(reader.samples.front()->GetDescriptor()->full_name());
  for (const auto& [why, messages] : kNotWalked) known.insert(messages.begin(), messages.end());
  std::set<std::string> read;
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  const auto* agents = pool.FindServiceByName("persys.agent.v1.AgentService");
  const auto* controls = pool.FindServiceByName("persys.control.v1.AgentControl");
  for (int i = 0; i < agents->method_count(); ++i) {
    read.insert(agents->method(i)->input_type()->full_name());
    read.insert(agents->method(i)->output_type()->full_name());
  }
  for (int i = 0; i < controls->method_count(); ++i) read.insert(controls->method(i)->input_type()->full_name());
  EXPECT_EQ(known, read);
}

// Before it is kept anywhere: an answer may have megabytes of it.
TEST(PersysReplies, TextsOfAnAgentAreShortened) {
  const std::string text(100'000, 'x');
  const std::string kept = std::string(4'096, 'x') + " ... (100000 bytes)";
  agent::ApplyWorkloadResponse applied;
  applied.set_message(text);
  (*applied.mutable_status()->mutable_metadata())["failure_message"] = text;
  EXPECT_EQ(TakeReply(applied)->message, kept);
  applied.set_message(text);
  (*applied.mutable_status()->mutable_metadata())["failure_message"] = text;
  const auto status = TakeReply(applied)->status;
  EXPECT_EQ(status.message, kept);
  EXPECT_EQ(status.metadata.at("failure_message"), kept);
  agent::DeleteWorkloadResponse deleted;
  deleted.set_message(text);
  EXPECT_EQ(TakeReply(deleted)->message, kept);
  agent::GetWorkloadStatusResponse asked;
  asked.mutable_status()->set_message(text);
  EXPECT_EQ(TakeReply(asked)->message, kept);
}

// The walk itself: a conversion that does not read a field, and the walk names it.
TEST(PersysFields, AFieldThatIsNotReadIsFound) {
  const Reader reader = MakeReader<agent::DeleteWorkloadResponse>({""}, [](agent::DeleteWorkloadResponse& wire) {
    wire.clear_message();
    return TakeReply(wire);
  });
  EXPECT_EQ(UnreadFields(reader.samples, reader.read, {}), std::set<std::string>{"message"});
}

}  // namespace
}  // namespace muster::rpc
