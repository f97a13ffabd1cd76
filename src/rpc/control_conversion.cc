#include "rpc/control_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include "model/names.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/object_id.h"
#include "rpc/persys_spec.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {

namespace pb = persys::control::v1;

namespace {

constexpr std::string_view kNameTheNode = "name the node";
constexpr std::string_view kNameTheWorkload = "name the workload";

void WriteTime(WallTime time, google::protobuf::Timestamp& wire) {
  const int64_t nanos = TimeToWire(time);
  const int64_t seconds = nanos / 1'000'000'000 - (nanos % 1'000'000'000 < 0 ? 1 : 0);
  wire.set_seconds(seconds);
  wire.set_nanos(static_cast<int32_t>(nanos - seconds * 1'000'000'000));
}

WallTime ReadTime(const google::protobuf::Timestamp& wire) {
  constexpr int64_t kMostSeconds = int64_t{1} << 33;  // the year 2242; nanoseconds fit
  const int64_t seconds = std::clamp<int64_t>(wire.seconds(), 0, kMostSeconds);
  return TimeFromWire(seconds * 1'000'000'000 + wire.nanos());
}

template <class Number>
bool ReadNumber(const std::string& text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

// Host and port, split at the last colon; a missing host is this machine.
Result<std::string> Endpoint(const std::string& text) {
  constexpr std::string_view kField = "grpc_endpoint";
  if (text.empty()) return Refuse("", kField, "missing; give host:port at which the agent serves");
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon == std::string::npos || !ReadNumber(text.substr(colon + 1), port) || port == 0) {
    return Refuse("", kField, fmt::format("{} is no host:port with a port from 1 to 65535", model::Quoted(text)));
  }
  return colon == 0 ? "127.0.0.1" + text : text;
}

Result<std::vector<model::WorkloadType>> SupportedTypes(const pb::NodeCapabilities& wire) {
  std::vector<model::WorkloadType> types;
  for (int i = 0; i < wire.supported_workload_types_size(); ++i) {
    const auto type = PersysTypeFromName(wire.supported_workload_types(i));
    if (!type) {
      return Refuse("capabilities", fmt::format("supported_workload_types[{}]", i), type.error().message());
    }
    if (std::ranges::find(types, *type) == types.end()) types.push_back(*type);
  }
  // An agent that lists none is an older one, which runs these.
  if (types.empty()) types = {model::WorkloadType::kContainer, model::WorkloadType::kCompose};
  return types;
}

std::vector<std::string> StorageDrivers(const pb::NodeCapabilities& wire) {
  std::vector<std::string> drivers = {"local"};
  for (const std::string& name : wire.supported_storage_drivers()) {
    const std::string driver = name == "ceph_rbd" ? "ceph-rbd" : name;
    if (std::ranges::find(drivers, driver) == drivers.end()) drivers.push_back(driver);
  }
  return drivers;
}

// A state of a heartbeat, in whichever case and with or without the prefix of the agent's enum.
contract::ActualState ActualFromName(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kPrefix = "actual_state_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  using enum contract::ActualState;
  for (const auto& [spelling, state] : {std::pair<std::string_view, contract::ActualState>{"pending", kPending},
                                        {"running", kRunning},
                                        {"stopped", kStopped},
                                        {"failed", kFailed},
                                        {"missing", kMissing}}) {
    if (name == spelling) return state;
  }
  return kUnknown;
}

contract::WorkloadUsage ReadUsage(const pb::WorkloadUsageSnapshot& wire) {
  const double percent = std::clamp(wire.cpu_percent(), 0.0, 1e9);
  return {.cpu_milli = static_cast<int64_t>(percent * 10),
          .memory_bytes = wire.memory_bytes(),
          .disk_read_bytes = wire.disk_read_bytes(),
          .disk_write_bytes = wire.disk_write_bytes(),
          .net_rx_bytes = wire.net_rx_bytes(),
          .net_tx_bytes = wire.net_tx_bytes(),
          .collected_at = ReadTime(wire.collected_at()),
          .source = wire.source()};
}

void WriteUsage(const contract::WorkloadUsage& usage, const contract::WorkloadView& of,
                pb::WorkloadUsageSnapshot& wire) {
  wire.set_workload_id(of.workload);
  wire.set_type(std::string(model::WorkloadTypeName(of.type)));
  wire.set_cpu_percent(static_cast<double>(usage.cpu_milli) / 10);
  wire.set_memory_bytes(usage.memory_bytes);
  wire.set_disk_read_bytes(usage.disk_read_bytes);
  wire.set_disk_write_bytes(usage.disk_write_bytes);
  wire.set_net_rx_bytes(usage.net_rx_bytes);
  wire.set_net_tx_bytes(usage.net_tx_bytes);
  WriteTime(usage.collected_at, *wire.mutable_collected_at());
  wire.set_source(Readable(usage.source));
}

contract::WorkloadStatus ReadStatus(const pb::WorkloadStatus& wire) {
  contract::WorkloadStatus status;
  status.workload = wire.workload_id();
  status.actual = ActualFromName(wire.state());
  status.message = wire.message().empty() ? wire.reason().message() : wire.message();
  status.updated_at = ReadTime(wire.last_transition());
  if (wire.failure_reason() != pb::FAILURE_REASON_UNSPECIFIED) {
    status.metadata.emplace("failure_reason", pb::FailureReason_Name(wire.failure_reason()));
  }
  if (wire.has_usage()) status.usage = ReadUsage(wire.usage());
  return status;
}

// What the metadata of a spec says beyond the protocol.
Status ReadMetadata(const WireMap& metadata, contract::ApplyWorkload& into) {
  const std::map<std::string, std::string> sorted(metadata.begin(), metadata.end());
  for (const auto& [key, value] : sorted) {
    if (key.starts_with("label.")) {
      into.require_labels[key.substr(6)] = value;
    } else if (key == "tenant") {
      if (Status valid = CheckObjectId(value, "spec.metadata.tenant", "name the tenant"); !valid.ok()) return valid;
      into.tenant = value;
    } else if (key == "priority") {
      if (!ReadNumber(value, into.spec->priority)) {
        return Refuse("spec.metadata", key, fmt::format("{} is no whole number", model::Quoted(value))).error();
      }
    } else if (key.starts_with("spread.")) {
      model::SpreadRule rule;
      rule.spread.topology_key = key.substr(7);
      if (!ReadNumber(value, rule.spread.max_skew) || rule.spread.max_skew < 1) {
        const std::string quoted = model::Quoted(key);  // it may not be fit to print
        return Refuse("spec.metadata", std::string_view(quoted).substr(1, quoted.size() - 2),
                      fmt::format("{} is no skew; use 1 or more", model::Quoted(value)))
            .error();
      }
      into.spec->spread.push_back(std::move(rule));
    }
  }
  if (const std::string problem = model::TemplateProblem(*into.spec); !problem.empty()) {
    return {Code::kInvalidArgument, "spec.metadata." + problem};
  }
  into.metadata = sorted;
  return {};
}

}  // namespace

Result<contract::RegisterNode> FromWire(const pb::RegisterNodeRequest& wire) {
  if (Status valid = CheckObjectId(wire.node_id(), "node_id", kNameTheNode); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  const pb::NodeCapabilities& has = wire.capabilities();
  contract::NodeFacts facts;
  facts.node = wire.node_id();
  facts.cluster = wire.cluster_id();
  MUSTER_ASSIGN_OR_RETURN(facts.endpoint, Endpoint(wire.grpc_endpoint()));
  facts.agent_version = wire.agent_version();
  int64_t disk_gb = 0;
  for (int i = 0; i < has.storage_pools_size(); ++i) {
    const int64_t pool = has.storage_pools(i).total_gb();
    if (pool < 0) return Refuse("capabilities", fmt::format("storage_pools[{}].total_gb", i), "is negative");
    disk_gb += std::min<int64_t>(pool, int64_t{1} << 40);
  }
  if (Status valid = SetPersysAmounts(has.cpu_total_millicores(), has.memory_total_mb(), disk_gb, "capabilities",
                                      "total_", facts.total);
      !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  MUSTER_ASSIGN_OR_RETURN(facts.supported_types, SupportedTypes(has));
  facts.storage_drivers = StorageDrivers(has);
  facts.labels = {wire.labels().begin(), wire.labels().end()};
  return contract::RegisterNode{.facts = std::move(facts)};
}

Result<contract::Heartbeat> FromWire(const pb::HeartbeatRequest& wire) {
  if (Status valid = CheckObjectId(wire.node_id(), "node_id", kNameTheNode); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  contract::Heartbeat beat;
  beat.node = wire.node_id();
  if (wire.has_usage()) {
    const pb::NodeUsage& usage = wire.usage();
    model::Resources& used = beat.used.emplace();
    if (Status valid = SetPersysAmounts(usage.cpu_used_millicores(), usage.memory_used_mb(), usage.disk_used_gb(),
                                        "usage", "used_", used);
        !valid.ok()) {
      return std::unexpected(std::move(valid));
    }
  }
  for (const pb::WorkloadStatus& status : wire.workload_statuses()) beat.statuses.push_back(ReadStatus(status));
  for (const pb::WorkloadUsageSnapshot& usage : wire.workload_usage()) {
    beat.usage.push_back(ReadUsage(usage));
    beat.usage_of.push_back(usage.workload_id());
  }
  return beat;
}

Result<model::DesiredState> DesiredStateFromWire(const std::string& name, std::string_view field) {
  if (name.empty()) return model::DesiredState::kRunning;
  auto state = model::ParseDesiredState(name);
  if (!state) return Refuse("", field, state.error().message());
  return state;
}

Result<contract::ApplyWorkload> FromWire(const pb::ApplyWorkloadRequest& wire) {
  if (Status valid = CheckObjectId(wire.workload_id(), "workload_id", kNameTheWorkload); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  contract::ApplyWorkload request;
  request.workload = wire.workload_id();
  request.revision = wire.revision_id();
  MUSTER_ASSIGN_OR_RETURN(request.desired, DesiredStateFromWire(wire.desired_state(), "desired_state"));
  if (!wire.has_spec()) return request;
  MUSTER_ASSIGN_OR_RETURN(request.spec, TemplateFromControl(wire.spec(), wire.workload_id()));
  if (Status valid = ReadMetadata(wire.spec().metadata(), request); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return request;
}

Result<contract::DeleteObject> FromWire(const pb::DeleteWorkloadRequest& wire) {
  if (Status valid = CheckObjectId(wire.workload_id(), "workload_id", kNameTheWorkload); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = wire.workload_id()};
}

Result<contract::RetryWorkload> FromWire(const pb::RetryWorkloadRequest& wire) {
  if (Status valid = CheckObjectId(wire.workload_id(), "workload_id", kNameTheWorkload); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return contract::RetryWorkload{.workload = wire.workload_id()};
}

Result<contract::ListNodes> FromWire(const pb::ListNodesRequest& wire) {
  return contract::ListNodes{.status = wire.status(), .selector = {}, .page = {}};
}

Result<contract::GetNode> FromWire(const pb::GetNodeRequest& wire) {
  if (Status valid = CheckObjectId(wire.node_id(), "node_id", kNameTheNode); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return contract::GetNode{.node = wire.node_id()};
}

Result<contract::ListWorkloads> FromWire(const pb::ListWorkloadsRequest& wire) {
  contract::ListWorkloads request;
  request.node = wire.node_id();
  request.status = wire.status();
  return request;
}

Result<contract::GetWorkload> FromWire(const pb::GetWorkloadRequest& wire) {
  if (Status valid = CheckObjectId(wire.workload_id(), "workload_id", kNameTheWorkload); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return contract::GetWorkload{.workload = wire.workload_id()};
}

Result<contract::GetSummary> FromWire(const pb::GetClusterSummaryRequest& /*wire*/) { return contract::GetSummary{}; }

Result<contract::ClusterRequest> FromWire(const pb::SubmitAutomationSuggestionRequest& request) {
  const pb::AutomationSuggestion& wire = request.suggestion();
  const std::string& target = wire.target_workload();
  if (Status valid = CheckObjectId(target, "suggestion.target_workload", "name the workload"); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  switch (wire.action_type()) {
    case pb::AUTOMATION_ACTION_SET_DESIRED_STATE: {
      contract::ApplyWorkload apply;
      apply.workload = target;
      MUSTER_ASSIGN_OR_RETURN(apply.desired, DesiredStateFromWire(wire.desired_state(), "suggestion.desired_state"));
      return apply;
    }
    case pb::AUTOMATION_ACTION_RETRY_WORKLOAD: return contract::RetryWorkload{.workload = target};
    case pb::AUTOMATION_ACTION_DELETE_WORKLOAD:
      return contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = target};
    case pb::AUTOMATION_ACTION_SCALE_REPLICAS: return contract::ListSets{.name = target, .page = {}};
    default: break;
  }
  return Refuse("suggestion", "action_type", fmt::format("{} is no action; use 1 to 4", wire.action_type()));
}

Result<NodeWord> FromWire(const pb::ControlMessage& wire) {
  const auto within = [](std::string_view part, auto read) -> Result<NodeWord> {
    if (read) return *std::move(read);
    return Error(read.error().code(), fmt::format("{}.{}", part, read.error().message()));
  };
  switch (wire.message_case()) {
    case pb::ControlMessage::kRegister: return within("register", FromWire(wire.register_()));
    case pb::ControlMessage::kHeartbeat: return within("heartbeat", FromWire(wire.heartbeat()));
    case pb::ControlMessage::kApply:
    case pb::ControlMessage::kDelete:
      return InvalidArgument("message: apply and delete are the scheduler's; call them by their methods");
    case pb::ControlMessage::MESSAGE_NOT_SET: break;
  }
  return InvalidArgument("message: missing; send register or heartbeat");
}

void ToWire(const contract::NodeRegistered& reply, pb::RegisterNodeResponse& wire) {
  wire.set_accepted(reply.accepted);
  wire.set_reason(reply.reason);
  const int64_t seconds = std::chrono::ceil<std::chrono::seconds>(reply.heartbeat_interval).count();
  wire.set_heartbeat_interval_seconds(static_cast<int32_t>(std::clamp<int64_t>(seconds, 1, 1 << 30)));
  WriteTime(reply.lease_expires_at, *wire.mutable_lease_expires_at());
}

void ToWire(const contract::HeartbeatAck& reply, pb::HeartbeatResponse& wire) {
  wire.set_acknowledged(true);
  wire.set_drain_node(reply.drain_node);
  WriteTime(reply.lease_expires_at, *wire.mutable_lease_expires_at());
}

void ToWire(const contract::Applied& /*reply*/, pb::ApplyWorkloadResponse& wire) { wire.set_success(true); }
void ToWire(const contract::Done& /*reply*/, pb::DeleteWorkloadResponse& wire) { wire.set_success(true); }
void ToWire(const contract::Done& /*reply*/, pb::RetryWorkloadResponse& wire) { wire.set_accepted(true); }

namespace {

constexpr double kMilliPerCore = 1000;
constexpr int64_t kMilliPerMegabyte = (int64_t{1} << 20) * 1000;

void WriteNode(const contract::NodeView& view, pb::NodeView& wire) {
  wire.set_node_id(view.node);
  wire.set_status(std::string(model::NodeStatusName(view.status)));
  wire.set_status_reason(Readable(view.status_reason));
  wire.set_status_updated_by(view.status_updated_by);
  WriteTime(view.status_updated_at, *wire.mutable_status_updated_at());
  if (view.last_heartbeat) WriteTime(*view.last_heartbeat, *wire.mutable_last_heartbeat());
  wire.set_grpc_endpoint(view.endpoint);
  wire.set_total_cpu_cores(static_cast<double>(view.total.Get("cpu")) / kMilliPerCore);
  wire.set_available_cpu_cores(static_cast<double>(view.available.Get("cpu")) / kMilliPerCore);
  wire.set_total_memory_mb(view.total.Get("memory") / kMilliPerMegabyte);
  wire.set_available_memory_mb(view.available.Get("memory") / kMilliPerMegabyte);
  for (const model::WorkloadType type : view.supported_types) {
    wire.add_supported_workload_types(std::string(model::WorkloadTypeName(type)));
  }
  WriteMap(view.labels, *wire.mutable_labels());
}

void WriteWorkload(const contract::WorkloadView& view, pb::WorkloadView& wire) {
  wire.set_workload_id(view.workload);
  wire.set_type(std::string(model::WorkloadTypeName(view.type)));
  wire.set_desired_state(std::string(model::DesiredStateName(view.desired)));
  wire.set_status(std::string(model::WorkloadPhaseName(view.phase)));
  wire.set_assigned_node_id(view.node);
  wire.set_revision_id(view.revision);
  wire.set_retry_attempts(view.attempts);
  wire.set_retry_max_attempts(view.max_attempts);
  if (view.next_retry_at) WriteTime(*view.next_retry_at, *wire.mutable_retry_next_at());
  if (contract::TellsOfFailure(view.phase, view.reason)) wire.set_failure_reason(Readable(view.message));
  WriteTime(view.updated_at, *wire.mutable_last_updated());
  pb::ReasonDetail& reason = *wire.mutable_reason();
  reason.set_code(view.reason);
  reason.set_message(Readable(view.message));
  if (view.last_transition) WriteTime(*view.last_transition, *reason.mutable_last_transition());
  if (view.next_retry_at) WriteTime(*view.next_retry_at, *reason.mutable_next_retry_at());
  reason.set_retryable(view.retryable);
  if (view.usage) WriteUsage(*view.usage, view, *wire.mutable_usage());
}

}  // namespace

void ToWire(const std::vector<contract::NodeView>& reply, pb::ListNodesResponse& wire) {
  for (const contract::NodeView& view : reply) WriteNode(view, *wire.add_nodes());
}

void ToWire(const contract::NodeView& reply, pb::GetNodeResponse& wire) { WriteNode(reply, *wire.mutable_node()); }

void ToWire(const std::vector<contract::WorkloadView>& reply, pb::ListWorkloadsResponse& wire) {
  for (const contract::WorkloadView& view : reply) WriteWorkload(view, *wire.add_workloads());
}

void ToWire(const contract::WorkloadView& reply, pb::GetWorkloadResponse& wire) {
  WriteWorkload(reply, *wire.mutable_workload());
}

void ToWire(const contract::Summary& reply, pb::GetClusterSummaryResponse& wire) {
  wire.set_total_nodes(reply.total_nodes);
  wire.set_ready_nodes(reply.ready_nodes);
  wire.set_not_ready_nodes(reply.not_ready_nodes);
  wire.set_total_workloads(reply.total_workloads);
  wire.set_running_workloads(reply.running_workloads);
  wire.set_pending_workloads(reply.pending_workloads);
  wire.set_failed_workloads(reply.failed_workloads);
  wire.set_deleted_workloads(reply.deleted_workloads);
  WriteTime(reply.generated_at, *wire.mutable_generated_at());
}

void ToWire(const contract::ApplyOnAgent& command, pb::ControlMessage& wire) {
  pb::ApplyWorkloadRequest& apply = *wire.mutable_apply();
  apply.set_workload_id(command.workload);
  apply.set_revision_id(command.revision);
  apply.set_desired_state(command.run ? "Running" : "Stopped");
  TemplateToControl(command, *apply.mutable_spec());
}

void ToWire(const contract::DeleteOnAgent& command, pb::ControlMessage& wire) {
  wire.mutable_delete_()->set_workload_id(command.workload);
}

}  // namespace muster::rpc
