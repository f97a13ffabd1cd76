#include "runtime/compose_project.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/hash.h"

namespace muster::runtime {
namespace {

constexpr const char* kAgent = "muster.compose.agent";
constexpr const char* kWorkload = "muster.workload";
constexpr const char* kLaunch = "muster.launch";
constexpr const char* kRevision = "muster.revision";
constexpr const char* kService = "muster.compose.service";
constexpr const char* kServices = "muster.compose.services";  // how many
constexpr const char* kDepth = "muster.compose.depth";
constexpr const char* kGrace = "muster.compose.grace_ms";

// An engine that restarts a container does so at once, or says that it is about to.
constexpr Duration kRestartDelay = 5s;
constexpr uint32_t kFirstAddress = 10;  // in the subnet; the gateway is below

std::string Hash(std::initializer_list<std::string_view> parts) {
  Hasher hasher;
  for (const std::string_view part : parts) hasher.Add(std::string(part));
  return fmt::format("{:016x}", hasher.value());
}

uint64_t NumberOf(const ContainerState& state, const char* label) {
  return std::strtoull(state.Label(label).c_str(), nullptr, 10);
}

// Whether the engine starts it again by itself.
bool ComesBack(const ContainerState& state, bool stopped, WallTime now) {
  if (state.running || state.restarting) return true;
  if (!state.begun()) return false;
  const bool policy = state.restart == "always" || state.restart == "unless-stopped" ||
                      (state.restart == "on-failure" && state.exit_code != 0 &&
                       (state.max_restarts == 0 || state.restarts < state.max_restarts));
  return policy && !stopped && now - state.finished_at < kRestartDelay;
}

}  // namespace

DockerEngine::Labels ComposeLabels(const std::string& agent, const std::string& workload) {
  return {{kAgent, agent}, {kWorkload, workload}};
}
DockerEngine::Labels ComposeLabels(const std::string& agent) { return {{kAgent, agent}}; }

std::string ComposeNetwork(const std::string& agent, const std::string& workload, uint64_t launch) {
  return fmt::format("muster-{}-{}", Hash({agent, workload}), launch);
}

std::string ComposeVolume(const std::string& agent, const std::string& workload, const std::string& volume) {
  return fmt::format("muster-{}-{}", Hash({agent, workload}), volume);
}

// The ids alone could be taken apart in two ways, and be too long.
std::string ComposeContainer(const std::string& agent, const std::string& workload, const std::string& service) {
  constexpr size_t kReadable = 40;
  return fmt::format("muster-{}-{}-{}", workload.substr(0, kReadable), service, Hash({agent, workload, service}));
}

Result<std::map<std::string, std::string>> ComposeAddresses(const model::ComposeFile& file, std::string_view subnet) {
  const auto wrong = [&] { return InvalidArgument(fmt::format("the engine's subnet \"{}\" cannot be used", subnet)); };
  std::array<uint32_t, 5> numbers{};  // a.b.c.d/length
  const char* at = subnet.data();
  const char* const end = at + subnet.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers.at(i));
    const char expected = i < 3 ? '.' : '/';
    if (error != std::errc() || numbers.at(i) > 255) return wrong();
    const bool last = i + 1 == numbers.size();
    if (last ? next != end : (next == end || *next != expected)) return wrong();
    at = next + 1;
  }
  const uint32_t length = numbers[4];
  if (length < 8 || length > 30 || (uint64_t{1} << (32 - length)) <= kFirstAddress + file.services.size() + 1)
    return wrong();
  const uint32_t base = numbers[0] << 24 | numbers[1] << 16 | numbers[2] << 8 | numbers[3];
  std::vector<std::string> names;
  for (const model::ComposeService& service : file.services) names.push_back(service.name);
  std::ranges::sort(names);
  std::map<std::string, std::string> addresses;
  for (size_t i = 0; i < names.size(); ++i) {
    const uint32_t address = base + kFirstAddress + static_cast<uint32_t>(i);
    addresses[names[i]] =
        fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
  }
  return addresses;
}

ContainerSpec ComposeSpec(const contract::StartRun& start, const model::ComposeFile& file,
                          const model::ComposeService& service, const std::string& agent,
                          const std::map<std::string, std::string>& addresses) {
  ContainerSpec spec{.image = service.image,
                     .entrypoint = service.entrypoint,
                     .command = service.command,
                     .env = service.env,
                     .labels = start.labels,
                     .ports = service.ports,
                     .volumes = service.volumes,
                     .limits = service.limits,
                     .restart = service.restart,
                     .max_restarts = service.max_restarts,
                     .network = ComposeNetwork(agent, start.workload, start.launch),
                     .address = addresses.at(service.name),
                     .hosts = addresses};
  spec.env["MUSTER_WORKLOAD"] = start.workload;
  spec.env["MUSTER_SERVICE"] = service.name;
  for (const auto& [key, value] : ComposeLabels(agent, start.workload)) spec.labels[key] = value;
  spec.labels[kLaunch] = std::to_string(start.launch);
  spec.labels[kRevision] = start.revision;
  spec.labels[kService] = service.name;
  spec.labels[kServices] = std::to_string(file.services.size());
  spec.labels[kDepth] = std::to_string(service.depth);
  spec.labels[kGrace] = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(start.spec.grace).count());
  for (model::VolumeMount& mount : spec.volumes) {
    if (!mount.source.starts_with('/')) mount.source = ComposeVolume(agent, start.workload, mount.source);
  }
  return spec;
}

ServiceState ServiceOf(ContainerState state) {
  ServiceState service{.name = state.Label(kService),
                       .launch = NumberOf(state, kLaunch),
                       .depth = static_cast<int32_t>(NumberOf(state, kDepth)),
                       .grace = std::chrono::milliseconds(NumberOf(state, kGrace))};
  service.state = std::move(state);
  return service;
}

ComposeView ViewOf(const std::vector<ServiceState>& services, bool stopped, WallTime now) {
  const ContainerState& first = services.front().state;
  ComposeView view{.run = {.workload = first.Label(kWorkload),
                           .launch = services.front().launch,
                           .revision = first.Label(kRevision)}};
  contract::Run& run = view.run;
  view.begun = services.size() == NumberOf(first, kServices);
  const ServiceState* failed = nullptr;  // the first that did
  for (const ServiceState& service : services) {
    const ContainerState& state = service.state;
    if (!state.begun()) {
      view.begun = false;
      run.metadata["compose." + service.name] = "not started";
      continue;
    }
    const bool comes_back = ComesBack(state, stopped, now);
    run.running = run.running || comes_back;
    run.metadata["compose." + service.name] = state.running ? "running"
                                              : comes_back  ? "restarting"
                                                            : HowItEnded(state, stopped);
    if (run.started_at == WallTime{} || state.started_at < run.started_at) run.started_at = state.started_at;
    if (comes_back) continue;
    run.ended_at = std::max(run.ended_at, state.finished_at);
    if (state.exit_code == 0 && !state.oom_killed) continue;
    if (failed == nullptr || state.finished_at < failed->state.finished_at) failed = &service;
  }
  view.fails = failed != nullptr;
  if (failed != nullptr) view.culprit = failed->state.id;
  if (run.running) {
    run.ended_at = {};
    return view;
  }
  run.exit_code = failed == nullptr ? 0 : failed->state.exit_code;
  run.oom_killed = failed != nullptr && failed->state.oom_killed;
  run.message = failed == nullptr ? std::string("every service has ended well")
                                  : fmt::format("service {}: {}", failed->name, HowItEnded(failed->state, stopped));
  return view;
}

}  // namespace muster::runtime
