#include "runtime/container_body.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/hash.h"

namespace muster::runtime {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void Text(Writer& json, const char* key, const std::string& value) {
  json.Key(key);
  json.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void Words(Writer& json, const char* key, const std::vector<std::string>& words) {
  json.Key(key);
  json.StartArray();
  for (const std::string& word : words) json.String(word.c_str());
  json.EndArray();
}

std::string PortKey(const model::Port& port) {
  const int32_t inside = port.container == 0 ? port.host : port.container;
  const char* const protocol = port.protocol == model::PortProtocol::kUdp    ? "udp"
                               : port.protocol == model::PortProtocol::kSctp ? "sctp"
                                                                             : "tcp";
  return fmt::format("{}/{}", inside, protocol);
}

void WritePorts(Writer& json, const ContainerSpec& spec) {
  json.Key("PortBindings");
  json.StartObject();
  // A port of the container may be known by several ports of the host.
  std::map<std::string, std::vector<const model::Port*>> by_key;
  for (const model::Port& port : spec.ports) {
    if (port.host != 0) by_key[PortKey(port)].push_back(&port);
  }
  for (const auto& [key, ports] : by_key) {
    json.Key(key.c_str());
    json.StartArray();
    for (const model::Port* port : ports) {
      json.StartObject();
      Text(json, "HostIp", port->host_ip);
      Text(json, "HostPort", std::to_string(port->host));
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
}

void WriteLimits(Writer& json, const ContainerSpec& spec) {
  if (const int64_t cpu = spec.limits.Get("cpu"); cpu > 0) {
    json.Key("NanoCpus");
    json.Int64(cpu * 1'000'000);
  }
  if (const int64_t memory = spec.limits.Get("memory") / 1000; memory > 0) {
    json.Key("Memory");
    json.Int64(memory);
    json.Key("MemorySwap");
    json.Int64(memory);
  }
}

void WriteHostConfig(Writer& json, const ContainerSpec& spec) {
  json.Key("HostConfig");
  json.StartObject();
  WritePorts(json, spec);
  std::vector<std::string> binds;
  for (const model::VolumeMount& mount : spec.volumes) {
    binds.push_back(fmt::format("{}:{}{}", mount.source, mount.target, mount.read_only ? ":ro" : ""));
  }
  Words(json, "Binds", binds);
  WriteLimits(json, spec);
  json.Key("RestartPolicy");
  json.StartObject();
  switch (spec.restart) {
    case model::RestartPolicy::kNever: Text(json, "Name", "no"); break;
    case model::RestartPolicy::kAlways: Text(json, "Name", "always"); break;
    case model::RestartPolicy::kOnFailure:
      Text(json, "Name", "on-failure");
      json.Key("MaximumRetryCount");
      json.Int(spec.max_restarts);
      break;
  }
  json.EndObject();
  Words(json, "SecurityOpt", {"no-new-privileges"});
  if (!spec.network.empty()) Text(json, "NetworkMode", spec.network);
  if (!spec.user.empty()) {
    // Ports of a container are in a network of its own: whoever runs in it may take the low ones, as root would.
    json.Key("Sysctls");
    json.StartObject();
    Text(json, "net.ipv4.ip_unprivileged_port_start", "0");
    json.EndObject();
  }
  std::vector<std::string> hosts;
  for (const auto& [name, address] : spec.hosts) hosts.push_back(fmt::format("{}:{}", name, address));
  Words(json, "ExtraHosts", hosts);
  json.EndObject();
}

void WriteNetwork(Writer& json, const ContainerSpec& spec) {
  if (spec.network.empty()) return;
  json.Key("NetworkingConfig");
  json.StartObject();
  json.Key("EndpointsConfig");
  json.StartObject();
  json.Key(spec.network.c_str());
  json.StartObject();
  json.Key("IPAMConfig");
  json.StartObject();
  Text(json, "IPv4Address", spec.address);
  json.EndObject();
  json.EndObject();
  json.EndObject();
  json.EndObject();
}

Status CheckSpec(const ContainerSpec& spec) {
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

Result<std::string> ContainerBody(const ContainerSpec& spec) {
  if (spec.image.empty()) return Error(Code::kInvalidArgument, "image: a container needs one");
  if (Status status = CheckSpec(spec); !status.ok()) return std::unexpected(std::move(status));
  rapidjson::StringBuffer text;
  Writer json(text);
  json.StartObject();
  Text(json, "Image", spec.image);
  if (!spec.user.empty()) Text(json, "User", spec.user);
  if (!spec.entrypoint.empty()) Words(json, "Entrypoint", spec.entrypoint);
  if (!spec.command.empty()) Words(json, "Cmd", spec.command);
  std::vector<std::string> env;
  for (const auto& [key, value] : spec.env) env.push_back(fmt::format("{}={}", key, value));
  Words(json, "Env", env);
  json.Key("Labels");
  json.StartObject();
  for (const auto& [key, value] : spec.labels) Text(json, key.c_str(), value);
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
  WriteNetwork(json, spec);
  json.EndObject();
  return std::string(text.GetString(), text.GetSize());
}

std::string TenantVolume(const std::string& agent, const std::string& tenant, const std::string& volume) {
  Hasher hasher;
  hasher.Add(agent);
  hasher.Add(tenant);
  return fmt::format("muster-tenant-{:016x}-{}", hasher.value(), volume);
}

ContainerSpec SpecOf(const contract::StartRun& start, const std::string& agent) {
  ContainerSpec spec{.image = start.spec.image,
                     .command = start.spec.command,
                     .env = start.spec.env,
                     .labels = start.labels,
                     .ports = start.spec.ports,
                     .volumes = start.spec.volumes,
                     .limits = start.spec.resources};
  spec.env["MUSTER_WORKLOAD"] = start.workload;
  spec.labels["muster.agent"] = agent;
  spec.labels["muster.workload"] = start.workload;
  spec.labels["muster.tenant"] = start.tenant;
  spec.labels["muster.launch"] = std::to_string(start.launch);
  spec.labels["muster.revision"] = start.revision;
  return spec;
}

}  // namespace muster::runtime
