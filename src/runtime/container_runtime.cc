#include "runtime/container_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/container_body.h"
#include "runtime/container_user.h"
#include "runtime/follow_launches.h"
#include "runtime/host_paths.h"

namespace muster::runtime {
namespace {

using contract::Run;

constexpr size_t kWorkers = 4;

// `stopped`: it was asked to end.
Run RunOf(const ContainerState& state, bool stopped) {
  Run run{.workload = state.Label("muster.workload"),
          .launch = static_cast<uint64_t>(std::strtoull(state.Label("muster.launch").c_str(), nullptr, 10)),
          .revision = state.Label("muster.revision"),
          .running = state.running,
          .started_at = state.started_at,
          .metadata = {{"container.id", state.id.substr(0, 12)}, {"container.image", state.image}}};
  if (run.running) return run;
  if (!state.begun()) {
    // Made and not started: the launch has not been, and whoever asks for it again gets it.
    if (run.launch > 0) --run.launch;
    run.message = "its start was interrupted";
    return run;
  }
  if (state.finished_at == WallTime{}) {
    run.ended_at = state.started_at;
    run.message = "the engine did not record how it ended";
    return run;
  }
  run.ended_at = state.finished_at;
  run.exit_code = state.exit_code;
  run.oom_killed = state.oom_killed;
  run.message = HowItEnded(state, stopped);
  return run;
}

}  // namespace

ContainerRuntime::ContainerRuntime(ContainerOptions options, const Clock& clock, Ended ended)
    : options_(std::move(options)),
      clock_(clock),
      engine_(options_),
      watch_(
          options_.poll, clock, [this](const std::string& workload) { return Look(NameOf(workload)); },
          std::move(ended)),
      workers_(kWorkers) {}

ContainerRuntime::~ContainerRuntime() { Close(); }

void ContainerRuntime::Close() {
  engine_.Close();
  workers_.Stop();
  watch_.Close();
}

std::string ContainerRuntime::NameOf(const std::string& workload) const {
  return fmt::format("muster-{}-{}", options_.name, workload);
}

void ContainerRuntime::Ask(contract::RuntimeRequest request, Done done) {
  const auto task = [this, request = std::move(request), done] { done(Carry(request)); };
  if (!workers_.Post(task)) done(Error(Code::kUnavailable, "the container runtime is closing"));
}

ContainerRuntime::Reply ContainerRuntime::Carry(const contract::RuntimeRequest& request) {
  if (const auto* start = std::get_if<contract::StartRun>(&request)) return Start(*start);
  if (const auto* stop = std::get_if<contract::StopRun>(&request)) return Stop(*stop);
  if (const auto* remove = std::get_if<contract::RemoveRun>(&request)) return Remove(*remove);
  return List();
}

Result<std::optional<Run>> ContainerRuntime::Look(const std::string& container) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<ContainerState> state, engine_.Inspect(container));
  if (!state) return std::nullopt;
  Run run = RunOf(*state, watch_.WasStopped(state->Label("muster.workload")));
  const bool bad = run.exit_code.has_value() && (run.oom_killed || run.exit_code != 0);
  if (bad) run.output = engine_.LastLines(container);
  return run;
}

Result<DockerEngine::Refusal> ContainerRuntime::NameVolumes(contract::StartRun& start,
                                                            const std::set<std::string>& mounted) const {
  for (model::VolumeMount& mount : start.spec.volumes) {
    if (mount.source.starts_with('/')) continue;
    const std::string own = TenantVolume(options_.name, start.tenant, mount.source);
    const DockerEngine::Labels labels = {{"muster.agent", options_.name}, {"muster.tenant", start.tenant}};
    MUSTER_ASSIGN_OR_RETURN(const bool made, engine_.HasVolume(own));
    if (!made) {
      if (mounted.contains(mount.source) && !mount.source.starts_with("muster-")) continue;
      MUSTER_ASSIGN_OR_RETURN(const bool plain, engine_.HasVolume(mount.source));
      if (plain) {
        return fmt::format(
            "volumes: the engine has a volume \"{0}\" of an earlier agent or of others, and tenants have their own; "
            "copy what is needed of it into a volume \"{1}\", or make an empty \"{1}\"",
            mount.source, own);
      }
    }
    MUSTER_ASSIGN_OR_RETURN(DockerEngine::Refusal refusal, engine_.EnsureVolume(own, labels));
    if (refusal) return "volume " + mount.source + ": " + *refusal;
    mount.source = own;
  }
  return std::nullopt;
}

Result<DockerEngine::Refusal> ContainerRuntime::Make(contract::StartRun start, const std::string& name,
                                                     const std::optional<ContainerState>& before) {
  // What the container before mounts is kept if it was the same tenant's; those of earlier agents do not say whose.
  const bool own =
      before && (!before->labels.contains("muster.tenant") || before->Label("muster.tenant") == start.tenant);
  MUSTER_ASSIGN_OR_RETURN(DockerEngine::Refusal refusal,
                          NameVolumes(start, own ? before->volumes : std::set<std::string>()));
  if (refusal) return refusal;
  ContainerSpec spec = SpecOf(start, options_.name);
  MUSTER_ASSIGN_OR_RETURN(refusal, ChooseUser(engine_, options_, start.tenant, spec));
  if (refusal) return refusal;
  MUSTER_ASSIGN_OR_RETURN(const std::string body, ContainerBody(spec));
  return engine_.Create(name, spec.image, body);
}

ContainerRuntime::Reply ContainerRuntime::Start(const contract::StartRun& asked) {
  contract::StartRun start = asked;
  if (Status allowed = AllowVolumes(start.spec.volumes, options_.host_paths); !allowed.ok()) {
    return std::unexpected(std::move(allowed));
  }
  const std::string name = NameOf(start.workload);
  MUSTER_ASSIGN_OR_RETURN(const std::optional<ContainerState> known, engine_.Inspect(name));
  const auto never = [&](const std::string& why) {
    return contract::RuntimeReply{.runs = {NeverRan(start, clock_.Read().wall, why)}};
  };
  if (known && (known->Label("muster.agent") != options_.name || known->Label("muster.workload") != start.workload)) {
    return never(fmt::format("the engine has a container \"{}\" that is not this workload's", name));
  }
  const bool same = known && known->Label("muster.launch") == std::to_string(start.launch);
  if (same && known->begun()) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Look(name));
    if (!run) return Error(Code::kUnavailable, "the container went away");
    watch_.Follow(*run);
    return contract::RuntimeReply{.runs = {*std::move(run)}};
  }
  if (known && !same) {
    if (Status gone = engine_.Remove(name); !gone.ok()) return std::unexpected(std::move(gone));
    watch_.Forget(start.workload);
  }
  if (!same) {
    MUSTER_ASSIGN_OR_RETURN(const DockerEngine::Refusal refusal, Make(start, name, known));
    if (refusal) return never(*refusal);
  }
  MUSTER_ASSIGN_OR_RETURN(const DockerEngine::Refusal refusal, engine_.Start(name));
  if (refusal) {
    // The container stays made and not started: it must go, or the next look takes it for a launch that is coming.
    if (Status gone = engine_.Remove(name); !gone.ok()) return std::unexpected(std::move(gone));
    return never(*refusal);
  }
  MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Look(name));
  if (!run) return Error(Code::kUnavailable, "the container went away as it was started");
  watch_.Follow(*run);
  return contract::RuntimeReply{.runs = {*std::move(run)}};
}

ContainerRuntime::Reply ContainerRuntime::Stop(const contract::StopRun& stop) {
  watch_.NoteStop(stop.workload);
  const std::string name = NameOf(stop.workload);
  if (Status status = engine_.Stop(name, stop.grace); !status.ok()) return std::unexpected(std::move(status));
  MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Look(name));
  contract::RuntimeReply done;
  if (run) done.runs.push_back(*std::move(run));
  return done;
}

ContainerRuntime::Reply ContainerRuntime::Remove(const contract::RemoveRun& remove) {
  watch_.ForgetRemoved(remove.workload);
  cpu_.Forget(remove.workload);
  if (Status status = engine_.Remove(NameOf(remove.workload)); !status.ok()) return std::unexpected(std::move(status));
  return contract::RuntimeReply{};
}

ContainerRuntime::Reply ContainerRuntime::List() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> ids, engine_.List({{"muster.agent", options_.name}}));
  contract::RuntimeReply found;
  for (const std::string& id : ids) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Look(id));
    if (!run || run->workload.empty()) continue;
    watch_.Follow(*run);
    found.runs.push_back(*std::move(run));
  }
  std::ranges::sort(found.runs, {}, &Run::workload);
  return found;
}

void ContainerRuntime::ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) {
  const std::string name = NameOf(request.workload);
  const EndWatch::Reader reader(watch_, request.workload);
  uint64_t forgotten = 0;
  const LaunchLogs logs{.newest = [&]() -> Result<std::optional<uint64_t>> {
                          forgotten = reader.Forgotten();
                          MUSTER_ASSIGN_OR_RETURN(const std::optional<ContainerState> state, engine_.Inspect(name));
                          if (!state || !state->begun()) return std::nullopt;  // made, and not started yet
                          return std::strtoull(state->Label("muster.launch").c_str(), nullptr, 10);
                        },
                        .read =
                            [&](const contract::ReadLogs& asked) {
                              // Podman does not end the stream of a container that was removed.
                              return engine_.ReadLogs(
                                  name, asked, [&](contract::LogChunk chunk) { return sink.Write(std::move(chunk)); },
                                  [&] { return sink.Gone() || reader.Forgotten() != forgotten; });
                            },
                        .over = [&] { return engine_.closing() || sink.Gone() || reader.Removed(); }};
  sink.End(FollowLaunches(request, options_.poll, logs));
}

std::vector<Usage> ContainerRuntime::Measure() {
  std::vector<Usage> all;
  for (const auto& [workload, launch] : watch_.Running()) {
    auto measured = engine_.Measure(NameOf(workload));
    if (!measured) continue;
    const Now now = clock_.Read();
    measured->usage.collected_at = now.wall;
    measured->usage.cpu_milli = cpu_.Milli(workload, measured->cpu_ns, now.mono);
    all.emplace_back(workload, std::move(measured->usage));
  }
  return all;
}

}  // namespace muster::runtime
