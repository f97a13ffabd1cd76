// ContainerRuntime: workloads of the type `container`, through the Docker Engine API on a Unix socket (dockerd, or
// podman's service).
//
// A workload is one container, muster-<agent>-<workload>, with labels that say which launch and revision it is; so a
// runtime that is opened again finds what an earlier agent has started. The engine restarts nothing: that is the core's
// decision. Limits of the template become the engine's: cpu as a quota, memory as a limit without swap. Containers run
// without new privileges, as a user of their tenant (container_user.h); `privileged` does not exist in a template.
// Named volumes belong to the tenant.
//
// An image that the engine does not have is pulled once; if that fails, the run has ended before it began, and says
// why.
//
// The engine may be gone for a while, or not be there yet: requests fail with UNAVAILABLE and are asked again by the
// core; containers run on.
//
// Thread-safety: as Runtime.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/cpu_meter.h"
#include "runtime/docker_engine.h"
#include "runtime/end_watch.h"
#include "runtime/runtime.h"
#include "runtime/worker_pool.h"

namespace muster::runtime {

class ContainerRuntime final : public Runtime {
 public:
  // The clock outlives the runtime.
  ContainerRuntime(ContainerOptions options, const Clock& clock, Ended ended);
  ~ContainerRuntime() override;
  ContainerRuntime(const ContainerRuntime&) = delete;
  ContainerRuntime& operator=(const ContainerRuntime&) = delete;

  model::WorkloadType type() const override { return model::WorkloadType::kContainer; }
  void Ask(contract::RuntimeRequest request, Done done) override;
  void ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) override;
  std::vector<Usage> Measure() override;
  void Close() override;
  std::vector<std::string> Missing() const override { return {}; }

 private:
  using Reply = Result<contract::RuntimeReply>;

  std::string NameOf(const std::string& workload) const;

  Reply Carry(const contract::RuntimeRequest& request);
  Reply Start(const contract::StartRun& asked);
  // Makes the container of a launch that is allowed; `before` is that of the launch before it. Why the engine does not,
  // or nothing.
  Result<DockerEngine::Refusal> Make(contract::StartRun start, const std::string& name,
                                     const std::optional<ContainerState>& before);
  // Named volumes become those of the tenant. What the container before mounts by its plain name, as earlier agents
  // named volumes, stays in use; any other volume of such a name is not silently replaced by an empty one.
  Result<DockerEngine::Refusal> NameVolumes(contract::StartRun& start, const std::set<std::string>& mounted) const;
  Reply Stop(const contract::StopRun& stop);
  Reply Remove(const contract::RemoveRun& remove);
  Reply List();
  // The newest launch as the engine has it; nothing if there is no container.
  Result<std::optional<contract::Run>> Look(const std::string& container);

  const ContainerOptions options_;
  const Clock& clock_;
  DockerEngine engine_;
  CpuMeter cpu_;
  EndWatch watch_;
  WorkerPool workers_;  // last: its tasks use the rest
};

}  // namespace muster::runtime
