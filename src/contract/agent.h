// What a scheduler asks of the agent of a node, and what the agent reports of its workloads, as plain values.
//
// persys.agent.v1.AgentService is most of this on the wire; muster.v1.Agent carries what that protocol has no field
// for: processes, tenants, grace periods and stamps (docs/wire.md).
//
// A stamp orders what the scheduler says to a node. The epoch belongs to the registration of the agent, the sequence to
// the assignment of the workload. An agent of ours refuses an older stamp than the one it has for a workload, and an
// epoch that is not its own. Foreign agents have no stamps: both numbers are 0.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "model/node.h"
#include "model/workload.h"
#include "model/workload_template.h"

namespace muster::contract {

struct Stamp {
  uint64_t epoch = 0;
  uint64_t sequence = 0;

  auto operator<=>(const Stamp&) const = default;
  MUSTER_FIELDS(Stamp, epoch, sequence)
};

// What an agent sees of a workload. kMissing: the node does not have it.
enum class ActualState : uint8_t { kUnknown, kPending, kRunning, kStopped, kFailed, kMissing };
std::string_view ActualStateName(ActualState state);  // "Unknown", "Pending", ...

struct WorkloadUsage {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t disk_read_bytes = 0;
  int64_t disk_write_bytes = 0;
  int64_t net_rx_bytes = 0;
  int64_t net_tx_bytes = 0;
  WallTime collected_at;
  std::string source;  // "cgroup", "proc", "docker"

  bool operator==(const WorkloadUsage&) const = default;
  MUSTER_FIELDS(WorkloadUsage, cpu_milli, memory_bytes, disk_read_bytes, disk_write_bytes, net_rx_bytes, net_tx_bytes,
                collected_at, source)
};

struct WorkloadStatus {
  std::string workload;
  model::WorkloadType type = model::WorkloadType::kUnspecified;
  std::string revision;
  bool wanted_running = true;
  ActualState actual = ActualState::kUnknown;
  std::string message;               // why it failed or waits; empty: nothing to say
  std::optional<int32_t> exit_code;  // of a workload that has ended; 128 + N for signal N
  int32_t restarts = 0;              // by the agent, since this revision was applied
  WallTime created_at;
  WallTime updated_at;
  std::map<std::string, std::string> metadata;  // the protocol's own keys, such as "failure_reason"
  std::optional<WorkloadUsage> usage;
  Stamp stamp;

  bool operator==(const WorkloadStatus&) const = default;
  MUSTER_FIELDS(WorkloadStatus, workload, type, revision, wanted_running, actual, message, exit_code, restarts,
                created_at, updated_at, metadata, usage, stamp)
};

// --- requests

// The workload is to be as told, running or stopped. The same revision in the same state is skipped; a new revision
// replaces what runs. An agent may answer before the work is done: GetWorkloadStatus tells.
struct ApplyOnAgent {
  std::string workload;
  std::string set;     // empty: none
  std::string tenant;  // empty: none
  std::string revision;
  bool run = true;
  model::WorkloadTemplate spec;
  std::map<std::string, std::string> labels;
  Stamp stamp;

  MUSTER_FIELDS(ApplyOnAgent, workload, set, tenant, revision, run, spec, labels, stamp)
};

// The workload is to be stopped, after `grace` by force, and forgotten. OK if the node does not have it.
struct DeleteOnAgent {
  std::string workload;
  Duration grace{};
  Stamp stamp;

  MUSTER_FIELDS(DeleteOnAgent, workload, grace, stamp)
};

// Answered with NOT_FOUND if the node does not have it.
struct GetStatusOnAgent {
  std::string workload;

  MUSTER_FIELDS(GetStatusOnAgent, workload)
};

struct ListOnAgent {
  MUSTER_FIELDS(ListOnAgent)
};

using AgentRequest = std::variant<ApplyOnAgent, DeleteOnAgent, GetStatusOnAgent, ListOnAgent>;

// --- replies

struct AppliedOnAgent {
  bool applied = false;  // false: refused, and `message` says why
  bool skipped = false;  // it had this revision in this state
  std::string message;
  WorkloadStatus status;

  MUSTER_FIELDS(AppliedOnAgent, applied, skipped, message, status)
};

struct DeletedOnAgent {
  bool success = false;
  std::string message;

  MUSTER_FIELDS(DeletedOnAgent, success, message)
};

struct ListedOnAgent {
  std::vector<WorkloadStatus> workloads;  // by id

  MUSTER_FIELDS(ListedOnAgent, workloads)
};

using AgentReply = std::variant<AppliedOnAgent, DeletedOnAgent, WorkloadStatus, ListedOnAgent>;

// What an agent serves, whatever carries it. `done` runs once, on any thread; the alternative of the reply is that of
// the request.
class AgentPort {
 public:
  using Done = std::function<void(Result<AgentReply>)>;

  virtual ~AgentPort() = default;
  virtual void Ask(AgentRequest request, Done done) = 0;
};

// --- joining

// What an agent says of its node when it registers.
struct NodeFacts {
  std::string node;
  std::string cluster;   // empty: any
  std::string endpoint;  // host:port at which the agent serves
  std::string agent_version;
  model::Resources total;  // cpu, memory; disk if it has storage pools; gpu
  std::vector<model::WorkloadType> supported_types;
  std::vector<std::string> storage_drivers;
  std::map<std::string, std::string> labels;
  std::vector<model::Taint> taints;
  bool native = false;  // it joined by muster.v1.Cluster/Join and knows stamps

  MUSTER_FIELDS(NodeFacts, node, cluster, endpoint, agent_version, total, supported_types, storage_drivers, labels,
                taints, native)
};

// What a native agent is told when it has joined: everything that is assigned to its node.
struct FullState {
  uint64_t epoch = 0;
  std::vector<ApplyOnAgent> workloads;  // by id
  bool remove_others =
      true;  // stop what is not listed; false: the scheduler holds back, because that would be too much

  MUSTER_FIELDS(FullState, epoch, workloads, remove_others)
};

}  // namespace muster::contract
