#include "runtime/compose_runtime.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <thread>
#include <utility>

#include "base/log.h"
#include "model/compose.h"
#include "runtime/container_body.h"
#include "runtime/container_user.h"
#include "runtime/follow_launches.h"
#include "runtime/host_paths.h"

namespace muster::runtime {
namespace {

using contract::Run;

constexpr size_t kWorkers = 4;
constexpr size_t kMostLogBytes = 4U << 20;  // of a service, when lines are sorted

// Those of the newest launch.
std::vector<ServiceState> Newest(std::vector<ServiceState> services) {
  uint64_t newest = 0;
  for (const ServiceState& service : services) newest = std::max(newest, service.launch);
  std::erase_if(services, [newest](const ServiceState& service) { return service.launch != newest; });
  return services;
}

const ServiceState* FindService(const std::vector<ServiceState>& services, const std::string& name) {
  const auto found = std::ranges::find(services, name, &ServiceState::name);
  return found == services.end() ? nullptr : &*found;
}

contract::LogChunk Named(const std::string& service, contract::LogChunk chunk) {
  chunk.data = service + " | " + chunk.data;
  return chunk;
}

}  // namespace

ComposeRuntime::ComposeRuntime(ContainerOptions options, const Clock& clock, Ended ended)
    : options_(std::move(options)),
      clock_(clock),
      engine_(options_),
      watch_(
          options_.poll, clock, [this](const std::string& workload) { return Look(workload); }, std::move(ended)),
      workers_(kWorkers) {}

ComposeRuntime::~ComposeRuntime() { Close(); }

void ComposeRuntime::Close() {
  engine_.Close();
  watch_.Close();  // first: it gives work to the workers
  workers_.Stop();
}

void ComposeRuntime::Ask(contract::RuntimeRequest request, Done done) {
  const auto task = [this, request = std::move(request), done] { done(Carry(request)); };
  if (!workers_.Post(task)) done(Error(Code::kUnavailable, "the compose runtime is closing"));
}

ComposeRuntime::Reply ComposeRuntime::Carry(const contract::RuntimeRequest& request) {
  if (const auto* start = std::get_if<contract::StartRun>(&request)) return Start(*start);
  if (const auto* stop = std::get_if<contract::StopRun>(&request)) return Stop(*stop);
  if (const auto* remove = std::get_if<contract::RemoveRun>(&request)) return Remove(*remove);
  return List();
}

// --- what there is

Result<std::vector<ServiceState>> ComposeRuntime::Services(const std::string& workload) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> ids, engine_.List(ComposeLabels(options_.name, workload)));
  std::vector<ServiceState> services;
  for (const std::string& id : ids) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<ContainerState> state, engine_.Inspect(id));
    if (!state) continue;
    ServiceState service = ServiceOf(*std::move(state));
    if (service.launch > 0 && !service.name.empty()) services.push_back(std::move(service));
  }
  std::ranges::sort(services, {}, &ServiceState::name);
  return services;
}

Result<Run> ComposeRuntime::Tell(const std::string& workload, const std::vector<ServiceState>& services) {
  ComposeView view = ViewOf(services, watch_.WasStopped(workload), clock_.Read().wall);
  if (!view.begun && view.run.running && watch_.Running().contains(workload)) {
    // It was whole: somebody has removed a container.
    view.fails = true;
  }
  if (!view.begun && !watch_.Running().contains(workload)) {
    // The start was interrupted: the launch has not been, and whoever asks for it again gets the rest.
    view.run.running = false;
    view.run.exit_code.reset();
    --view.run.launch;
    view.run.message = "its start was interrupted";
    return view.run;
  }
  if (view.run.running && view.fails) BringDown(workload, services);
  if (!view.run.running && !view.culprit.empty()) view.run.output = engine_.LastLines(view.culprit);
  if (!view.run.running && !view.begun) {
    view.run.exit_code.reset();
    view.run.message = "the container of a service was removed";
  }
  return view.run;
}

Result<std::optional<Run>> ComposeRuntime::Look(const std::string& workload) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<ServiceState> services, Services(workload));
  if (services.empty()) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(Run run, Tell(workload, Newest(std::move(services))));
  return run;
}

ComposeRuntime::Reply ComposeRuntime::List() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> ids, engine_.List(ComposeLabels(options_.name)));
  std::map<std::string, std::vector<ServiceState>> workloads;
  for (const std::string& id : ids) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<ContainerState> state, engine_.Inspect(id));
    if (!state) continue;
    ServiceState service = ServiceOf(*std::move(state));
    if (service.launch == 0 || service.name.empty()) continue;
    workloads[service.state.Label("muster.workload")].push_back(std::move(service));
  }
  contract::RuntimeReply found;
  for (auto& [workload, services] : workloads) {
    MUSTER_ASSIGN_OR_RETURN(Run run, Tell(workload, Newest(std::move(services))));
    watch_.Follow(run);
    found.runs.push_back(std::move(run));
  }
  return found;
}

// --- start

ComposeRuntime::Reply ComposeRuntime::Start(const contract::StartRun& start) {
  MUSTER_ASSIGN_OR_RETURN(model::ComposeFile file, model::ReadCompose(start.spec.compose, start.spec.env));
  for (model::ComposeService& service : file.services) {
    if (Status allowed = AllowVolumes(service.volumes, options_.host_paths); !allowed.ok()) {
      return Error(allowed.code(), "services." + service.name + "." + allowed.message());
    }
  }
  MUSTER_ASSIGN_OR_RETURN(std::vector<ServiceState> services, Services(start.workload));
  const auto mine = [&](const ServiceState& service) { return service.launch == start.launch; };
  const bool begun = std::ranges::any_of(services, mine) && ViewOf(Newest(services), false, clock_.Read().wall).begun;
  if (!begun) {
    std::vector<ServiceState> others;
    std::ranges::copy_if(services, std::back_inserter(others), std::not_fn(mine));
    std::erase_if(services, std::not_fn(mine));
    if (Status gone = RemoveContainers(others); !gone.ok()) return std::unexpected(std::move(gone));
    watch_.Forget(start.workload);
    if (services.empty()) {
      Status gone = engine_.RemoveNetworks(ComposeLabels(options_.name, start.workload));
      if (!gone.ok()) return std::unexpected(std::move(gone));
    }
    MUSTER_ASSIGN_OR_RETURN(const DockerEngine::Refusal refusal, Launch(start, file, services));
    if (refusal) {
      MUSTER_ASSIGN_OR_RETURN(services, Services(start.workload));
      if (Status gone = RemoveContainers(services); !gone.ok()) return std::unexpected(std::move(gone));
      Status gone = engine_.RemoveNetworks(ComposeLabels(options_.name, start.workload));
      if (!gone.ok()) return std::unexpected(std::move(gone));
      return contract::RuntimeReply{.runs = {NeverRan(start, clock_.Read().wall, *refusal)}};
    }
  }
  // From here on a service that is missing was removed by somebody.
  watch_.Follow({.workload = start.workload, .launch = start.launch, .running = true});
  MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Look(start.workload));
  if (!run) return Error(Code::kUnavailable, "the containers went away as they were started");
  if (!run->running) watch_.Forget(start.workload);  // the reply tells of the end
  return contract::RuntimeReply{.runs = {*std::move(run)}};
}

Result<DockerEngine::Refusal> ComposeRuntime::Launch(const contract::StartRun& start, const model::ComposeFile& file,
                                                     const std::vector<ServiceState>& known) {
  const DockerEngine::Labels labels = ComposeLabels(options_.name, start.workload);
  auto subnet = engine_.EnsureNetwork(ComposeNetwork(options_.name, start.workload, start.launch), labels);
  if (!subnet && subnet.error().code() == Code::kInvalidArgument) return subnet.error().message();
  if (!subnet) return std::unexpected(subnet.error());
  const auto addresses = ComposeAddresses(file, *subnet);
  if (!addresses) return addresses.error().message();
  for (const std::string& volume : file.volumes) {
    MUSTER_ASSIGN_OR_RETURN(const DockerEngine::Refusal refusal,
                            engine_.EnsureVolume(ComposeVolume(options_.name, start.workload, volume), labels));
    if (refusal) return "volume " + volume + ": " + *refusal;
  }
  for (const model::ComposeService& service : file.services) {
    if (FindService(known, service.name) != nullptr) continue;
    ContainerSpec spec = ComposeSpec(start, file, service, options_.name, *addresses);
    MUSTER_ASSIGN_OR_RETURN(const DockerEngine::Refusal missing, ChooseUser(engine_, options_, start.tenant, spec));
    if (missing) return "service " + service.name + ": " + *missing;
    const auto body = ContainerBody(spec);
    if (!body) return "service " + service.name + ": " + body.error().message();
    MUSTER_ASSIGN_OR_RETURN(
        const DockerEngine::Refusal refusal,
        engine_.Create(ComposeContainer(options_.name, start.workload, service.name), service.image, *body));
    if (refusal) return "service " + service.name + ": " + *refusal;
  }
  for (const model::ComposeService& service : file.services) {
    const ServiceState* const there = FindService(known, service.name);
    if (there != nullptr && there->state.begun()) continue;
    MUSTER_ASSIGN_OR_RETURN(const DockerEngine::Refusal refusal,
                            engine_.Start(ComposeContainer(options_.name, start.workload, service.name)));
    if (refusal) return "service " + service.name + ": " + *refusal;
  }
  return std::nullopt;
}

// --- stop and remove

Status ComposeRuntime::StopServices(const std::vector<ServiceState>& services, Duration grace) {
  std::map<int32_t, std::vector<std::string>> levels;
  for (const ServiceState& service : services) {
    if (service.state.begun()) levels[service.depth].push_back(service.state.id);
  }
  const MonoTime end = clock_.Read().mono + grace;
  auto left = static_cast<int64_t>(levels.size());
  Status first;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level, --left) {
    // Each level has a fair part of what is left of the grace.
    const Duration part = std::max(Duration::zero(), end - clock_.Read().mono) / left;
    std::vector<std::future<Status>> stops;
    for (const std::string& id : level->second) {
      stops.push_back(std::async(std::launch::async, [this, id, part] { return engine_.Stop(id, part); }));
    }
    for (std::future<Status>& stop : stops) {
      if (Status status = stop.get(); !status.ok() && first.ok()) first = std::move(status);
    }
  }
  return first;
}

ComposeRuntime::Reply ComposeRuntime::Stop(const contract::StopRun& stop) {
  watch_.NoteStop(stop.workload);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ServiceState> services, Services(stop.workload));
  if (Status status = StopServices(services, stop.grace); !status.ok()) return std::unexpected(std::move(status));
  MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Look(stop.workload));
  contract::RuntimeReply done;
  if (run) done.runs.push_back(*std::move(run));
  return done;
}

void ComposeRuntime::BringDown(const std::string& workload, const std::vector<ServiceState>& services) {
  {
    const std::lock_guard lock(mu_);
    if (!falling_.insert(workload).second) return;
  }
  const auto task = [this, workload, services] {
    if (const Status status = StopServices(services, services.front().grace); !status.ok()) {
      log::Warn("the services beside a failed one could not be stopped",
                {{"workload", workload}, {"reason", status.message()}});
    }
    const std::lock_guard lock(mu_);
    falling_.erase(workload);
  };
  if (workers_.Post(task)) return;
  const std::lock_guard lock(mu_);
  falling_.erase(workload);
}

Status ComposeRuntime::RemoveContainers(const std::vector<ServiceState>& services) {
  for (const ServiceState& service : services) MUSTER_RETURN_IF_ERROR(engine_.Remove(service.state.id));
  return {};
}

ComposeRuntime::Reply ComposeRuntime::Remove(const contract::RemoveRun& remove) {
  watch_.ForgetRemoved(remove.workload);
  cpu_.Forget(remove.workload);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ServiceState> services, Services(remove.workload));
  const DockerEngine::Labels labels = ComposeLabels(options_.name, remove.workload);
  Status status = RemoveContainers(services);
  if (status.ok()) status = engine_.RemoveNetworks(labels);
  if (status.ok()) status = engine_.RemoveVolumes(labels);
  if (!status.ok()) return std::unexpected(std::move(status));
  return contract::RuntimeReply{};
}

// --- logs and usage

void ComposeRuntime::ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) {
  std::vector<ServiceState> newest;
  const EndWatch::Reader reader(watch_, request.workload);
  uint64_t forgotten = 0;
  const LaunchLogs logs{.newest = [&]() -> Result<std::optional<uint64_t>> {
                          forgotten = reader.Forgotten();
                          MUSTER_ASSIGN_OR_RETURN(std::vector<ServiceState> services, Services(request.workload));
                          newest = Newest(std::move(services));
                          const auto begun = [](const ServiceState& service) { return service.state.begun(); };
                          if (newest.empty() || !std::ranges::all_of(newest, begun))
                            return std::nullopt;  // made, and not started yet
                          return newest.front().launch;
                        },
                        .read =
                            [&](const contract::ReadLogs& asked) {
                              // Podman does not end the stream of a container that was removed.
                              const auto over = [&] { return sink.Gone() || reader.Forgotten() != forgotten; };
                              return asked.follow ? Follow(newest, asked, over, sink) : ReadSorted(newest, asked, sink);
                            },
                        .over = [&] { return engine_.closing() || sink.Gone() || reader.Removed(); }};
  sink.End(FollowLaunches(request, options_.poll, logs));
}

Status ComposeRuntime::ReadSorted(const std::vector<ServiceState>& services, const contract::ReadLogs& request,
                                  contract::LogsSink& sink) {
  std::vector<contract::LogChunk> lines;
  for (const ServiceState& service : services) {
    std::deque<contract::LogChunk> own;
    size_t bytes = 0;
    const Status status = engine_.ReadLogs(
        service.state.id, request,
        [&](contract::LogChunk chunk) {
          bytes += chunk.data.size();
          own.push_back(Named(service.name, std::move(chunk)));
          for (; bytes > kMostLogBytes; own.pop_front()) bytes -= std::min(bytes, own.front().data.size());
          return true;
        },
        [&] { return sink.Gone(); });
    if (!status.ok()) return status;
    std::ranges::move(own, std::back_inserter(lines));
  }
  std::ranges::stable_sort(lines, {}, &contract::LogChunk::at);
  const size_t most = request.tail ? static_cast<size_t>(*request.tail) : lines.size();
  for (size_t i = lines.size() - std::min(most, lines.size()); i < lines.size(); ++i) {
    if (!sink.Write(std::move(lines[i]))) break;
  }
  return {};
}

Status ComposeRuntime::Follow(const std::vector<ServiceState>& services, const contract::ReadLogs& request,
                              const std::function<bool()>& over, contract::LogsSink& sink) {
  std::mutex mu;  // one line at a time
  std::vector<std::future<Status>> streams;
  for (const ServiceState& service : services) {
    streams.push_back(std::async(std::launch::async, [&, id = service.state.id, name = service.name] {
      return engine_.ReadLogs(
          id, request,
          [&](contract::LogChunk chunk) {
            const std::lock_guard lock(mu);
            return sink.Write(Named(name, std::move(chunk)));
          },
          over);
    }));
  }
  Status first;
  for (std::future<Status>& stream : streams) {
    if (Status status = stream.get(); !status.ok() && first.ok()) first = std::move(status);
  }
  return first;
}

std::vector<Usage> ComposeRuntime::Measure() {
  std::vector<Usage> all;
  for (const auto& [workload, launch] : watch_.Running()) {
    auto services = Services(workload);
    if (!services) continue;
    int64_t cpu_ns = 0;
    contract::WorkloadUsage sum{.source = "docker"};
    for (const ServiceState& service : *services) {
      if (!service.state.running) continue;
      const auto measured = engine_.Measure(service.state.id);
      if (!measured) continue;
      cpu_ns += measured->cpu_ns;
      sum.memory_bytes += measured->usage.memory_bytes;
      sum.net_rx_bytes += measured->usage.net_rx_bytes;
      sum.net_tx_bytes += measured->usage.net_tx_bytes;
    }
    const Now now = clock_.Read();
    sum.collected_at = now.wall;
    sum.cpu_milli = cpu_.Milli(workload, cpu_ns, now.mono);
    all.emplace_back(workload, std::move(sum));
  }
  return all;
}

}  // namespace muster::runtime
