#include "rpc/persys_spec.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "host/parser.h"
#include "model/names.h"
#include "model/utf8.h"
#include "model/volume_name.h"
#include "persys/agent/v1/agent.pb.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {

namespace control = persys::control::v1;
namespace agent = persys::agent::v1;

namespace {

using model::WorkloadType;

constexpr int64_t kMilli = 1000;
constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr int64_t kMostMillicores = int64_t{1} << 40;
constexpr int64_t kMostMegabytes = int64_t{1} << 32;
constexpr int64_t kMostGigabytes = int64_t{1} << 22;
constexpr int64_t kDefaultDiskGigabytes = 20;
constexpr std::string_view kLocalDriver = "local";

std::string Base64(const std::string& text) { return absl::Base64Escape(text); }

Status CheckAmount(int64_t amount, int64_t most, std::string_view path, std::string_view field) {
  if (amount < 0) return Refuse(path, field, fmt::format("{} is negative; use zero or more", amount)).error();
  if (amount > most) return Refuse(path, field, fmt::format("{} is more than {}", amount, most)).error();
  return {};
}

int64_t RoundUp(int64_t milli, int64_t unit) { return (milli + unit * kMilli - 1) / (unit * kMilli); }

// --- volumes

// What a managed volume says besides its name, target and read_only, in the order in which it is written.
template <class Volume>
void EachOption(Volume& volume, const auto& option) {
  option("driver", volume.driver(), [&](std::string text) { volume.set_driver(std::move(text)); });
  option("size_gb", volume.size_gb() == 0 ? std::string() : std::to_string(volume.size_gb()), [&](std::string text) {
    int64_t size = 0;
    std::from_chars(text.data(), text.data() + text.size(), size);
    volume.set_size_gb(size);
  });
  option("access_mode", volume.access_mode(), [&](std::string text) { volume.set_access_mode(std::move(text)); });
  option("fs_type", volume.fs_type(), [&](std::string text) { volume.set_fs_type(std::move(text)); });
  option("retain_policy", volume.retain_policy(), [&](std::string text) { volume.set_retain_policy(std::move(text)); });
}

template <class Volume>
Result<model::VolumeMount> FromManagedVolume(Volume volume, const std::string& path) {
  constexpr std::string_view kReserved = "/?&=:";
  if (volume.name().empty()) return Refuse(path, "name", "missing; name the volume");
  if (volume.mount_path().empty()) return Refuse(path, "mount_path", "missing; say where the workload sees it");
  if (volume.size_gb() < 0) return Refuse(path, "size_gb", "is negative; use zero or more");
  if (!model::IsVolumeName(volume.name())) {
    return Refuse(path, "name",
                  fmt::format("{} is no name of letters, digits, '.', '_' and '-', a letter or digit first",
                              model::Quoted(volume.name())));
  }
  std::string source = volume.name();
  Status wrong;
  EachOption(volume, [&](std::string_view key, const std::string& value, const auto&) {
    if (value.empty() || (key == "driver" && value == kLocalDriver)) return;
    if (value.find_first_of(kReserved) != std::string::npos) {
      wrong = Refuse(path, key, fmt::format("{} has one of {}", model::Quoted(value), kReserved)).error();
    }
    source += fmt::format("{}{}={}", source.contains('?') ? '&' : '?', key, value);
  });
  if (!wrong.ok()) return std::unexpected(std::move(wrong));
  return model::VolumeMount{
      .source = std::move(source), .target = volume.mount_path(), .read_only = volume.read_only()};
}

template <class Volume>
void ToManagedVolume(const model::VolumeMount& mount, Volume& volume) {
  const model::VolumeSource source = model::SplitVolumeSource(mount.source);
  volume.set_name(std::string(source.name));
  volume.set_driver(std::string(kLocalDriver));
  volume.set_mount_path(mount.target);
  volume.set_read_only(mount.read_only);
  if (source.options.empty()) return;
  for (const std::string_view pair : host::SplitAt(source.options, '&')) {
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    EachOption(volume, [&](std::string_view key, const std::string&, const auto& set) {
      if (key == pair.substr(0, equals)) set(std::string(pair.substr(equals + 1)));
    });
  }
}

// --- parts that both protocols have, in messages of their own

template <class Ports>
Status ReadPorts(const Ports& wire, const std::string& path, std::vector<model::Port>& into) {
  for (int i = 0; i < wire.size(); ++i) {
    const auto& row = wire.Get(i);
    model::Port port{.container = row.container_port(), .host = row.host_port()};
    const std::string& name = row.protocol();
    if (name == "udp" || name == "UDP") {
      port.protocol = model::PortProtocol::kUdp;
    } else if (!name.empty() && name != "tcp" && name != "TCP") {
      return Refuse(fmt::format("{}.ports[{}]", path, i), "protocol",
                    fmt::format("{} is no protocol; use tcp or udp", model::Quoted(name)))
          .error();
    }
    into.push_back(port);
  }
  return {};
}

template <class Container>
Status ReadContainer(const Container& wire, const std::string& path, model::WorkloadTemplate& into) {
  into.image = wire.image();
  into.command.assign(wire.command().begin(), wire.command().end());
  into.env = {wire.env().begin(), wire.env().end()};
  MUSTER_RETURN_IF_ERROR(ReadPorts(wire.ports(), path, into.ports));
  for (int i = 0; i < wire.volumes_size(); ++i) {
    const auto& row = wire.volumes(i);
    if (!row.host_path().starts_with('/')) {
      return Refuse(
                 fmt::format("{}.volumes[{}]", path, i), "host_path",
                 fmt::format("{} is no absolute path; use managed_volumes for a name", model::Quoted(row.host_path())))
          .error();
    }
    into.volumes.push_back({.source = row.host_path(), .target = row.container_path(), .read_only = row.read_only()});
  }
  for (int i = 0; i < wire.managed_volumes_size(); ++i) {
    auto mount = FromManagedVolume(wire.managed_volumes(i), fmt::format("{}.managed_volumes[{}]", path, i));
    if (!mount) return mount.error();
    into.volumes.push_back(*std::move(mount));
  }
  return {};
}

template <class Container>
void WriteContainer(const model::WorkloadTemplate& spec, Container& wire) {
  wire.set_image(spec.image);
  for (const std::string& word : spec.command) wire.add_command(word);
  for (const auto& [key, value] : model::WholeEnv(spec)) (*wire.mutable_env())[key] = value;
  for (const model::Port& port : spec.ports) {
    auto& row = *wire.add_ports();
    row.set_host_port(port.host);
    row.set_container_port(port.container == 0 ? port.host : port.container);
    row.set_protocol(port.protocol == model::PortProtocol::kUdp ? "udp" : "tcp");
  }
  for (const model::VolumeMount& mount : spec.volumes) {
    if (!mount.source.starts_with('/')) {
      ToManagedVolume(mount, *wire.add_managed_volumes());
      continue;
    }
    auto& row = *wire.add_volumes();
    row.set_host_path(mount.source);
    row.set_container_path(mount.target);
    row.set_read_only(mount.read_only);
  }
}

Status ReadRestartPolicy(const std::string& name, std::string_view path, std::string_view field,
                         model::RestartPolicy& into) {
  if (name.empty()) return {};  // always
  const auto policy = model::ParseRestartPolicy(name);
  if (!policy) return Refuse(path, field, policy.error().message()).error();
  into = *policy;
  return {};
}

std::string RestartPolicyToPersys(model::RestartPolicy policy) {
  return policy == model::RestartPolicy::kNever ? "no" : std::string(model::RestartPolicyName(policy));
}

// --- virtual machines

std::string EncodeVm(const agent::VMSpec& vm) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(vm, &json, options).ok()) json = "{}";
  return Base64(json);
}

Result<agent::VMSpec> DecodeVm(const std::string& text) {
  std::string json;
  if (!absl::Base64Unescape(text, &json)) return InvalidArgument("is no base64");
  agent::VMSpec vm;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &vm, options);
  if (!parsed.ok()) return InvalidArgument(fmt::format("is no VM spec: {}", model::Quoted(parsed.ToString())));
  return vm;
}

agent::VMSpec VmFromControl(const control::VMSpec& wire, const std::string& workload) {
  agent::VMSpec vm;
  vm.set_name(workload);
  vm.set_vcpus(wire.vcpus());
  vm.set_memory_mb(wire.memory_mb());
  for (int i = 0; i < wire.disks_size(); ++i) {
    agent::DiskConfig& disk = *vm.add_disks();
    const std::string device = fmt::format("vd{}", static_cast<char>('a' + i % 26));
    disk.set_device(device);
    disk.set_format("qcow2");
    disk.set_type("disk");
    disk.set_size_gb(wire.disks(i).size_gb() > 0 ? wire.disks(i).size_gb() : kDefaultDiskGigabytes);
    disk.set_path(fmt::format("/var/lib/libvirt/images/{}-{}.qcow2", workload, device));
    disk.set_boot(i == 0);
  }
  for (const control::NetworkConfig& network : wire.networks()) {
    agent::NetworkConfig& into = *vm.add_networks();
    into.set_network(network.bridge());
    into.set_ip_address(network.static_ip());
  }
  if (wire.has_cloud_init()) {
    agent::CloudInitConfig& into = *vm.mutable_cloud_init_config();
    into.set_user_data(wire.cloud_init().user_data());
    into.set_meta_data(wire.cloud_init().meta_data());
    into.set_network_config(wire.cloud_init().network_config());
    into.set_vendor_data(wire.cloud_init().vendor_data());
  }
  for (const control::ManagedVolumeSpec& volume : wire.managed_volumes()) {
    vm.add_managed_volumes()->ParseFromString(volume.SerializeAsString());  // the same fields
  }
  return vm;
}

// Its own numbers are the request where `resources` has none.
void FillFromVm(const agent::VMSpec& vm, model::WorkloadTemplate& into) {
  if (into.resources.Get("cpu") == 0 && vm.vcpus() > 0) into.resources.Set("cpu", int64_t{vm.vcpus()} * kMilli);
  if (into.resources.Get("memory") == 0 && vm.memory_mb() > 0 && vm.memory_mb() <= kMostMegabytes) {
    into.resources.Set("memory", vm.memory_mb() * kMebibyte * kMilli);
  }
  into.env = {{std::string(kVmSpecKey), EncodeVm(vm)}};
}

Status ReadVm(const control::WorkloadSpec& wire, const std::string& workload, model::WorkloadTemplate& into) {
  // A template of a machine has an image: without one it is named after the machine, whose disks say the rest.
  into.image = wire.vm().os_image().empty() ? workload : wire.vm().os_image();
  const auto given = wire.metadata().find(std::string(kVmSpecKey));
  if (given == wire.metadata().end()) {
    FillFromVm(VmFromControl(wire.vm(), workload), into);
    return {};
  }
  auto vm = DecodeVm(given->second);
  if (!vm) return Refuse("spec.metadata", kVmSpecKey, vm.error().message()).error();
  FillFromVm(*vm, into);
  return {};
}

agent::VMSpec VmOf(const contract::ApplyOnAgent& apply) {
  const auto encoded = apply.spec.env.find(std::string(kVmSpecKey));
  if (encoded != apply.spec.env.end()) {
    if (auto vm = DecodeVm(encoded->second)) return *std::move(vm);
  }
  agent::VMSpec vm;  // of a native file: its image is the first disk
  vm.set_name(apply.workload);
  vm.set_vcpus(static_cast<int32_t>(RoundUp(apply.spec.resources.Get("cpu"), 1)));
  vm.set_memory_mb(MegabytesOf(apply.spec.resources));
  agent::DiskConfig& disk = *vm.add_disks();
  disk.set_path(apply.spec.image);
  disk.set_device("vda");
  disk.set_format("qcow2");
  disk.set_type("disk");
  disk.set_boot(true);
  return vm;
}

// --- compose

// The agent takes base64, and newer ones plain YAML too, which has characters that base64 does not.
std::string PlainYaml(const std::string& text) {
  std::string plain;
  const bool yaml = text.find_first_of(":\n ") != std::string::npos;
  const bool encoded = !yaml && absl::Base64Unescape(text, &plain);
  return encoded && model::FindInvalidUtf8(plain) == std::string_view::npos ? plain : text;
}

Status ReadCompose(const control::ComposeSpec& wire, model::WorkloadTemplate& into) {
  if (wire.source_type() == "git" || (wire.inline_yaml().empty() && !wire.git_repo().empty())) {
    return Refuse("spec.compose", "source_type", "git is not supported; send the file as inline_yaml").error();
  }
  if (!wire.source_type().empty() && wire.source_type() != "inline") {
    return Refuse("spec.compose", "source_type",
                  fmt::format("{} is no source; use inline", model::Quoted(wire.source_type())))
        .error();
  }
  if (wire.inline_yaml().empty()) return Refuse("spec.compose", "inline_yaml", "missing; send the file").error();
  into.compose = PlainYaml(wire.inline_yaml());
  into.env = {wire.env().begin(), wire.env().end()};
  return {};
}

Result<WorkloadType> TypeOfSpec(const control::WorkloadSpec& wire) {
  static constexpr std::array kTypes = {WorkloadType::kContainer, WorkloadType::kCompose, WorkloadType::kVm};
  const int part = wire.workload_case() == 0 ? -1 : wire.workload_case() - control::WorkloadSpec::kContainer;
  if (wire.type().empty()) {
    if (part < 0) return Refuse("spec", "type", "missing; use container, compose or vm");
    return kTypes.at(static_cast<size_t>(part));
  }
  const auto type = PersysTypeFromName(wire.type());
  if (!type) return Refuse("spec", "type", type.error().message());
  const bool fits = part < 0 ? *type == WorkloadType::kVm && wire.metadata().contains(std::string(kVmSpecKey))
                             : kTypes.at(static_cast<size_t>(part)) == *type;
  if (!fits) {
    return Refuse("spec", model::WorkloadTypeName(*type), fmt::format("missing; a {} needs it", wire.type()));
  }
  return *type;
}

}  // namespace

Result<WorkloadType> PersysTypeFromName(std::string_view name) {
  if (name == "docker-container") return WorkloadType::kContainer;
  if (name == "docker-compose" || name == "git-compose") return WorkloadType::kCompose;
  auto type = model::ParseWorkloadType(name);
  if (type && *type != WorkloadType::kProcess) return type;
  return InvalidArgument(fmt::format("{} is no type; use container, compose or vm", model::Quoted(name)));
}

Status SetPersysAmounts(int64_t cpu_millicores, int64_t memory_mb, int64_t disk_gb, std::string_view path,
                        std::string_view infix, model::Resources& into) {
  MUSTER_RETURN_IF_ERROR(CheckAmount(cpu_millicores, kMostMillicores, path, fmt::format("cpu_{}millicores", infix)));
  MUSTER_RETURN_IF_ERROR(CheckAmount(memory_mb, kMostMegabytes, path, fmt::format("memory_{}mb", infix)));
  MUSTER_RETURN_IF_ERROR(CheckAmount(disk_gb, kMostGigabytes, path, fmt::format("disk_{}gb", infix)));
  into.Set("cpu", cpu_millicores);
  into.Set("memory", memory_mb * kMebibyte * kMilli);
  into.Set("disk", disk_gb * kGibibyte * kMilli);
  return {};
}

int64_t MegabytesOf(const model::Resources& resources) { return RoundUp(resources.Get("memory"), kMebibyte); }
int64_t GigabytesOf(const model::Resources& resources) { return RoundUp(resources.Get("disk"), kGibibyte); }

Result<model::WorkloadTemplate> TemplateFromControl(const control::WorkloadSpec& wire, const std::string& workload) {
  model::WorkloadTemplate spec;
  MUSTER_ASSIGN_OR_RETURN(spec.type, TypeOfSpec(wire));
  const auto& asked = wire.resources();
  Status read = SetPersysAmounts(asked.cpu_millicores(), asked.memory_mb(), asked.disk_gb(), "spec.resources", "",
                                 spec.resources);
  if (read.ok()) {
    switch (spec.type) {
      case WorkloadType::kCompose: read = ReadCompose(wire.compose(), spec); break;
      case WorkloadType::kVm: read = ReadVm(wire, workload, spec); break;
      default:
        if (wire.container().image().empty()) return Refuse("spec.container", "image", "missing; name the image");
        read = ReadContainer(wire.container(), "spec.container", spec);
        if (read.ok()) {
          read = ReadRestartPolicy(wire.container().restart_policy(), "spec.container", "restart_policy", spec.restart);
        }
    }
  }
  if (!read.ok()) return std::unexpected(std::move(read));
  if (const std::string problem = model::TemplateProblem(spec); !problem.empty()) {
    return InvalidArgument(fmt::format("spec.{}.{}", model::WorkloadTypeName(spec.type), problem));
  }
  return spec;
}

void TemplateToControl(const contract::ApplyOnAgent& apply, control::WorkloadSpec& wire) {
  const model::WorkloadTemplate& spec = apply.spec;
  wire.set_type(std::string(model::WorkloadTypeName(spec.type)));
  wire.mutable_resources()->set_cpu_millicores(spec.resources.Get("cpu"));
  wire.mutable_resources()->set_memory_mb(MegabytesOf(spec.resources));
  wire.mutable_resources()->set_disk_gb(GigabytesOf(spec.resources));
  for (const auto& [key, value] : apply.labels) (*wire.mutable_metadata())[key] = value;
  switch (spec.type) {
    case WorkloadType::kCompose:
      wire.mutable_compose()->set_source_type("inline");
      wire.mutable_compose()->set_inline_yaml(spec.compose);
      for (const auto& [key, value] : model::WholeEnv(spec)) (*wire.mutable_compose()->mutable_env())[key] = value;
      break;
    case WorkloadType::kVm: {
      const agent::VMSpec vm = VmOf(apply);
      wire.mutable_vm()->set_vcpus(vm.vcpus());
      wire.mutable_vm()->set_memory_mb(vm.memory_mb());
      wire.mutable_vm()->set_os_image(spec.image);
      (*wire.mutable_metadata())[std::string(kVmSpecKey)] = EncodeVm(vm);
      break;
    }
    default:
      WriteContainer(spec, *wire.mutable_container());
      wire.mutable_container()->set_restart_policy(RestartPolicyToPersys(spec.restart));
  }
}

Result<model::WorkloadTemplate> TemplateFromAgent(const agent::ApplyWorkloadRequest& wire) {
  model::WorkloadTemplate spec;
  Status read;
  switch (wire.spec().spec_case()) {
    case agent::WorkloadSpec::kContainer: {
      const agent::ContainerSpec& container = wire.spec().container();
      spec.type = WorkloadType::kContainer;
      read = ReadContainer(container, "spec.container", spec);
      spec.command.insert(spec.command.end(), container.args().begin(), container.args().end());
      if (read.ok()) {
        read = ReadRestartPolicy(container.restart_policy().policy(), "spec.container.restart_policy", "policy",
                                 spec.restart);
      }
      const agent::ResourceLimits& limits = container.resources();
      if (limits.cpu_shares() > 0) spec.resources.Set("cpu", limits.cpu_shares());
      if (limits.memory_bytes() > 0 && limits.memory_bytes() <= kMostMegabytes * kMebibyte) {
        spec.resources.Set("memory", limits.memory_bytes() * kMilli);
      }
      break;
    }
    case agent::WorkloadSpec::kCompose:
      spec.type = WorkloadType::kCompose;
      spec.compose = PlainYaml(wire.spec().compose().compose_yaml());
      spec.env = {wire.spec().compose().env().begin(), wire.spec().compose().env().end()};
      break;
    case agent::WorkloadSpec::kVm:
      spec.type = WorkloadType::kVm;
      spec.image = wire.id();
      FillFromVm(wire.spec().vm(), spec);
      break;
    case agent::WorkloadSpec::SPEC_NOT_SET: return Refuse("", "spec", "missing; say what is to run");
  }
  if (!read.ok()) return std::unexpected(std::move(read));
  if (const std::string problem = model::TemplateProblem(spec); !problem.empty()) {
    return InvalidArgument(fmt::format("spec.{}.{}", model::WorkloadTypeName(spec.type), problem));
  }
  return spec;
}

void TemplateToAgent(const contract::ApplyOnAgent& apply, agent::ApplyWorkloadRequest& wire) {
  const model::WorkloadTemplate& spec = apply.spec;
  switch (spec.type) {
    case WorkloadType::kCompose: {
      agent::ComposeSpec& into = *wire.mutable_spec()->mutable_compose();
      wire.set_type(agent::WORKLOAD_TYPE_COMPOSE);
      into.set_project_name(apply.workload);
      into.set_compose_yaml(Base64(spec.compose));
      for (const auto& [key, value] : model::WholeEnv(spec)) (*into.mutable_env())[key] = value;
      break;
    }
    case WorkloadType::kVm:
      wire.set_type(agent::WORKLOAD_TYPE_VM);
      *wire.mutable_spec()->mutable_vm() = VmOf(apply);
      break;
    default: {
      agent::ContainerSpec& into = *wire.mutable_spec()->mutable_container();
      wire.set_type(agent::WORKLOAD_TYPE_CONTAINER);
      WriteContainer(spec, into);
      into.mutable_resources()->set_cpu_shares(spec.resources.Get("cpu"));
      into.mutable_resources()->set_memory_bytes(spec.resources.Get("memory") / kMilli);
      into.mutable_restart_policy()->set_policy(RestartPolicyToPersys(spec.restart));
      for (const auto& [key, value] : apply.labels) (*into.mutable_labels())[key] = value;
    }
  }
}

}  // namespace muster::rpc
