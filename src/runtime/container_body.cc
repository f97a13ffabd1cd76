// What an engine is asked to make of a workload's template.
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "model/workload_template.h"
#include "runtime/container_runtime.h"

namespace muster::runtime {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void Text(Writer& json, const char* key, const std::string& value) {
  json.Key(key);
  json.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

std::string PortKey(const model::Port& port) {
  const int32_t inside = port.container == 0 ? port.host : port.container;
  const char* const protocol = port.protocol == model::PortProtocol::kUdp    ? "udp"
                               : port.protocol == model::PortProtocol::kSctp ? "sctp"
                                                                             : "tcp";
  return fmt::format("{}/{}", inside, protocol);
}

void WriteHostConfig(Writer& json, const model::WorkloadTemplate& spec) {
  json.Key("HostConfig");
  json.StartObject();
  json.Key("PortBindings");
  json.StartObject();
  for (const model::Port& port : spec.ports) {
    if (port.host == 0) continue;
    json.Key(PortKey(port).c_str());
    json.StartArray();
    json.StartObject();
    Text(json, "HostIp", port.host_ip);
    Text(json, "HostPort", std::to_string(port.host));
    json.EndObject();
    json.EndArray();
  }
  json.EndObject();
  json.Key("Binds");
  json.StartArray();
  for (const model::VolumeMount& mount : spec.volumes) {
    const std::string bind = fmt::format("{}:{}{}", mount.source, mount.target, mount.read_only ? ":ro" : "");
    json.String(bind.c_str());
  }
  json.EndArray();
  if (const int64_t cpu = spec.resources.Get("cpu"); cpu > 0) {
    json.Key("NanoCpus");
    json.Int64(cpu * 1'000'000);
  }
  if (const int64_t memory = spec.resources.Get("memory") / 1000; memory > 0) {
    json.Key("Memory");
    json.Int64(memory);
    json.Key("MemorySwap");
    json.Int64(memory);
  }
  json.Key("RestartPolicy");
  json.StartObject();
  Text(json, "Name", "no");
  json.EndObject();
  json.Key("SecurityOpt");
  json.StartArray();
  json.String("no-new-privileges");
  json.EndArray();
  json.EndObject();
}

// What the API's own syntax would read as something else.
Status CheckTemplate(const model::WorkloadTemplate& spec) {
  for (const model::VolumeMount& mount : spec.volumes) {
    for (const std::string* part : {&mount.source, &mount.target}) {
      if (part->contains(':') || part->contains('\0')) {
        return {Code::kInvalidArgument, fmt::format("volumes: \"{}\" must not contain ':'", *part)};
      }
    }
  }
  for (const auto& [key, value] : spec.env) {
    if (key.empty() || key.contains('=') || key.contains('\0') || value.contains('\0')) {
      return {Code::kInvalidArgument, fmt::format("env: \"{}\" is no name of a variable", key)};
    }
  }
  return {};
}

}  // namespace

Result<std::string> CreateBody(const contract::StartRun& start, const std::string& agent) {
  const model::WorkloadTemplate& spec = start.spec;
  if (spec.image.empty()) return Error(Code::kInvalidArgument, "image: a container needs one");
  if (Status status = CheckTemplate(spec); !status.ok()) return std::unexpected(std::move(status));
  rapidjson::StringBuffer text;
  Writer json(text);
  json.StartObject();
  Text(json, "Image", spec.image);
  if (!spec.command.empty()) {
    json.Key("Cmd");
    json.StartArray();
    for (const std::string& word : spec.command) json.String(word.c_str());
    json.EndArray();
  }
  json.Key("Env");
  json.StartArray();
  for (const auto& [key, value] : spec.env) json.String(fmt::format("{}={}", key, value).c_str());
  json.String(fmt::format("MUSTER_WORKLOAD={}", start.workload).c_str());
  json.EndArray();
  json.Key("Labels");
  json.StartObject();
  for (const auto& [key, value] : start.labels) Text(json, key.c_str(), value);
  Text(json, "muster.agent", agent);
  Text(json, "muster.workload", start.workload);
  Text(json, "muster.launch", std::to_string(start.launch));
  Text(json, "muster.revision", start.revision);
  json.EndObject();
  json.Key("ExposedPorts");
  json.StartObject();
  for (const model::Port& port : spec.ports) {
    json.Key(PortKey(port).c_str());
    json.StartObject();
    json.EndObject();
  }
  json.EndObject();
  WriteHostConfig(json, spec);
  json.EndObject();
  return std::string(text.GetString(), text.GetSize());
}

}  // namespace muster::runtime
