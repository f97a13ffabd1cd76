// ContainerRuntime: workloads of the type `container`, through the Docker Engine API on a Unix socket (dockerd, or
// podman's service).
//
// A workload is one container, muster-<agent>-<workload>, with labels that say which launch and revision it is; so a
// runtime that is opened again finds what an earlier agent has started. The engine restarts nothing: that is the core's
// decision. Limits of the template become the engine's: cpu as a quota, memory as a limit without swap. Containers run
// without new privileges; `privileged` does not exist in a template.
//
// An image that the engine does not have is pulled once; if that fails, the run has ended before it began, and says
// why.
//
// The engine may be gone for a while: requests fail with UNAVAILABLE and are asked again by the core; containers run
// on.
//
// Thread-safety: as Runtime.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/docker_api.h"
#include "runtime/runtime.h"
#include "runtime/worker_pool.h"

namespace muster::runtime {

struct ContainerOptions {
  std::string socket = "/var/run/docker.sock";
  std::string name = "agent";  // tells the containers of agents on one host apart
  Duration poll = 500ms;       // how often the engine is asked for containers that have ended
  Duration timeout = 20s;      // of a request
  Duration pull_timeout = 10min;
};

class ContainerRuntime final : public Runtime {
 public:
  // The clock outlives the runtime. UNAVAILABLE if nobody answers on the socket, naming it.
  static Result<std::unique_ptr<ContainerRuntime>> Open(ContainerOptions options, const Clock& clock, Ended ended);
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

  ContainerRuntime(ContainerOptions options, const Clock& clock, Ended ended);
  std::string NameOf(const std::string& workload) const;

  Reply Carry(const contract::RuntimeRequest& request);
  Reply Start(const contract::StartRun& start);
  Reply Stop(const contract::StopRun& stop);
  Reply Remove(const contract::RemoveRun& remove);
  Reply List();
  // The newest launch as the engine has it; nothing if there is no container.
  Result<std::optional<contract::Run>> Inspect(const std::string& container);
  // Makes the container, with its image pulled if it is missing. A run that could not begin, or nothing if it is made.
  Result<std::optional<contract::Run>> Create(const contract::StartRun& start);
  Status Pull(const std::string& image);
  bool WasStopped(const std::string& workload);
  // The last lines of a container that ended badly.
  std::string LastLines(const std::string& container) const;

  // Follows what runs, and tells of each end once.
  void Follow(const contract::Run& run);
  void Watch();
  void LookForEnds();

  const ContainerOptions options_;
  const Clock& clock_;
  const Ended ended_;
  const DockerApi api_;
  std::atomic<bool> closing_ = false;

  std::mutex mu_;
  std::condition_variable wakes_;
  std::map<std::string, uint64_t> running_;                  // guarded by mu_: launch by workload, as far as is known
  std::set<std::string> stopped_;                            // guarded by mu_: asked to end
  std::map<std::string, std::pair<int64_t, MonoTime>> cpu_;  // guarded by mu_: nanoseconds at the last measurement

  std::thread watcher_;
  WorkerPool workers_;  // last: its tasks use the rest
};

// The body of the request that makes a container, as JSON; INVALID_ARGUMENT for what an engine cannot be asked.
Result<std::string> CreateBody(const contract::StartRun& start, const std::string& agent);

// Takes apart the stream of a container without a terminal: frames with a header of eight bytes, of which the first
// says which stream it is and the last four how long it is. Frames may come in pieces.
class LogFrames {
 public:
  // Calls `frame` for each whole frame; false if that returned false or the stream cannot be read.
  bool Add(std::string_view piece, const std::function<bool(contract::LogStream, std::string_view)>& frame);

 private:
  std::string rest_;
};

}  // namespace muster::runtime
