// The JSON of a node.
#include <algorithm>
#include <charconv>

#include "core/scheduler/json_fields.h"
#include "core/scheduler/record_parts.h"
#include "core/scheduler/records.h"

namespace muster::scheduler {
namespace {

// "[::1]:50051" -> "::1" and 50051.
struct Endpoint {
  std::string host;
  int32_t port = 0;
};
Endpoint Split(std::string_view endpoint) {
  Endpoint parts;
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos) return {.host = std::string(endpoint)};
  const std::string_view digits = endpoint.substr(colon + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), parts.port);
  std::string_view host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  parts.host = host;
  return parts;
}

std::string Join(const Endpoint& parts) {
  if (parts.host.empty() || parts.port == 0) return "";
  const bool is_v6 = parts.host.contains(':');
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", parts.host, is_v6 ? "]" : "", parts.port);
}

void WriteOwn(JsonWriter& out, const NodeRecord& record) {
  static const NodeRecord kAbsent;
  std::vector<std::string_view> elsewhere = {"node", "endpoint", "supported_types", "storage_drivers", "labels"};
  const CoarseAmounts total = Coarse(record.facts.total);
  if (Fine({.cpu_milli = total.cpu_milli, .memory_mb = total.memory_mb}) == record.facts.total) {
    elsewhere.push_back("total");
  }
  out.Key("muster");
  out.BeginObject();
  const JsonWriter::Mark before = out.mark();
  out.Key("facts");
  out.BeginObject();
  const size_t empty = out.mark().size;
  WriteFields(out, record.facts, kAbsent.facts, elsewhere);
  if (out.mark().size == empty) {
    out.Rollback(before);
  } else {
    out.EndObject();
  }
  WriteFields(out, record, kAbsent,
              {"facts", "status", "status_reason", "status_updated_by", "status_updated_at", "last_heartbeat"});
  out.EndObject();
}

// What a record of another program says besides.
struct Foreign {
  Endpoint endpoint;
  CoarseAmounts total;
  bool has_types = false;
  std::string hypervisor;
};

void ReadTypes(JsonCursor& in, std::vector<model::WorkloadType>& types) {
  types.clear();
  in.List([&] {
    std::string name;
    in.Read(name);
    // A type that Muster does not know is none that it will ask for.
    if (const auto type = model::ParseWorkloadType(name)) types.push_back(*type);
  });
}

void ReadHypervisor(JsonCursor& in, std::string& type) {
  in.Object([&](std::string_view key) { key == "type" ? in.Read(type) : in.Skip(); });
}

bool ReadShared(JsonCursor& in, std::string_view key, NodeRecord& record) {
  contract::NodeFacts& facts = record.facts;
  if (key == "nodeId") return in.Read(facts.node), true;
  if (key == "agentEndpoint") return in.Read(facts.endpoint), true;
  if (key == "status") return ReadJson(in, record.status), true;
  if (key == "statusReason") return in.Read(record.status_reason), true;
  if (key == "statusUpdatedBy") return in.Read(record.status_updated_by), true;
  if (key == "statusUpdatedAt") return ReadJson(in, record.status_updated_at), true;
  if (key == "lastHeartbeat") return ReadJson(in, record.last_heartbeat), true;
  if (key == "labels") return ReadJson(in, facts.labels), true;
  if (key == "supportedStorageDrivers") return ReadJson(in, facts.storage_drivers), true;
  return false;
}

}  // namespace

std::string Encode(const NodeRecord& record) {
  const contract::NodeFacts& facts = record.facts;
  const Endpoint endpoint = Split(facts.endpoint);
  const CoarseAmounts total = Coarse(facts.total);
  JsonWriter out;
  out.BeginObject();
  out.Field("nodeId", facts.node);
  out.Field("ipAddress", endpoint.host);
  out.Key("status");
  WriteJson(out, record.status);
  // What is available changes with every heartbeat and is not stored: other readers see the whole node, as after a
  // registration.
  for (const std::string_view name : {"totalCpu", "availableCpu"}) {
    out.Key(name);
    out.Thousandths(total.cpu_milli);
  }
  for (const std::string_view name : {"totalMemory", "availableMemory"}) {
    out.Key(name);
    out.Integer(total.memory_mb);
  }
  WriteField(out, "lastHeartbeat", record.last_heartbeat, {});
  out.Field("statusReason", record.status_reason);
  out.Field("statusUpdatedBy", record.status_updated_by);
  WriteField(out, "statusUpdatedAt", record.status_updated_at, {});
  WriteField(out, "labels", facts.labels, {});
  WriteField(out, "agentGrpcPort", endpoint.port, 0);
  out.Field("agentEndpoint", facts.endpoint);
  out.Key("supportedWorkloadTypes");
  WriteJson(out, facts.supported_types);
  WriteField(out, "supportedStorageDrivers", facts.storage_drivers, {});
  WriteOwn(out, record);
  out.EndObject();
  return out.Take();
}

Result<NodeRecord> DecodeNode(std::string_view json) {
  JsonCursor in(json);
  NodeRecord record;
  Foreign foreign;
  std::optional<size_t> own;
  in.Object([&](std::string_view key) {
    if (ReadShared(in, key, record)) return;
    if (key == "ipAddress") return in.Read(foreign.endpoint.host);
    if (key == "agentGrpcPort") return in.Read(foreign.endpoint.port);
    if (key == "totalCpu") return ReadCores(in, foreign.total.cpu_milli);
    if (key == "totalMemory") return ReadAmount(in, foreign.total.memory_mb);
    if (key == "hypervisor") return ReadHypervisor(in, foreign.hypervisor);
    if (key == "supportedWorkloadTypes") {
      foreign.has_types = true;
      return ReadTypes(in, record.facts.supported_types);
    }
    if (key == "muster") own = in.Here();
    in.Skip();
  });
  record.facts.total = Fine(foreign.total);
  if (own) in.Again(*own, "muster", [&] { ReadJson(in, record); });
  if (!in.ok()) return Finished(in, std::move(record));
  std::erase(record.facts.supported_types, model::WorkloadType::kUnspecified);
  if (!model::IsWorkloadId(record.facts.node)) return BadId("nodeId", record.facts.node);
  if (!own && record.facts.endpoint.empty()) record.facts.endpoint = Join(foreign.endpoint);
  if (!own && !foreign.has_types) {
    record.facts.supported_types = {model::WorkloadType::kContainer, model::WorkloadType::kCompose};
    if (!foreign.hypervisor.empty()) record.facts.supported_types.push_back(model::WorkloadType::kVm);
  }
  return Finished(in, std::move(record));
}

}  // namespace muster::scheduler
