// DockerEngine: containers, networks and volumes of an engine, as the runtimes need them. docker_api.h carries the
// requests; what a workload makes of containers is the business of container_runtime.h and compose_runtime.h.
//
// An error of a call is of the engine: UNAVAILABLE and DEADLINE_EXCEEDED pass, INVALID_ARGUMENT does not. What the
// engine refuses to do with one container is an answer, in its words.
//
// Thread-safety: all functions may be called from any thread and block.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/logs.h"
#include "contract/runtime.h"
#include "runtime/docker_api.h"

namespace muster::runtime {

// As whom containers run (container_user.h).
enum class ContainerUser : uint8_t {
  kTenant,  // a user of the tenant's own, unless the image names one by a number that is not 0
  kImage,   // as the image says, who may be root
};

struct ContainerOptions {
  std::string socket = "/var/run/docker.sock";
  std::string name = "agent";  // tells the containers of agents on one host apart
  Duration poll = 500ms;       // how often the engine is asked for containers that have ended
  Duration timeout = 20s;      // of a request
  Duration pull_timeout = 10min;
  std::vector<std::filesystem::path> host_paths;  // of the node that containers may mount, with what is below
  ContainerUser user = ContainerUser::kTenant;
};

// A container as the engine has it.
struct ContainerState {
  std::string id;
  std::string image;
  std::map<std::string, std::string> labels;
  std::set<std::string> volumes;  // that it mounts, by the engine's names
  bool running = false;
  bool restarting = false;  // it has ended, and the engine is about to start it again
  WallTime started_at;      // the epoch: it was made and never started
  WallTime finished_at;     // the epoch: not written down
  int32_t exit_code = 0;
  bool oom_killed = false;  // as the engine says
  bool limited = false;     // it has a limit of memory
  std::string error;        // of the engine
  std::string restart;      // the engine's policy: "", "no", "always", "on-failure", ...
  int64_t max_restarts = 0;
  int64_t restarts = 0;

  bool begun() const { return running || started_at != WallTime{}; }
  // False: it has ended, and the engine does not say how yet.
  bool recorded() const { return running || restarting || !begun() || finished_at != WallTime{}; }
  std::string Label(const char* name) const;  // empty: it has none
};
// A launch that could not begin, as a run that has ended.
contract::Run NeverRan(const contract::StartRun& start, WallTime now, std::string why);
// "exit code 3", with what the engine says. Engines do not always know that a container died of its limit of memory: a
// kill that nobody asked for (`stopped`), of a container with a limit, may have been that.
std::string HowItEnded(const ContainerState& state, bool stopped);

struct ContainerUsage {
  int64_t cpu_ns = 0;             // since its start
  contract::WorkloadUsage usage;  // but for cpu_milli
};

class DockerEngine {
 public:
  // Why the engine refused; nothing: it did what was asked.
  using Refusal = std::optional<std::string>;
  using Labels = std::map<std::string, std::string>;

  explicit DockerEngine(const ContainerOptions& options);

  Result<std::optional<ContainerState>> Inspect(const std::string& container) const;
  // The ids of the containers with all these labels, whatever state they are in.
  Result<std::vector<std::string>> List(const Labels& labels) const;
  struct ImageUser {
    Refusal refusal;
    std::string user;  // as the image has it: "", "root", "1000:1000", "postgres"
  };
  // The image is pulled if it is missing.
  Result<ImageUser> UserOf(const std::string& image) const;
  // Makes a container; its image is pulled if it is missing. `body` is JSON (container_body.h).
  Result<Refusal> Create(const std::string& name, const std::string& image, const std::string& body) const;
  Result<Refusal> Start(const std::string& container) const;
  // Asks it to end, and kills it after the grace. OK if it does not exist.
  Status Stop(const std::string& container, Duration grace) const;
  // Kills and removes it with its unnamed volumes. OK if it does not exist.
  Status Remove(const std::string& container) const;

  // The last lines that it wrote; empty if they cannot be read.
  std::string LastLines(const std::string& container) const;
  // Gives each line with its time and stream to `write`, until that returns false or `closing` says so.
  Status ReadLogs(const std::string& container, const contract::ReadLogs& request,
                  const std::function<bool(contract::LogChunk)>& write, const std::function<bool()>& closing) const;
  Result<ContainerUsage> Measure(const std::string& container) const;

  // A network or volume that is there is taken if no label of it says that it is another's: the hashes in names are no
  // proof, as a tenant chooses the ids of its workloads.
  // A bridge network. Returns its subnet, "10.89.3.0/24"; addresses in it can be given to containers.
  Result<std::string> EnsureNetwork(const std::string& name, const Labels& labels) const;
  Result<bool> HasVolume(const std::string& name) const;
  Result<Refusal> EnsureVolume(const std::string& name, const Labels& labels) const;
  // Those with all these labels; containers must be gone.
  Status RemoveNetworks(const Labels& labels) const;
  Status RemoveVolumes(const Labels& labels) const;

  // Ends what streams, for good.
  void Close() { closing_ = true; }
  bool closing() const { return closing_; }

 private:
  // Whether what the path names has one of these labels with another value.
  Result<bool> IsOthers(const std::string& path, const Labels& labels) const;
  Result<Refusal> Pull(const std::string& image) const;
  Result<std::optional<std::string>> SubnetOf(const std::string& network) const;
  Status RemoveAll(const std::vector<std::string>& paths, const char* what) const;

  const DockerApi api_;
  const Duration timeout_;
  const Duration pull_timeout_;
  std::atomic<bool> closing_ = false;
};

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
