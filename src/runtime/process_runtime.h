// ProcessRuntime: workloads of the type `process`, each behind a muster-shim that outlives the agent.
//
// A start writes the launch into the workload's directory and starts a shim for it; the shim does the rest (src/shim).
// From then on the runtime waits for the end of the shim and reads the exit record. A shim that an earlier agent has
// started is found by its lock and watched in the same way. A shim that ended without a record was killed: what it left
// is killed too, and the run has ended with an exit code that is not known.
//
// Limits are those of cgroups.h. Processes run as ProcessUser says, without privileges, with an environment of their
// own (process_launch.h).
//
// Thread-safety: as Runtime.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/cgroups.h"
#include "runtime/process_files.h"
#include "runtime/process_launch.h"
#include "runtime/runtime.h"
#include "runtime/shim_process.h"
#include "runtime/worker_pool.h"

namespace muster::runtime {

struct ProcessOptions {
  std::filesystem::path root;  // made if missing; in a directory that the caller owns
  std::filesystem::path shim;  // the program muster-shim
  std::string name = "agent";  // tells the cgroups and users of agents on one host apart
  ProcessUser user;
  CgroupHost cgroups = ThisHost();
  int64_t log_bytes = 4 << 20;  // of one log file of a workload
  int32_t log_files = 2;
  Duration start_patience = 30s;
};

// muster-shim beside the running program. NOT_FOUND, saying where it was looked for.
Result<std::filesystem::path> FindShimProgram();

class ProcessRuntime final : public Runtime {
 public:
  // The clock outlives the runtime. FAILED_PRECONDITION if the root cannot be made or the shim cannot be executed.
  static Result<std::unique_ptr<ProcessRuntime>> Open(ProcessOptions options, const Clock& clock, Ended ended);
  ~ProcessRuntime() override;
  ProcessRuntime(const ProcessRuntime&) = delete;
  ProcessRuntime& operator=(const ProcessRuntime&) = delete;

  model::WorkloadType type() const override { return model::WorkloadType::kProcess; }
  void Ask(contract::RuntimeRequest request, Done done) override;
  void ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) override;
  std::vector<Usage> Measure() override;
  void Close() override;
  std::vector<std::string> Missing() const override;

 private:
  using Reply = Result<contract::RuntimeReply>;
  // A shim that lives, or whose end was not dealt with yet.
  struct Watched {
    std::string workload;
    ShimProcess shim;
    uint64_t launch = 0;
    pid_t process = 0;           // of the workload, where it is known
    std::vector<Done> waiting;   // for its end
    int64_t cpu_ns = 0;          // at the last measurement
    std::optional<MonoTime> at;  // of it
  };

  ProcessRuntime(ProcessOptions options, const Clock& clock, Ended ended);
  ProcessFiles FilesOf(const std::string& workload) const { return {options_.root, workload}; }

  Reply Start(const contract::StartRun& start);
  Reply StartAgain(const contract::StartRun& start, const FoundProcess& found);
  void ForgetSecrets(const contract::StartRun& start, const FoundProcess& found) const;
  Result<shim::Launch> Prepare(const contract::StartRun& start, const std::optional<FoundProcess>& before) const;
  void Stop(const std::string& workload, Duration grace, Done done);
  void Remove(const std::string& workload, Done done);
  Reply List();
  // What the files say, and the watch if a shim lives. Nothing if there is no launch.
  std::optional<contract::Run> Look(const std::string& workload);
  contract::Run Describe(const FoundProcess& found) const;

  // Waits for the end of a shim from here on, unless that is done already.
  void AddWatch(const FoundProcess& found, ShimProcess shim);
  Watched* FindWatched(const std::string& workload);  // the newest; under mu_
  void Watch();
  void OnShimEnded(uint64_t number);
  void KillLeftovers(const FoundProcess& found) const;
  contract::WorkloadUsage UsageOf(Watched& watched, Now now) const;

  // Set at construction.
  const ProcessOptions options_;
  const Clock& clock_;
  const Ended ended_;
  const Cgroups cgroups_;
  int epoll_ = -1;
  int wake_ = -1;  // an event descriptor that ends the watch
  std::atomic<bool> closing_ = false;

  std::mutex mu_;
  std::map<uint64_t, Watched> watched_;     // guarded by mu_: by the numbers that epoll has for them
  std::map<std::string, uint64_t> newest_;  // guarded by mu_: the newest watch of a workload
  uint64_t last_number_ = 0;                // guarded by mu_

  std::thread watcher_;
  WorkerPool workers_;  // last: its tasks use the rest
};

}  // namespace muster::runtime
