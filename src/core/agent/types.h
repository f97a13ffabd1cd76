// The agent core's configuration, events and effects, and the rows of its durable state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/effects.h"
#include "contract/runtime.h"
#include "contract/tables.h"
#include "model/node.h"
#include "model/resources.h"

namespace muster::agent {

struct Config {
  std::string node = "node";
  bool joins = false;                         // a scheduler gives it epochs; false: requests have no stamps
  model::Resources total;                     // what the node has for workloads
  std::vector<model::WorkloadType> runtimes;  // that this node has, sorted
  int32_t max_restarts = 3;                   // in a row, then the workload is Failed
  Duration restart_base = 1s;                 // pause before the first restart; doubles
  Duration restart_cap = 2min;
  Duration restart_reset = 10min;  // a run that lasted so long begins the count anew
  Duration start_timeout = 10min;  // of a start: images are pulled
  Duration stop_slack = 30s;       // beyond the grace
  Duration list_timeout = 30s;
  Duration list_interval = 30s;  // how often a runtime is asked for what it has
  Duration runtime_retry = 1s;   // pause after a runtime did not answer; doubles up to list_interval
  Duration deleted_memory = 1h;  // how long the stamp of a deleted workload is remembered

  MUSTER_FIELDS(Config, node, joins, total, runtimes, max_restarts, restart_base, restart_cap, restart_reset,
                start_timeout, stop_slack, list_timeout, list_interval, runtime_retry, deleted_memory)
};

// --- events

// Somebody asks. Answered once, by an Answer with the same number.
struct Asked {
  contract::RequestId request = 0;
  contract::AgentRequest body;

  MUSTER_FIELDS(Asked, request, body)
};
// The scheduler has accepted the node and says what is assigned to it.
struct Joined {
  contract::FullState state;

  MUSTER_FIELDS(Joined, state)
};
// A run has ended, without being asked to or because it was.
struct RunChanged {
  contract::Run run;

  MUSTER_FIELDS(RunChanged, run)
};
// What workloads use, as measured. Those without a row are left as they are.
struct Measured {
  std::vector<std::pair<std::string, contract::WorkloadUsage>> usage;

  MUSTER_FIELDS(Measured, usage)
};

// --- effects

// `reply` is there exactly when `status` is OK. Mutable, so that a long list is moved out and not copied.
struct Answer {
  contract::RequestId request = 0;
  Status status;
  mutable std::optional<contract::AgentReply> reply;

  MUSTER_FIELDS(Answer, request, status, reply)
};

enum class ActionKind : uint8_t { kApply, kDelete, kRestart };
enum class ActionState : uint8_t { kPending, kRunning, kCompleted, kFailed };
// A piece of the agent's work, each time its state changes.
struct Acted {
  uint64_t number = 0;  // names the action in this life of the agent
  std::string workload;
  ActionKind kind = ActionKind::kApply;
  ActionState state = ActionState::kPending;
  std::string error;

  MUSTER_FIELDS(Acted, number, workload, kind, state, error)
};
// Something an operator should know. The shell logs it.
struct Notice {
  std::string what;  // constant text
  std::string workload;
  std::string detail;

  MUSTER_FIELDS(Notice, what, workload, detail)
};

// The state of a workload, as statuses show it, has changed: a scheduler should hear of it.
struct StatesChanged {
  MUSTER_FIELDS(StatesChanged)
};

// A runtime that did not answer at first has: the node can offer its type from now on.
struct RuntimeCame {
  model::WorkloadType type = model::WorkloadType::kUnspecified;

  MUSTER_FIELDS(RuntimeCame, type)
};

// --- durable rows

inline constexpr uint64_t kFormat = 2;

// What is wanted of one workload, and what the agent has done about it.
struct Row {
  contract::ApplyOnAgent wanted;
  bool deleting = false;  // it is stopped and removed, then the row goes
  Duration delete_grace{};
  bool stray = false;       // a runtime has it and no scheduler asked for it: it is left as it is
  bool launch_due = false;  // a launch is owed, whatever became of the one before
  uint64_t launch = 0;      // number of the newest launch; 0: none
  int32_t restarts = 0;     // by the agent, since this revision was applied
  int32_t failures = 0;     // of them in a row, without a run that lasted
  bool given_up = false;    // restarted often enough: Failed
  WallTime created_at;
  WallTime updated_at;

  MUSTER_FIELDS(Row, wanted, deleting, delete_grace, stray, launch_due, launch, restarts, failures, given_up,
                created_at, updated_at)
};
// A workload that was deleted: what the scheduler said before the deletion and arrives after it must not bring the
// workload back.
struct Deleted {
  contract::Stamp stamp;
  WallTime at;

  MUSTER_FIELDS(Deleted, stamp, at)
};

inline constexpr contract::Table<std::string, Row> kRows{"workload/"};
inline constexpr contract::Table<std::string, Deleted> kDeleted{"deleted/"};
inline constexpr contract::Single<uint64_t> kEpoch{"epoch"};

// --- view

struct RuntimeView {
  model::WorkloadType type = model::WorkloadType::kUnspecified;
  bool answered = false;  // it has said what it has, or that it cannot
  bool listed = false;    // it has said what it has, in this life of the agent
  Status status;          // of its last answer; UNAVAILABLE before the first
};

struct Snapshot {
  uint64_t epoch = 0;
  std::shared_ptr<const std::vector<contract::WorkloadStatus>> statuses;  // of all workloads, by id
  std::vector<RuntimeView> runtimes;                                      // by type
  int64_t operations_open = 0;                                            // calls to runtimes
  model::Resources requested;                                             // by the workloads that are to run
  std::set<std::string> secrets;                                          // the handles that rows name
  uint64_t restarts = 0;                                                  // of workloads, since the start of the agent
  uint64_t refused = 0;                                                   // applies that were not admitted, since then
  uint64_t stale = 0;                                                     // requests with an old stamp, since then
};

}  // namespace muster::agent
