#include "rpc/persys_agent_conversion.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "model/utf8.h"
#include "persys/agent/v1/agent.pb.h"
#include "rpc/object_id.h"
#include "rpc/persys_spec.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {

namespace pb = persys::agent::v1;

namespace {

using contract::ActualState;
using model::WorkloadType;

constexpr std::string_view kNameTheWorkload = "name the workload";
constexpr const char* kExitCode = "container.exit_code";
// What an agent says of a failure may be megabytes; its beginning is what a person reads.
constexpr size_t kMostText = 4 << 10;

WallTime ReadSeconds(int64_t seconds) {
  constexpr int64_t kMost = int64_t{1} << 33;  // the year 2242; nanoseconds fit
  return WallTime(std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kMost)));
}
int64_t ToSeconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

WorkloadType ReadType(pb::WorkloadType type) {
  switch (type) {
    case pb::WORKLOAD_TYPE_CONTAINER: return WorkloadType::kContainer;
    case pb::WORKLOAD_TYPE_COMPOSE: return WorkloadType::kCompose;
    case pb::WORKLOAD_TYPE_VM: return WorkloadType::kVm;
    default: return WorkloadType::kUnspecified;
  }
}
pb::WorkloadType ToType(WorkloadType type) {
  switch (type) {
    case WorkloadType::kContainer: return pb::WORKLOAD_TYPE_CONTAINER;
    case WorkloadType::kCompose: return pb::WORKLOAD_TYPE_COMPOSE;
    case WorkloadType::kVm: return pb::WORKLOAD_TYPE_VM;
    default: return pb::WORKLOAD_TYPE_UNSPECIFIED;
  }
}

ActualState ReadActual(pb::ActualState state) {
  switch (state) {
    case pb::ACTUAL_STATE_PENDING: return ActualState::kPending;
    case pb::ACTUAL_STATE_RUNNING: return ActualState::kRunning;
    case pb::ACTUAL_STATE_STOPPED: return ActualState::kStopped;
    case pb::ACTUAL_STATE_FAILED: return ActualState::kFailed;
    default: return ActualState::kUnknown;
  }
}
pb::ActualState ToActual(ActualState state) {
  switch (state) {
    case ActualState::kPending: return pb::ACTUAL_STATE_PENDING;
    case ActualState::kRunning: return pb::ACTUAL_STATE_RUNNING;
    case ActualState::kStopped: return pb::ACTUAL_STATE_STOPPED;
    case ActualState::kFailed: return pb::ACTUAL_STATE_FAILED;
    default: return pb::ACTUAL_STATE_UNKNOWN;
  }
}

contract::WorkloadUsage ReadUsage(const pb::WorkloadUsageSnapshot& wire) {
  return {.cpu_milli = static_cast<int64_t>(std::clamp(wire.cpu_percent(), 0.0, 1e9) * 10),
          .memory_bytes = wire.memory_bytes(),
          .disk_read_bytes = wire.disk_read_bytes(),
          .disk_write_bytes = wire.disk_write_bytes(),
          .net_rx_bytes = wire.net_rx_bytes(),
          .net_tx_bytes = wire.net_tx_bytes(),
          .collected_at = ReadSeconds(wire.collected_at()),
          .source = wire.source()};
}

void WriteUsage(const contract::WorkloadUsage& usage, const contract::WorkloadStatus& of,
                pb::WorkloadUsageSnapshot& wire) {
  wire.set_workload_id(of.workload);
  wire.set_type(ToType(of.type));
  wire.set_cpu_percent(static_cast<double>(usage.cpu_milli) / 10);
  wire.set_memory_bytes(usage.memory_bytes);
  wire.set_disk_read_bytes(usage.disk_read_bytes);
  wire.set_disk_write_bytes(usage.disk_write_bytes);
  wire.set_net_rx_bytes(usage.net_rx_bytes);
  wire.set_net_tx_bytes(usage.net_tx_bytes);
  wire.set_collected_at(ToSeconds(usage.collected_at));
  wire.set_source(Readable(usage.source));
}

contract::WorkloadStatus TakeStatus(pb::WorkloadStatus& wire) {
  contract::WorkloadStatus status;
  status.workload = std::move(*wire.mutable_id());
  status.type = ReadType(wire.type());
  status.revision = std::move(*wire.mutable_revision_id());
  status.wanted_running = wire.desired_state() != pb::DESIRED_STATE_STOPPED;
  status.actual = ReadActual(wire.actual_state());
  status.message = model::Shortened(std::move(*wire.mutable_message()), kMostText);
  status.created_at = ReadSeconds(wire.created_at());
  status.updated_at = ReadSeconds(wire.updated_at());
  status.metadata = TakeMap(*wire.mutable_metadata());
  for (auto& [key, text] : status.metadata) text = model::Shortened(std::move(text), kMostText);
  for (const char* key : {"failure_message", "last_error"}) {
    const auto text = status.metadata.find(key);
    if (status.message.empty() && text != status.metadata.end()) status.message = text->second;
  }
  if (const auto code = status.metadata.find(kExitCode); code != status.metadata.end()) {
    int32_t number = 0;
    const std::string& text = code->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool ended = status.actual == ActualState::kStopped || status.actual == ActualState::kFailed;
    if (ended && error == std::errc() && end == text.data() + text.size()) status.exit_code = number;
  }
  if (wire.has_usage()) status.usage = ReadUsage(wire.usage());
  return status;
}

void WriteStatus(const contract::WorkloadStatus& status, pb::WorkloadStatus& wire) {
  wire.set_id(status.workload);
  wire.set_type(ToType(status.type));
  wire.set_revision_id(status.revision);
  wire.set_desired_state(status.wanted_running ? pb::DESIRED_STATE_RUNNING : pb::DESIRED_STATE_STOPPED);
  wire.set_actual_state(ToActual(status.actual));
  wire.set_message(Readable(status.message));
  wire.set_created_at(ToSeconds(status.created_at));
  wire.set_updated_at(ToSeconds(status.updated_at));
  for (const auto& [key, value] : status.metadata) (*wire.mutable_metadata())[Readable(key)] = Readable(value);
  if (status.exit_code) (*wire.mutable_metadata())[kExitCode] = std::to_string(*status.exit_code);
  if (status.usage) WriteUsage(*status.usage, status, *wire.mutable_usage());
}

}  // namespace

Result<contract::ApplyOnAgent> FromWire(const pb::ApplyWorkloadRequest& wire) {
  if (Status valid = CheckObjectId(wire.id(), "id", kNameTheWorkload); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  contract::ApplyOnAgent request;
  request.workload = wire.id();
  request.revision = wire.revision_id();
  request.run = wire.desired_state() != pb::DESIRED_STATE_STOPPED;
  MUSTER_ASSIGN_OR_RETURN(request.spec, TemplateFromAgent(wire));
  request.labels = {wire.spec().container().labels().begin(), wire.spec().container().labels().end()};
  return request;
}

Result<contract::DeleteOnAgent> FromWire(const pb::DeleteWorkloadRequest& wire) {
  if (Status valid = CheckObjectId(wire.id(), "id", kNameTheWorkload); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return contract::DeleteOnAgent{.workload = wire.id(), .grace = model::WorkloadTemplate().grace, .stamp = {}};
}

Result<contract::GetStatusOnAgent> FromWire(const pb::GetWorkloadStatusRequest& wire) {
  if (Status valid = CheckObjectId(wire.id(), "id", kNameTheWorkload); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return contract::GetStatusOnAgent{.workload = wire.id()};
}

Result<contract::ListOnAgent> FromWire(const pb::ListWorkloadsRequest& /*wire*/) { return contract::ListOnAgent{}; }

void ToWire(const contract::ApplyOnAgent& request, pb::ApplyWorkloadRequest& wire) {
  wire.set_id(request.workload);
  wire.set_revision_id(request.revision);
  wire.set_desired_state(request.run ? pb::DESIRED_STATE_RUNNING : pb::DESIRED_STATE_STOPPED);
  TemplateToAgent(request, wire);
}

void ToWire(const contract::DeleteOnAgent& request, pb::DeleteWorkloadRequest& wire) { wire.set_id(request.workload); }
void ToWire(const contract::GetStatusOnAgent& request, pb::GetWorkloadStatusRequest& wire) {
  wire.set_id(request.workload);
}
void ToWire(const contract::ListOnAgent& /*request*/, pb::ListWorkloadsRequest& /*wire*/) {}

Result<contract::AppliedOnAgent> TakeReply(pb::ApplyWorkloadResponse& wire) {
  return contract::AppliedOnAgent{.applied = wire.applied(),
                                  .skipped = wire.skipped(),
                                  .message = model::Shortened(std::move(*wire.mutable_message()), kMostText),
                                  .status = TakeStatus(*wire.mutable_status())};
}

Result<contract::DeletedOnAgent> TakeReply(pb::DeleteWorkloadResponse& wire) {
  return contract::DeletedOnAgent{.success = wire.success(),
                                  .message = model::Shortened(std::move(*wire.mutable_message()), kMostText)};
}

Result<contract::WorkloadStatus> TakeReply(pb::GetWorkloadStatusResponse& wire) {
  if (!wire.has_status()) return Refuse("", "status", "missing");
  return TakeStatus(*wire.mutable_status());
}

Result<contract::ListedOnAgent> TakeReply(pb::ListWorkloadsResponse& wire) {
  contract::ListedOnAgent listed;
  for (pb::WorkloadStatus& status : *wire.mutable_workloads()) listed.workloads.push_back(TakeStatus(status));
  std::ranges::sort(listed.workloads, {}, &contract::WorkloadStatus::workload);
  return listed;
}

void ToWire(const contract::AppliedOnAgent& reply, pb::ApplyWorkloadResponse& wire) {
  wire.set_applied(reply.applied);
  wire.set_skipped(reply.skipped);
  wire.set_message(Readable(reply.message));
  WriteStatus(reply.status, *wire.mutable_status());
}

void ToWire(const contract::DeletedOnAgent& reply, pb::DeleteWorkloadResponse& wire) {
  wire.set_success(reply.success);
  wire.set_message(Readable(reply.message));
}

void ToWire(const contract::WorkloadStatus& reply, pb::GetWorkloadStatusResponse& wire) {
  WriteStatus(reply, *wire.mutable_status());
}

void ToWire(const contract::ListedOnAgent& reply, pb::ListWorkloadsResponse& wire) {
  for (const contract::WorkloadStatus& status : reply.workloads) WriteStatus(status, *wire.add_workloads());
}

}  // namespace muster::rpc
