// The shard core's configuration, its events and effects, and what it shows of itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/coordinator.h"
#include "contract/effects.h"
#include "contract/provider.h"
#include "contract/session.h"
#include "contract/shard.h"
#include "engine/types.h"
#include "model/machine.h"
#include "model/reason.h"

namespace muster::shard {

enum class FailedPolicy : uint8_t { kRepair = 0, kKeep = 1 };

struct Config {
  std::string id = "shard-0";
  engine::Policy policy;
  std::vector<contract::Domain> own;  // empty: every machine, unless a coordinator assigns domains
  int64_t epoch_at_least = 0;         // 0: not given

  // The cycle.
  Duration cycle_interval = 1s;
  Duration cycle_gap = 100ms;    // between the starts of two cycles, so that a burst of news makes one
  Duration restart_grace = 15s;  // how long a restarted shard waits for clusters it knows before it decides

  // Reconcile.
  bool incremental_reconcile = true;
  Duration sweep_interval = 1min;
  int32_t list_page = 5000;  // 0: no pages
  Duration list_timeout = contract::kProviderListTimeout;
  Duration call_timeout = contract::kProviderCallTimeout;

  // Rails.
  int64_t max_actions_per_cycle = 0;       // 0: no limit
  model::Probability reclaim_cap{50'000};  // of a cluster's Configured machines in one cycle, never below one machine
  model::Probability reclaim_budget{50'000};  // the same within the window
  Duration reclaim_window = 10min;
  bool empty_rollup_guard = true;
  contract::ActuationMode mode = contract::ActuationMode::kUnspecified;  // given: set at start, in place of what was

  // Execute.
  int32_t execute_concurrency = 64;
  int32_t execute_queue = 1024;  // operations that have begun and not ended; more are left to the next cycle
  Duration blob_timeout = 30s;
  Duration ack_timeout = 10s;  // how long a cluster may take to acknowledge before its machine is drained anyway
  Duration give_up = 2min;     // how long an instruction waits for a session that is gone
  Duration retry_first = 2s;   // after a failed operation; doubles up to retry_longest
  Duration retry_longest = 5min;

  FailedPolicy failed_policy = FailedPolicy::kRepair;
  Duration repair_first = 1min;  // doubles up to repair_longest
  Duration repair_longest = 1h;

  Duration hints_interval = 5s;

  std::string coordinator;  // empty: none
  Duration report_interval = 10s;
  std::string address;           // told to the coordinator
  std::string provider_address;  // the same

  bool verify_decisions = false;  // for tests: check every decision against the engine's invariants

  MUSTER_FIELDS(Config, id, policy, own, epoch_at_least, cycle_interval, cycle_gap, restart_grace,
                incremental_reconcile, sweep_interval, list_page, list_timeout, call_timeout, max_actions_per_cycle,
                reclaim_cap, reclaim_budget, reclaim_window, empty_rollup_guard, mode, execute_concurrency,
                execute_queue, blob_timeout, ack_timeout, give_up, retry_first, retry_longest, failed_policy,
                repair_first, repair_longest, hints_interval, coordinator, report_interval, address, provider_address,
                verify_decisions)
};

// --- events

// A stream has said Hello.
struct SessionOpened {
  contract::SessionId session = 0;
  contract::Hello hello;

  MUSTER_FIELDS(SessionOpened, session, hello)
};

struct SessionClosed {
  contract::SessionId session = 0;

  MUSTER_FIELDS(SessionClosed, session)
};

struct Received {
  contract::SessionId session = 0;
  contract::OperatorMessage message;

  MUSTER_FIELDS(Received, session, message)
};

// A roll-up came that cannot be read.
struct RollupUnreadable {
  contract::SessionId session = 0;
  Status why;

  MUSTER_FIELDS(RollupUnreadable, session, why)
};

// Somebody asks. Answered once, by an Answer with the same number.
struct Asked {
  contract::RequestId request = 0;
  contract::ShardRequest body;

  MUSTER_FIELDS(Asked, request, body)
};

// --- effects

struct Send {
  contract::SessionId session = 0;
  contract::ShardMessage message;

  MUSTER_FIELDS(Send, session, message)
};

struct CloseSession {
  contract::SessionId session = 0;
  Status status;

  MUSTER_FIELDS(CloseSession, session, status)
};

// `reply` is there exactly when `status` is OK. Mutable, because whoever carries the effect out takes the reply out of
// it: a list of 100,000 machines is copied by nobody.
struct Answer {
  contract::RequestId request = 0;
  Status status;
  mutable std::optional<contract::ShardReply> reply;

  MUSTER_FIELDS(Answer, request, status, reply)
};

// A line of the audit log: an action that was decided, or how one ended.
struct Audit {
  contract::ActionView action;
  Duration took{};  // from the decision to this line

  MUSTER_FIELDS(Audit, action, took)
};

// Something an operator may want to know: what, of whom, and the details. The shell logs it.
struct Notice {
  model::Reason reason = model::Reason::kNone;
  std::string subject;  // a machine or a cluster
  std::string detail;

  MUSTER_FIELDS(Notice, reason, subject, detail)
};

// How long a machine needed for a part of its way: for statistics.
enum class Leg : uint8_t {
  kBlob = 0,       // from the decision to the cluster's blob
  kCreate = 1,     // from the acknowledgement until the machine was seen Idle
  kConfigure = 2,  // Configured
  kDrain = 3,      // Idle
};
struct Lasted {
  Leg leg = Leg::kBlob;
  Duration took{};

  MUSTER_FIELDS(Lasted, leg, took)
};

// A cycle has ended: what it wrote into the audit log is to be made durable.
struct CycleEnded {
  int64_t cycle = 0;

  MUSTER_FIELDS(CycleEnded, cycle)
};

// The shard must not go on: another one has taken its place, or it has no right to its epoch. It does nothing more.
struct Stop {
  Status why;

  MUSTER_FIELDS(Stop, why)
};

using PartnerRequest =
    std::variant<contract::CreateRequest, contract::ConfigureRequest, contract::DrainRequest, contract::DeleteRequest,
                 contract::GetRequest, contract::ListRequest, contract::ShardReport>;
using PartnerReply =
    std::variant<contract::TransitionAck, contract::GetReply, contract::ListReply, contract::ReportAck>;
// Whom a Call is for.
inline constexpr std::string_view kProvider = "provider";
inline constexpr std::string_view kCoordinator = "coordinator";

// --- what is shown

// Since the start of this life. Names of metrics are in docs/operating.md.
struct Counters {
  std::map<std::string, uint64_t> actions;                           // decided, by kind
  std::map<std::pair<std::string, std::string>, uint64_t> outcomes;  // by kind and outcome
  std::map<std::string, uint64_t> suppressed;                        // by kind
  std::map<std::string, uint64_t> dry_run;                           // by kind
  std::map<std::string, uint64_t> machines_rejected;                 // by field
  std::map<std::string, uint64_t> rollups_rejected;                  // by cluster
  uint64_t deferred = 0;                                             // by MaxActionsPerCycle
  uint64_t dropped = 0;                                              // the queue was full
  uint64_t deduped = 0;                                              // the machine had an operation, or waits
  uint64_t reclaims_capped = 0;  // times a cluster had more to give up in a cycle than it may
  uint64_t idle_releases = 0;
  uint64_t sessions_installed = 0;
  uint64_t sessions_removed = 0;
  uint64_t sessions_replaced = 0;
  uint64_t list_failures = 0;
  uint64_t reports = 0;
  uint64_t plans_kept = 0;       // of needs, speculated or made in turn
  uint64_t plans_conflicts = 0;  // made again, because what they counted on was gone
  uint64_t plans_displaced = 0;  // and taken back for a need of higher precedence
};

// How machines are counted.
struct MachineKind {
  model::MachineState state = model::MachineState::kUnspecified;
  model::CapacityType capacity_type = model::CapacityType::kUnspecified;
  model::PenaltyBucket interruption = model::PenaltyBucket::kZero;  // of the need it was bound for

  auto operator<=>(const MachineKind&) const = default;
};

struct Snapshot {
  bool ready = false;  // the machines have been seen
  Status stopped;      // not OK: why it does nothing more
  int64_t epoch = 0;
  int64_t cycle = 0;
  contract::ActuationMode mode = contract::ActuationMode::kActive;
  std::map<MachineKind, uint64_t> machines;
  std::map<model::PenaltyBucket, uint64_t> demand;  // machines that needs have or get, counted now and then
  uint64_t sessions = 0;
  uint64_t shortfalls = 0;  // needs that are short
  std::map<int32_t, uint64_t> shortfalls_by_priority;
  std::array<uint64_t, 4> shortfalls_aged{};   // 1-9, 10-59, 60-299 and 300 or more cycles
  std::map<std::string, int32_t> quarantined;  // clusters whose roll-up is held: how many in a row
  uint64_t operations = 0;                     // begun and not ended
  uint64_t calls = 0;                          // of them, in the provider's hands
  Counters counters;
};

}  // namespace muster::shard
