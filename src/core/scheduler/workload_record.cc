// The JSON of a workload.
#include <algorithm>

#include "core/scheduler/json_fields.h"
#include "core/scheduler/record_parts.h"
#include "core/scheduler/records.h"

namespace muster::scheduler {
namespace {

using model::WorkloadTemplate;
using model::WorkloadType;

// The texts of what can be read again; the rest stands below "muster" alone.
template <class T, class Format, class Parse>
std::vector<std::string> Texts(const std::vector<T>& values, Format format, Parse parse) {
  std::vector<std::string> texts;
  for (const T& value : values) {
    std::string text = format(value);
    if (parse(text)) texts.push_back(std::move(text));
  }
  return texts;
}

template <class T, class Format, class Parse>
bool Carried(const std::vector<T>& values, Format format, Parse parse) {
  return std::ranges::all_of(values, [&](const T& value) {
    const auto parsed = parse(format(value));
    return parsed && *parsed == value;
  });
}

// The fields of a template that the names of other programs carry exactly.
std::vector<std::string_view> CarriedOf(const WorkloadTemplate& spec) {
  std::vector<std::string_view> names = {"type", "command", "image", "env", "restart"};
  if (Carried(spec.ports, PortText, ParsePortText)) names.push_back("ports");
  if (Carried(spec.volumes, VolumeText, ParseVolumeText)) names.push_back("volumes");
  if (Fine(Coarse(spec.resources)) == spec.resources) names.push_back("resources");
  if (ParseCompose(spec.compose) == spec.compose) names.push_back("compose");
  return names;
}

void WriteResources(JsonWriter& out, const CoarseAmounts& amounts) {
  out.Key("resources");
  out.BeginObject();
  if (amounts.cpu_milli > 0) {
    out.Key("cpu_usage");
    out.Thousandths(amounts.cpu_milli);
  }
  WriteField<int64_t>(out, "memory_usage", amounts.memory_mb, 0);
  WriteField<int64_t>(out, "disk_usage", amounts.disk_gb, 0);
  out.EndObject();
}

void WriteVm(JsonWriter& out, const std::string& id, const CoarseAmounts& amounts) {
  out.Key("vm");
  out.BeginObject();
  out.Field("name", id);
  WriteField<int64_t>(out, "vcpus", (amounts.cpu_milli + 999) / 1000, 0);
  WriteField<int64_t>(out, "memoryMb", amounts.memory_mb, 0);
  out.EndObject();
}

void WriteTemplate(JsonWriter& out, const std::string& id, const WorkloadTemplate& spec) {
  out.Field("image", spec.image);
  WriteField(out, "commandList", spec.command, {});
  out.Field("composeYaml", spec.compose);
  WriteField(out, "envVars", spec.env, {});
  const CoarseAmounts amounts = Coarse(spec.resources);
  WriteResources(out, amounts);
  WriteField(out, "ports", Texts(spec.ports, PortText, ParsePortText), {});
  WriteField(out, "volumes", Texts(spec.volumes, VolumeText, ParseVolumeText), {});
  out.Field("restartPolicy", spec.restart == model::RestartPolicy::kNever ? "no" : JsonText(spec.restart));
  if (spec.type == WorkloadType::kVm) WriteVm(out, id, amounts);
}

void WriteStatus(JsonWriter& out, const WorkloadRecord& record) {
  out.Key("retry");
  out.BeginObject();
  WriteRetry(out, record.retry);
  out.EndObject();
  out.Key("statusInfo");
  out.BeginObject();
  out.Key("actualState");
  WriteJson(out, record.actual);
  WriteField(out, "lastUpdated", record.updated_at, {});
  if (contract::TellsOfFailure(record.workload.phase, record.reason)) out.Field("failureReason", record.message);
  out.Key("reason");
  out.BeginObject();
  out.Field("code", record.reason);
  out.Field("message", record.message);
  WriteField(out, "lastTransition", record.last_transition, {});
  WriteField(out, "nextRetryAt", record.retry.next_retry_at, {});
  out.Key("retryable");
  out.Bool(record.workload.phase != model::WorkloadPhase::kFailed);
  out.EndObject();
  out.EndObject();
}

// Below "muster": everything else, by the names of the structs.
void WriteOwn(JsonWriter& out, const WorkloadRecord& record) {
  static const WorkloadRecord kAbsent;
  out.Key("muster");
  out.BeginObject();
  out.Key("workload");
  out.BeginObject();
  WriteFields(out, record.workload, kAbsent.workload,
              {"id", "revision", "spec", "desired", "phase", "assigned_node", "created_at"});
  out.Key("spec");
  out.BeginObject();
  WriteFields(out, record.workload.spec, kAbsent.workload.spec, CarriedOf(record.workload.spec));
  out.EndObject();
  out.EndObject();
  WriteFields(out, record, kAbsent,
              {"workload", "require_labels", "metadata", "retry", "actual", "reason", "message", "last_transition",
               "updated_at"});
  out.EndObject();
}

// --- reading

// What a record of another program says besides.
struct Foreign {
  std::string assigned_node;
  std::string node_id;
  std::string command;
  std::string compose;
  std::string failure;
  CoarseAmounts amounts;
  CoarseAmounts vm;
  bool is_vm = false;
};

void ReadType(JsonCursor& in, WorkloadType& type) {
  std::string name;
  in.Read(name);
  if (!in.ok() || name.empty()) return;
  if (name == "docker-container") {
    type = WorkloadType::kContainer;
  } else if (name == "docker-compose" || name == "git-compose") {
    type = WorkloadType::kCompose;
  } else if (const Status status = ParseJsonText(name, type); !status.ok()) {
    in.Fail(status.message());
  }
}

template <class T, class Parse>
void ReadParsed(JsonCursor& in, std::vector<T>& out, Parse parse) {
  out.clear();
  in.List([&] {
    std::string text;
    in.Read(text);
    if (!in.ok()) return;
    if (auto parsed = parse(text)) {
      out.push_back(*std::move(parsed));
    } else {
      in.Fail(parsed.error().message());
    }
  });
}

void ReadReason(JsonCursor& in, WorkloadRecord& record) {
  in.Object([&](std::string_view key) {
    if (key == "code") return in.Read(record.reason);
    if (key == "message") return in.Read(record.message);
    if (key == "lastTransition") return ReadJson(in, record.last_transition);
    in.Skip();
  });
}

void ReadStatusInfo(JsonCursor& in, WorkloadRecord& record, Foreign& foreign) {
  in.Object([&](std::string_view key) {
    if (key == "actualState") return ReadJson(in, record.actual);
    if (key == "lastUpdated") return ReadJson(in, record.updated_at);
    if (key == "failureReason") return in.Read(foreign.failure);
    if (key == "reason") return ReadReason(in, record);
    in.Skip();
  });
}

void ReadResources(JsonCursor& in, CoarseAmounts& amounts) {
  in.Object([&](std::string_view key) {
    if (key == "cpu_usage") return ReadCores(in, amounts.cpu_milli);
    if (key == "memory_usage") return ReadAmount(in, amounts.memory_mb);
    if (key == "disk_usage") return ReadAmount(in, amounts.disk_gb);
    in.Skip();
  });
}

void ReadVm(JsonCursor& in, Foreign& foreign) {
  foreign.is_vm = in.Peek() == JsonCursor::Kind::kObject;
  in.Object([&](std::string_view key) {
    if (key == "vcpus") return ReadCores(in, foreign.vm.cpu_milli);
    if (key == "memoryMb") return ReadAmount(in, foreign.vm.memory_mb);
    in.Skip();
  });
}

// Each returns whether the key is one of its own, and reads it then.
bool ReadIdentity(JsonCursor& in, std::string_view key, WorkloadRecord& record, Foreign& foreign) {
  model::Workload& workload = record.workload;
  if (key == "id") return in.Read(workload.id), true;
  if (key == "revisionId") return in.Read(workload.revision), true;
  if (key == "assignedNode") return in.Read(foreign.assigned_node), true;
  if (key == "nodeId") return in.Read(foreign.node_id), true;
  if (key == "status") return ReadJson(in, workload.phase), true;
  if (key == "desiredState") return ReadJson(in, workload.desired), true;
  if (key == "createdAt") return ReadJson(in, workload.created_at), true;
  if (key == "labels") return ReadJson(in, record.require_labels), true;
  if (key == "metadata") return ReadTexts(in, record.metadata), true;
  if (key == "retry") return ReadRetry(in, record.retry), true;
  if (key == "statusInfo") return ReadStatusInfo(in, record, foreign), true;
  return false;
}

bool ReadTemplate(JsonCursor& in, std::string_view key, WorkloadTemplate& spec, Foreign& foreign) {
  if (key == "type") return ReadType(in, spec.type), true;
  if (key == "image") return in.Read(spec.image), true;
  if (key == "commandList") return ReadJson(in, spec.command), true;
  if (key == "command") return in.Read(foreign.command), true;
  if (key == "composeYaml") return in.Read(spec.compose), true;
  if (key == "compose") return in.Read(foreign.compose), true;
  if (key == "envVars") return ReadJson(in, spec.env), true;
  if (key == "resources") return ReadResources(in, foreign.amounts), true;
  if (key == "ports") return ReadParsed(in, spec.ports, ParsePortText), true;
  if (key == "volumes") return ReadParsed(in, spec.volumes, ParseVolumeText), true;
  if (key == "restartPolicy") return ReadJson(in, spec.restart), true;
  if (key == "vm") return ReadVm(in, foreign), true;
  return false;
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  size_t start = 0;
  while ((start = text.find_first_not_of(' ', start)) != std::string_view::npos) {
    const size_t end = std::min(text.find(' ', start), text.size());
    words.emplace_back(text.substr(start, end - start));
    start = end;
  }
  return words;
}

WorkloadType TypeByContent(const WorkloadTemplate& spec, const Foreign& foreign) {
  if (foreign.is_vm) return WorkloadType::kVm;
  if (!spec.compose.empty()) return WorkloadType::kCompose;
  return spec.image.empty() ? WorkloadType::kUnspecified : WorkloadType::kContainer;
}

// Fills what the texts of other programs mean; `own`: below "muster" stands more.
void Complete(WorkloadRecord& record, const Foreign& foreign, bool own) {
  WorkloadTemplate& spec = record.workload.spec;
  record.workload.assigned_node = foreign.assigned_node.empty() ? foreign.node_id : foreign.assigned_node;
  spec.compose = ParseCompose(spec.compose);
  spec.resources = Fine(foreign.amounts);
  if (own) return;
  if (spec.compose.empty()) spec.compose = ParseCompose(foreign.compose);
  if (spec.command.empty()) spec.command = Words(foreign.command);
  if (spec.type == WorkloadType::kUnspecified) spec.type = TypeByContent(spec, foreign);
  const model::Resources vm = Fine(foreign.vm);
  for (const std::string_view name : {"cpu", "memory"}) {
    if (spec.resources.Get(name) == 0) spec.resources.Set(name, vm.Get(name));
  }
  if (record.message.empty()) record.message = foreign.failure;
  record.agent_revision = record.workload.revision;
}

}  // namespace

std::string Encode(const WorkloadRecord& record) {
  const model::Workload& workload = record.workload;
  JsonWriter out;
  out.BeginObject();
  out.Field("id", workload.id);
  out.Field("name", workload.id);
  WriteField(out, "type", workload.spec.type, WorkloadType::kUnspecified);
  out.Field("revisionId", workload.revision);
  out.Field("assignedNode", workload.assigned_node);
  out.Field("nodeId", workload.assigned_node);
  out.Key("status");
  WriteJson(out, workload.phase);
  out.Key("desiredState");
  WriteJson(out, workload.desired);
  WriteField(out, "createdAt", workload.created_at, {});
  WriteTemplate(out, workload.id, workload.spec);
  WriteField(out, "labels", record.require_labels, {});
  WriteField(out, "metadata", record.metadata, {});
  WriteStatus(out, record);
  WriteOwn(out, record);
  out.EndObject();
  return out.Take();
}

Result<WorkloadRecord> DecodeWorkload(std::string_view json) {
  JsonCursor in(json);
  WorkloadRecord record;
  Foreign foreign;
  std::optional<size_t> own;
  in.Object([&](std::string_view key) {
    if (ReadIdentity(in, key, record, foreign)) return;
    if (ReadTemplate(in, key, record.workload.spec, foreign)) return;
    if (key == "muster") own = in.Here();
    in.Skip();
  });
  Complete(record, foreign, own.has_value());
  if (own) in.Again(*own, "muster", [&] { ReadJson(in, record); });
  if (in.ok() && !model::IsWorkloadId(record.workload.id)) return BadId("id", record.workload.id);
  return Finished(in, std::move(record));
}

}  // namespace muster::scheduler
