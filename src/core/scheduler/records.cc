#include "core/scheduler/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/codec.h"
#include "core/scheduler/json_fields.h"
#include "core/scheduler/record_parts.h"

namespace muster::scheduler {
namespace {

struct Folder {
  RecordKind kind;
  std::string_view path;
};
constexpr auto kFolders = std::to_array<Folder>({{RecordKind::kNode, "/nodes/"},
                                                 {RecordKind::kNodeStatus, "/nodes/"},
                                                 {RecordKind::kWorkload, "/workloads/"},
                                                 {RecordKind::kAssignment, "/assignments/"},
                                                 {RecordKind::kRetry, "/retries/"},
                                                 {RecordKind::kReconciliation, "/reconciliation/"},
                                                 {RecordKind::kEvent, "/events/"},
                                                 {RecordKind::kSet, "/sets/"},
                                                 {RecordKind::kQuota, "/quotas/"}});
constexpr std::string_view kStatusSuffix = "/status";

constexpr int32_t kMostReplicas = 1'000'000;

template <class T>
std::string EncodeFields(const T& record) {
  static const T kAbsent{};
  JsonWriter out;
  out.BeginObject();
  WriteFields(out, record, kAbsent);
  out.EndObject();
  return out.Take();
}

}  // namespace

std::string Encode(const AssignmentRecord& record) {
  JsonWriter out;
  out.BeginObject();
  out.Field("workloadId", record.workload);
  out.Field("nodeId", record.node);
  out.Field("reason", record.reason);
  WriteField(out, "createdAt", record.created_at, {});
  out.EndObject();
  return out.Take();
}

std::string Encode(const ReconciliationRecord& record) {
  JsonWriter out;
  out.BeginObject();
  out.Field("workloadId", record.workload);
  out.Field("action", record.action);
  out.Key("success");
  out.Bool(record.success);
  out.Field("reason", record.reason);
  WriteField(out, "attemptedAt", record.attempted_at, {});
  out.EndObject();
  return out.Take();
}

std::string Encode(const std::string& workload, const RetryRecord& record) {
  JsonWriter out;
  out.BeginObject();
  out.Field("workloadId", workload);
  WriteRetry(out, record);
  out.EndObject();
  return out.Take();
}

std::string Encode(const EventRecord& record) {
  JsonWriter out;
  out.BeginObject();
  out.Field("id", record.id);
  out.Field("type", record.type);
  out.Field("workloadId", record.workload);
  out.Field("nodeId", record.node);
  out.Field("reason", record.reason);
  WriteField(out, "timestamp", record.at, {});
  WriteField(out, "details", record.details, {});
  out.EndObject();
  return out.Take();
}

std::string Encode(const SetRecord& record) { return EncodeFields(record); }
std::string Encode(const model::Quota& quota) { return EncodeFields(quota); }

Result<ReconciliationRecord> DecodeReconciliation(std::string_view json) {
  JsonCursor in(json);
  ReconciliationRecord record;
  in.Object([&](std::string_view key) {
    if (key == "workloadId") return in.Read(record.workload);
    if (key == "action") return in.Read(record.action);
    if (key == "success") return in.Read(record.success);
    if (key == "reason") return in.Read(record.reason);
    if (key == "attemptedAt") return ReadJson(in, record.attempted_at);
    in.Skip();
  });
  return Finished(in, std::move(record));
}

Result<EventRecord> DecodeEvent(std::string_view json) {
  JsonCursor in(json);
  EventRecord record;
  in.Object([&](std::string_view key) {
    if (key == "id") return in.Read(record.id);
    if (key == "type") return in.Read(record.type);
    if (key == "workloadId") return in.Read(record.workload);
    if (key == "nodeId") return in.Read(record.node);
    if (key == "reason") return in.Read(record.reason);
    if (key == "timestamp") return ReadJson(in, record.at);
    if (key == "details") return ReadTexts(in, record.details);
    in.Skip();
  });
  return Finished(in, std::move(record));
}

Result<SetRecord> DecodeSet(std::string_view json) {
  JsonCursor in(json);
  SetRecord record;
  ReadJson(in, record);
  if (in.ok()) {
    const model::WorkloadSpec& spec = record.spec;
    if (!model::IsWorkloadId(spec.name)) return BadId("spec.name", spec.name);
    if (spec.kind == model::WorkloadKind::kWorkload) {
      return InvalidArgument("spec.kind: a plain workload has no set");
    }
    if (spec.replicas < 0 || spec.replicas > kMostReplicas) {
      return InvalidArgument(fmt::format("spec.replicas: {} is not from 0 to {}", spec.replicas, kMostReplicas));
    }
    if (std::ranges::adjacent_find(record.completed, std::greater_equal()) != record.completed.end()) {
      return InvalidArgument("completed: the numbers must be in order, each once");
    }
  }
  return Finished(in, std::move(record));
}

Result<model::Quota> DecodeQuota(std::string_view json) {
  JsonCursor in(json);
  model::Quota quota;
  ReadJson(in, quota);
  if (in.ok()) {
    if (!model::IsWorkloadId(quota.tenant)) return BadId("tenant", quota.tenant);
    if (quota.workloads < -1) return InvalidArgument("workloads: must not be negative");
    if (quota.applies_milli_hz < 0) return InvalidArgument("appliesMilliHz: must not be negative");
    if (quota.burst < 0) return InvalidArgument("burst: must not be negative");
  }
  return Finished(in, std::move(quota));
}

std::string KeyOf(std::string_view prefix, RecordKind kind, std::string_view id) {
  const auto folder = std::ranges::find(kFolders, kind, &Folder::kind);
  return fmt::format("{}{}{}{}", prefix, folder->path, id, kind == RecordKind::kNodeStatus ? kStatusSuffix : "");
}

std::optional<ParsedKey> ParseKey(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix)) return std::nullopt;
  key.remove_prefix(prefix.size());
  for (const Folder& folder : kFolders) {
    std::string_view id = key;
    if (!id.starts_with(folder.path)) continue;
    id.remove_prefix(folder.path.size());
    if (folder.kind == RecordKind::kNodeStatus) {
      if (!id.ends_with(kStatusSuffix)) continue;
      id.remove_suffix(kStatusSuffix.size());
    }
    if (id.empty() || id.contains('/')) continue;
    return ParsedKey{folder.kind, std::string(id)};
  }
  return std::nullopt;
}

std::string RevisionBytes(const model::WorkloadTemplate& spec) {
  std::string bytes = codec::ToBytes(spec);
  if (spec.secret_env.empty()) bytes.pop_back();  // the number of secrets, the last of a template
  return bytes;
}

}  // namespace muster::scheduler
