// ComposeRuntime: workloads of the type `compose`, through the Docker Engine API: a container for each service of the
// file (model/compose.h), in a network of the workload's own, where services know each other by name.
//
// The whole file is read and every container made, with its image there, before the first one starts; a file that
// cannot be read starts nothing. Services start in the order of depends_on and stop in the opposite order.
//
// A workload has one run. It runs while a service runs. When a service fails and is not to be restarted by the engine
// (`restart` of the file), the others are stopped and the run has failed; when all have ended well, so has the run.
// What follows is the core's decision, by the workload's own restart policy, and a launch begins with all services
// anew. Named volumes stay until the workload is removed.
//
// Everything carries labels, so that a runtime that is opened again finds it. A launch that an agent left half made is
// told of as one that has not been, and finished when it is asked for again: no service starts twice.
//
// Thread-safety: as Runtime.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/compose_project.h"
#include "runtime/cpu_meter.h"
#include "runtime/docker_engine.h"
#include "runtime/end_watch.h"
#include "runtime/runtime.h"
#include "runtime/worker_pool.h"

namespace muster::runtime {

class ComposeRuntime final : public Runtime {
 public:
  // The clock outlives the runtime.
  ComposeRuntime(ContainerOptions options, const Clock& clock, Ended ended);
  ~ComposeRuntime() override;
  ComposeRuntime(const ComposeRuntime&) = delete;
  ComposeRuntime& operator=(const ComposeRuntime&) = delete;

  model::WorkloadType type() const override { return model::WorkloadType::kCompose; }
  void Ask(contract::RuntimeRequest request, Done done) override;
  // Each line begins with the name of its service.
  void ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) override;
  std::vector<Usage> Measure() override;
  void Close() override;
  std::vector<std::string> Missing() const override { return {}; }

 private:
  using Reply = Result<contract::RuntimeReply>;

  Reply Carry(const contract::RuntimeRequest& request);
  Reply Start(const contract::StartRun& start);
  Reply Stop(const contract::StopRun& stop);
  Reply Remove(const contract::RemoveRun& remove);
  Reply List();

  // Makes what is missing of a launch, and starts what is not started: why it could not be, or nothing.
  Result<DockerEngine::Refusal> Launch(const contract::StartRun& start, const model::ComposeFile& file,
                                       const std::vector<ServiceState>& known);
  // The containers of a workload, of whatever launch, by name.
  Result<std::vector<ServiceState>> Services(const std::string& workload);
  // The newest launch; nothing if there is none.
  Result<std::optional<contract::Run>> Look(const std::string& workload);
  Result<contract::Run> Tell(const std::string& workload, const std::vector<ServiceState>& services);
  // Stops those that run, the dependent ones first, within the grace.
  Status StopServices(const std::vector<ServiceState>& services, Duration grace);
  // A service has failed: the rest of the run is stopped on a worker, once.
  void BringDown(const std::string& workload, const std::vector<ServiceState>& services);
  Status RemoveContainers(const std::vector<ServiceState>& services);
  Status ReadSorted(const std::vector<ServiceState>& services, const contract::ReadLogs& request,
                    contract::LogsSink& sink);
  Status Follow(const std::vector<ServiceState>& services, const contract::ReadLogs& request,
                const std::function<bool()>& over, contract::LogsSink& sink);

  const ContainerOptions options_;
  const Clock& clock_;
  DockerEngine engine_;
  CpuMeter cpu_;
  std::mutex mu_;
  std::set<std::string> falling_;  // guarded by mu_: workloads that are being brought down
  EndWatch watch_;
  WorkerPool workers_;  // last: its tasks use the rest
};

}  // namespace muster::runtime
