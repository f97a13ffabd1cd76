#include "rpc/control_conversion.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "persys/agent/v1/agent.pb.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/persys_agent_conversion.h"
#include "rpc/persys_spec.h"

namespace muster::rpc {
namespace {

namespace pb = persys::control::v1;
namespace agent = persys::agent::v1;

template <class Wire>
Wire Message(const std::string& text) {
  Wire wire;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &wire)) << text;
  return wire;
}

template <class Wire>
Status Refusal(const std::string& text) {
  const auto read = FromWire(Message<Wire>(text));
  return read ? Status() : read.error();
}

constexpr const char* kNode = R"(node_id: "n" grpc_endpoint: "10.0.0.1:50051"
    capabilities { cpu_total_millicores: 4000 memory_total_mb: 8192 })";

TEST(ControlConversion, ANodeWithItsCapabilities) {
  const auto request = FromWire(Message<pb::RegisterNodeRequest>(
      R"(node_id: "n" grpc_endpoint: ":50051" agent_version: "v1" cluster_id: "c" labels { key: "zone" value: "a" }
         capabilities { cpu_total_millicores: 4000 memory_total_mb: 8192 storage_pools { total_gb: 60 }
           storage_pools { total_gb: 40 } supported_workload_types: "container" supported_workload_types: "vm"
           supported_storage_drivers: "ceph_rbd" })"));
  ASSERT_TRUE(request.has_value()) << request.error().ToString();
  const contract::NodeFacts& facts = request->facts;
  EXPECT_EQ(facts.endpoint, "127.0.0.1:50051");
  EXPECT_EQ(facts.agent_version, "v1");
  EXPECT_EQ(facts.cluster, "c");
  EXPECT_FALSE(facts.native);
  EXPECT_EQ(facts.total.ToString(), "cpu=4 disk=107374182400 memory=8Gi");
  EXPECT_EQ(facts.supported_types, (std::vector{model::WorkloadType::kContainer, model::WorkloadType::kVm}));
  EXPECT_EQ(facts.storage_drivers, (std::vector<std::string>{"local", "ceph-rbd"}));
  EXPECT_EQ(facts.labels.at("zone"), "a");
}

TEST(ControlConversion, AnAgentThatListsNoTypesRunsContainersAndCompose) {
  const auto request = FromWire(Message<pb::RegisterNodeRequest>(kNode));
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->facts.supported_types,
            (std::vector{model::WorkloadType::kContainer, model::WorkloadType::kCompose}));
}

TEST(ControlConversion, BadRequestsNameTheField) {
  using Code::kInvalidArgument;
  const std::vector<std::pair<Status, std::string>> rows = {
      {Refusal<pb::RegisterNodeRequest>(""), "node_id: missing; name the node"},
      {Refusal<pb::RegisterNodeRequest>(R"(node_id: "a/b")"),
       "node_id: \"a/b\" is no id; begin with a letter or digit, then letters, digits, '.', '_' and '-', 253 at most"},
      {Refusal<pb::RegisterNodeRequest>(R"(node_id: "n")"),
       "grpc_endpoint: missing; give host:port at which the agent serves"},
      {Refusal<pb::RegisterNodeRequest>(R"(node_id: "n" grpc_endpoint: "h:70000")"),
       "grpc_endpoint: \"h:70000\" is no host:port with a port from 1 to 65535"},
      {Refusal<pb::RegisterNodeRequest>(
           R"(node_id: "n" grpc_endpoint: "h:1" capabilities { cpu_total_millicores: -1 })"),
       "capabilities.cpu_total_millicores: -1 is negative; use zero or more"},
      {Refusal<pb::RegisterNodeRequest>(
           R"(node_id: "n" grpc_endpoint: "h:1" capabilities { supported_workload_types: "wasm" })"),
       "capabilities.supported_workload_types[0]: \"wasm\" is no type; use container, compose or vm"},
      {Refusal<pb::HeartbeatRequest>(R"(node_id: "n" usage { memory_used_mb: -2 })"),
       "usage.memory_used_mb: -2 is negative; use zero or more"},
      {Refusal<pb::ApplyWorkloadRequest>(R"(spec {})"), "workload_id: missing; name the workload"},
      {Refusal<pb::ApplyWorkloadRequest>(R"(workload_id: "w" spec {})"),
       "spec.type: missing; use container, compose or vm"},
      {Refusal<pb::ApplyWorkloadRequest>(R"(workload_id: "w" spec { type: "vm" container {} })"),
       "spec.vm: missing; a vm needs it"},
      {Refusal<pb::ApplyWorkloadRequest>(R"(workload_id: "w" spec { container {} })"),
       "spec.container.image: missing; name the image"},
      {Refusal<pb::ApplyWorkloadRequest>(
           R"(workload_id: "w" spec { container { image: "i" ports { host_port: 70000 } } })"),
       "spec.container.ports[0].host: 70000 is not from 1 to 65535"},
      {Refusal<pb::ApplyWorkloadRequest>(
           R"(workload_id: "w" spec { container { image: "i" restart_policy: "maybe" } })"),
       "spec.container.restart_policy: unknown restart policy \"maybe\": use one of always, on-failure, never"},
      {Refusal<pb::ApplyWorkloadRequest>(R"(workload_id: "w" spec { compose { source_type: "git" git_repo: "r" } })"),
       "spec.compose.source_type: git is not supported; send the file as inline_yaml"},
      {Refusal<pb::ApplyWorkloadRequest>(
           R"(workload_id: "w" spec { container { image: "i" } metadata { key: "priority" value: "high" } })"),
       "spec.metadata.priority: \"high\" is no whole number"},
      {Refusal<pb::ApplyWorkloadRequest>(
           R"(workload_id: "w" spec { container { image: "i" } metadata { key: "spread.zone" value: "0" } })"),
       "spec.metadata.spread.zone: \"0\" is no skew; use 1 or more"},
      {Refusal<pb::ApplyWorkloadRequest>(R"(workload_id: "w" desired_state: "paused")"),
       "desired_state: unknown desired state \"paused\": use one of Running, Stopped, Deleted"},
  };
  for (const auto& [status, message] : rows) EXPECT_EQ(status.ToString(), Status(kInvalidArgument, message).ToString());
}

TEST(ControlConversion, MetadataSaysWhatTheProtocolHasNoFieldFor) {
  const auto request = FromWire(Message<pb::ApplyWorkloadRequest>(
      R"(workload_id: "w" revision_id: "rev-1" desired_state: "STOP" spec { container { image: "i" }
         resources { cpu_millicores: 250 memory_mb: 64 disk_gb: 1 }
         metadata { key: "label.zone" value: "a" } metadata { key: "tenant" value: "t" }
         metadata { key: "priority" value: "-7" } metadata { key: "spread.host" value: "2" }
         metadata { key: "note" value: "x" } })"));
  ASSERT_TRUE(request.has_value()) << request.error().ToString();
  EXPECT_EQ(request->revision, "rev-1");
  EXPECT_EQ(request->desired, model::DesiredState::kStopped);
  EXPECT_EQ(request->tenant, "t");
  EXPECT_EQ(request->require_labels, (std::map<std::string, std::string>{{"zone", "a"}}));
  EXPECT_EQ(request->spec->priority, -7);
  ASSERT_EQ(request->spec->spread.size(), 1);
  EXPECT_EQ(request->spec->spread[0].spread.topology_key, "host");
  EXPECT_EQ(request->spec->spread[0].spread.max_skew, 2);
  EXPECT_EQ(request->metadata.size(), 5);
  EXPECT_EQ(request->spec->resources.Get("cpu"), 250);
  EXPECT_EQ(request->spec->resources.Get("memory"), (int64_t{64} << 20) * 1000);
}

// From a client's request to the agent's, as other schedulers of the protocol write it.
agent::ApplyWorkloadRequest ToAgent(const std::string& control) {
  const auto request = FromWire(Message<pb::ApplyWorkloadRequest>(control));
  EXPECT_TRUE(request.has_value()) << request.error().ToString();
  contract::ApplyOnAgent apply;
  apply.workload = request->workload;
  apply.revision = request->revision;
  apply.spec = *request->spec;
  agent::ApplyWorkloadRequest wire;
  ToWire(apply, wire);
  return wire;
}

TEST(PersysSpec, AContainerReachesTheAgent) {
  const agent::ApplyWorkloadRequest wire = ToAgent(
      R"(workload_id: "w" revision_id: "r" spec { type: "docker-container" resources { cpu_millicores: 500 memory_mb: 2 }
         container { image: "i" command: "a" command: "b" env { key: "K" value: "v" } restart_policy: "no"
           ports { host_port: 80 container_port: 8080 protocol: "udp" }
           volumes { host_path: "/h" container_path: "/c" read_only: true }
           managed_volumes { name: "data" driver: "nfs" size_gb: 10 mount_path: "/d" retain_policy: "Retain" } } })");
  EXPECT_EQ(wire.type(), agent::WORKLOAD_TYPE_CONTAINER);
  EXPECT_EQ(wire.desired_state(), agent::DESIRED_STATE_RUNNING);
  EXPECT_EQ(wire.revision_id(), "r");
  const agent::ContainerSpec& container = wire.spec().container();
  EXPECT_EQ(container.image(), "i");
  EXPECT_EQ(container.command_size(), 2);
  EXPECT_EQ(container.env().at("K"), "v");
  EXPECT_EQ(container.restart_policy().policy(), "no");
  EXPECT_EQ(container.resources().cpu_shares(), 500);
  EXPECT_EQ(container.resources().memory_bytes(), 2 << 20);
  EXPECT_EQ(container.ports(0).ShortDebugString(), R"(host_port: 80 container_port: 8080 protocol: "udp")");
  EXPECT_EQ(container.volumes(0).ShortDebugString(), R"(host_path: "/h" container_path: "/c" read_only: true)");
  EXPECT_EQ(container.managed_volumes(0).ShortDebugString(),
            R"(name: "data" driver: "nfs" size_gb: 10 mount_path: "/d" retain_policy: "Retain")");
}

TEST(PersysSpec, AManagedVolumeHasAName) {
  for (const std::string name : {".", "..", ".x", "a/b", "a?size_gb=1", "a b"}) {
    EXPECT_TRUE(Refusal<pb::ApplyWorkloadRequest>(
                    R"(workload_id: "w" spec { container { image: "i" managed_volumes { mount_path: "/d" name: ")" +
                    name + R"(" } } })")
                    .message()
                    .starts_with("spec.container.managed_volumes[0].name: "))
        << name;
  }
}

TEST(PersysSpec, ComposeIsSentAsBase64AndReadInBothForms) {
  const agent::ApplyWorkloadRequest wire =
      ToAgent(R"(workload_id: "w" spec { compose { inline_yaml: "services: {}\n" env { key: "K" value: "v" } } })");
  EXPECT_EQ(wire.spec().compose().compose_yaml(), "c2VydmljZXM6IHt9Cg==");
  EXPECT_EQ(wire.spec().compose().project_name(), "w");
  EXPECT_EQ(TemplateFromAgent(wire)->compose, "services: {}\n");
  agent::ApplyWorkloadRequest plain = wire;
  plain.mutable_spec()->mutable_compose()->set_compose_yaml("services: {}\n");
  EXPECT_EQ(TemplateFromAgent(plain)->compose, "services: {}\n");
}

TEST(PersysSpec, AVirtualMachineIsCarriedWhole) {
  const agent::ApplyWorkloadRequest wire = ToAgent(
      R"(workload_id: "w" spec { vm { vcpus: 2 memory_mb: 1024 disks { size_gb: 5 } disks {}
         networks { bridge: "br0" static_ip: "10.0.0.9" } cloud_init { user_data: "u" vendor_data: "v" } } })");
  const agent::VMSpec& vm = wire.spec().vm();
  EXPECT_EQ(vm.name(), "w");
  EXPECT_EQ(vm.vcpus(), 2);
  EXPECT_EQ(
      vm.disks(0).ShortDebugString(),
      R"(path: "/var/lib/libvirt/images/w-vda.qcow2" device: "vda" format: "qcow2" size_gb: 5 type: "disk" boot: true)");
  EXPECT_EQ(vm.disks(1).size_gb(), 20);
  EXPECT_EQ(vm.networks(0).network(), "br0");
  EXPECT_EQ(vm.cloud_init_config().vendor_data(), "v");
  // And the request of the machine is what it is placed by.
  const auto request =
      FromWire(Message<pb::ApplyWorkloadRequest>(R"(workload_id: "w" spec { vm { vcpus: 2 memory_mb: 1024 } })"));
  EXPECT_EQ(request->spec->resources.ToString(), "cpu=2 memory=1Gi");
}

TEST(PersysSpec, AClientsOwnVmSpecOverrides) {
  // {"name":"x","vcpus":3}
  const agent::ApplyWorkloadRequest wire = ToAgent(
      R"(workload_id: "w" spec { type: "vm" metadata { key: "persys.vm_spec_b64" value: "eyJuYW1lIjoieCIsInZjcHVzIjozfQ==" } })");
  EXPECT_EQ(wire.spec().vm().ShortDebugString(), R"(name: "x" vcpus: 3)");
  EXPECT_EQ(Refusal<pb::ApplyWorkloadRequest>(
                R"(workload_id: "w" spec { type: "vm" metadata { key: "persys.vm_spec_b64" value: "?" } })")
                .message(),
            "spec.metadata.persys.vm_spec_b64: is no base64");
}

TEST(ControlConversion, ACommandOverAStream) {
  contract::ApplyOnAgent apply;
  apply.workload = "w";
  apply.revision = "r";
  apply.run = false;
  apply.spec.type = model::WorkloadType::kContainer;
  apply.spec.image = "i";
  pb::ControlMessage wire;
  ToWire(apply, wire);
  EXPECT_EQ(wire.apply().workload_id(), "w");
  EXPECT_EQ(wire.apply().desired_state(), "Stopped");
  EXPECT_EQ(wire.apply().spec().container().image(), "i");
  ToWire(contract::DeleteOnAgent{.workload = "w", .grace = {}, .stamp = {}}, wire);
  EXPECT_EQ(wire.delete_().workload_id(), "w");
}

TEST(ControlConversion, ViewsAsClientsOfTheProtocolKnowThem) {
  contract::WorkloadView view;
  view.workload = "w";
  view.type = model::WorkloadType::kContainer;
  view.phase = model::WorkloadPhase::kRetryPending;
  view.node = "n";
  view.attempts = 2;
  view.max_attempts = 5;
  view.next_retry_at = WallTime(1500ms);
  view.reason = "fit.memory";
  view.message = "memory short by 2Gi";
  pb::GetWorkloadResponse wire;
  ToWire(view, wire);
  EXPECT_EQ(wire.workload().status(), "RetryPending");
  EXPECT_EQ(wire.workload().desired_state(), "Running");
  EXPECT_EQ(wire.workload().failure_reason(), "memory short by 2Gi");
  EXPECT_EQ(wire.workload().reason().code(), "fit.memory");
  EXPECT_EQ(wire.workload().retry_next_at().seconds(), 1);
  EXPECT_EQ(wire.workload().retry_next_at().nanos(), 500'000'000);
  struct Row {
    model::WorkloadPhase phase;
    std::string reason;
    bool failure;
  };
  using enum model::WorkloadPhase;
  for (const Row& row : std::vector<Row>{{kRunning, "agent.running", false},
                                         {kStopped, "agent.stopped", false},
                                         {kCompleted, "agent.completed", false},
                                         {kScheduled, "placed", false},
                                         {kScheduled, "agent.launched", false},
                                         {kScheduled, "failover.moved", false},
                                         {kUpdating, "agent.launched", false},
                                         {kPending, "request.applied", false},
                                         {kRunning, "evicted.drain", false},
                                         {kRunning, "", false},
                                         {kPending, "evicted.left", true},
                                         {kRetryPending, "failover.no_node", true},
                                         {kRunning, "agent.status_error", true},
                                         {kScheduled, "agent.missing", true},
                                         {kPending, "fit.memory", true},
                                         {kPending, "agent.runtime_missing", true},
                                         {kFailed, "retry.exhausted", true},
                                         {kFailed, "", true}}) {
    view.phase = row.phase;
    view.reason = row.reason;
    view.message = "the sentence";
    wire.Clear();
    ToWire(view, wire);
    EXPECT_EQ(wire.workload().failure_reason(), row.failure ? "the sentence" : "") << row.reason;
    EXPECT_EQ(wire.workload().reason().message(), "the sentence") << "the reason is always there";
  }
  contract::NodeRegistered registered{.accepted = true, .reason = {}, .heartbeat_interval = 1200ms};
  pb::RegisterNodeResponse reply;
  ToWire(registered, reply);
  EXPECT_EQ(reply.heartbeat_interval_seconds(), 2);
}

}  // namespace
}  // namespace muster::rpc
