// What a shard keeps of its world: machines, clusters, operations under way; and the rows of its durable state.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/effects.h"
#include "contract/provider.h"
#include "contract/session.h"
#include "contract/shard.h"
#include "engine/types.h"
#include "model/need.h"
#include "model/profile.h"

namespace muster::shard {

// --- machines

// Reads and transitions are numbered in the order they were begun: a read tells nothing about a machine whose
// transition began or ended after it.
using Moment = uint64_t;

struct Tracked {
  contract::MachineRecord record;  // as the provider showed it last
  Moment not_before = 0;           // a read begun before this is stale
  Moment shown = 0;                // the list that showed it last
  uint64_t sweep = 0;              // the last full sweep that showed it
  MonoTime moving_since;           // when its transition was first seen; zero: not moving, or adopted so
  bool missed = false;             // something was shown while a transition was in the provider's hands

  MUSTER_FIELDS(Tracked, record, not_before, shown, sweep, moving_since, missed)
};

// A page of a sweep, and when it was asked for.
struct Page {
  contract::ListReply list;
  Moment begun = 0;

  MUSTER_FIELDS(Page, list, begun)
};

// --- operations

enum class OperationKind : uint8_t {
  kBootstrap = 0,
  kProvision = 1,
  kPreempt = 2,
  kReclaim = 3,
  kDelete = 4,
  kRepair = 5,    // Delete of a Failed machine
  kRecreate = 6,  // Create of owned hardware that was repaired
};
std::string_view OperationKindName(OperationKind kind);  // "Bootstrap", ... "Repair", "Recreate"

enum class Stage : uint8_t {
  kAsking = 0,      // Bootstrap: the cluster is asked for its blob
  kInstructed = 1,  // Preempt, Reclaim: the cluster is told
  kQueued = 2,      // everything is there; waits for its turn at the provider
  kCalling = 3,     // the provider has it
};

// One action on its way, at most one for each machine. Until the provider has answered, the engine is shown what the
// machine will be (ShownState), so that it decides as if that were so.
struct Operation {
  OperationKind kind = OperationKind::kBootstrap;
  Stage stage = Stage::kQueued;
  std::string cluster;                    // whom it is bound to or taken from
  std::optional<engine::NeedKey> need;    // whom it is for
  std::optional<model::Profile> profile;  // of that need
  model::Reason reason = model::Reason::kNone;
  int64_t grace_seconds = 0;
  int64_t cycle = 0;
  Now decided;
  std::string token;  // of the question or instruction
  std::string blob;
  std::optional<MonoTime> blob_until;  // no longer good then
  std::optional<MonoTime> deadline;    // of the stage
  contract::CallId call = 0;           // kCalling
  uint64_t line = 0;                   // its number in the list of actions

  MUSTER_FIELDS(Operation, kind, stage, cluster, need, profile, reason, grace_seconds, cycle, decided, token, blob,
                blob_until, deadline, call, line)
};

// Where an operation starts, and what the machine is while it is under way.
model::MachineState StartOf(OperationKind kind);
model::MachineState DuringOf(OperationKind kind);

// What is written into the machine's metadata when it is bound: whose it is, and who bound it.
std::map<std::string, std::string> StampOf(const Operation& operation, const std::string& shard, int64_t epoch);
// The epoch in which this shard bound the machine, if it did.
std::optional<int64_t> BoundBy(const model::Machine& machine, const std::string& shard);

// A machine whose operation failed waits before the next one.
struct Retry {
  int32_t failures = 0;
  MonoTime until;

  MUSTER_FIELDS(Retry, failures, until)
};

struct OpenCall {
  enum class Kind : uint8_t { kTransition = 0, kGet = 1, kList = 2, kReport = 3 };
  Kind kind = Kind::kTransition;
  std::string machine;
  Moment begun = 0;

  MUSTER_FIELDS(OpenCall, kind, machine, begun)
};

// An instruction that the cluster has not acknowledged.
struct Unanswered {
  std::string cluster;
  contract::ReclaimInstruction instruction;

  MUSTER_FIELDS(Unanswered, cluster, instruction)
};

// --- clusters

// The size of the demand that was accepted last: what a suspicious roll-up is told by. Durable.
struct Baseline {
  uint64_t rows = 0;
  std::map<std::string, int64_t> totals;  // by dimension

  bool operator==(const Baseline&) const = default;
  MUSTER_FIELDS(Baseline, rows, totals)
};

struct Cluster {
  contract::SessionId session = 0;  // 0: none
  bool accepted = false;            // a demand of it is in force
  bool gate_open = false;
  contract::ActuationMode mode = contract::ActuationMode::kActive;  // durable
  std::optional<Baseline> baseline;                                 // durable
  int32_t held = 0;                                                 // suspicious roll-ups in a row
  std::string last_refusal;
  // The demand in force: rows with their arrivals, and digests of the rows as they came and as they are.
  std::vector<model::Need> rows;
  std::vector<uint64_t> came;
  std::vector<uint64_t> digests;
  std::map<std::pair<std::string, std::string>, WallTime> arrivals;  // durable; by fingerprint and group
  std::deque<MonoTime> reclaims;                                     // within the window; their number is durable
  bool reclaims_stored = false;                                      // their row is on disk
  std::map<std::string, contract::AvailableCapacity> hints;          // sent in this session, by key
  // Derived from machines and operations.
  std::set<std::string> bound;
  int64_t configured = 0;  // as the engine is shown

  MUSTER_SOME_FIELDS(Cluster, session, accepted, gate_open, mode, baseline, held, last_refusal, rows, came, digests,
                     arrivals, reclaims, reclaims_stored, hints)
};

// --- the failed and the short

struct Repair {
  int32_t attempts = 0;
  std::optional<MonoTime> due;  // of the next attempt; none: under way, or given up
  bool recreate = false;        // owned hardware: once it is given back it is made again

  MUSTER_FIELDS(Repair, attempts, due, recreate)
};

// A need that is short, in the form that stays the same from cycle to cycle: it is written when it begins.
struct ShortSince {
  MonoTime since;
  int64_t cycle = 0;     // its first cycle
  int64_t hopeless = 0;  // gangs: the first cycle without hope; 0: there is hope
  int64_t supply_seen = 0;
  int32_t priority = 0;

  bool operator==(const ShortSince&) const = default;
  MUSTER_FIELDS(ShortSince, since, cycle, hopeless, supply_seen, priority)
};

// --- durable rows. Times on disk are wall times; an age read back from them is never negative.

struct MachineRow {
  std::optional<model::Attribution> attribution;  // if it is not the stamp it was bound with
  std::optional<engine::NeedKey> pledge;
  std::optional<WallTime> unclaimed_since;
  std::optional<WallTime> draining_since;

  bool operator==(const MachineRow&) const = default;
  MUSTER_FIELDS(MachineRow, attribution, pledge, unclaimed_since, draining_since)
};

struct ShortRow {
  WallTime since;
  int64_t cycle = 0;
  int64_t hopeless = 0;
  int64_t supply_seen = 0;

  MUSTER_FIELDS(ShortRow, since, cycle, hopeless, supply_seen)
};

struct RepairRow {
  int32_t attempts = 0;
  bool recreate = false;

  MUSTER_FIELDS(RepairRow, attempts, recreate)
};

// Keys of the rows; those that end in a slash go on with a name.
inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kEpochKey = "epoch";
inline constexpr std::string_view kCycleKey = "cycle";
inline constexpr std::string_view kModeKey = "mode/";            // cluster; empty: the shard
inline constexpr std::string_view kBaselineKey = "baseline/";    // cluster
inline constexpr std::string_view kReclaimsKey = "reclaims/";    // cluster
inline constexpr std::string_view kArrivalKey = "arrival/";      // bytes of a NeedKey
inline constexpr std::string_view kShortKey = "short/";          // bytes of a NeedKey
inline constexpr std::string_view kMachineKey = "machine/";      // machine
inline constexpr std::string_view kRepairKey = "repair/";        // machine
inline constexpr std::string_view kForgottenKey = "forgotten/";  // machine
inline constexpr std::string_view kDrainKey = "drain/";          // instance type
inline constexpr std::string_view kManagedKey = "managed";       // a coordinator assigns domains
inline constexpr std::string_view kDomainKey = "domain/";        // bytes of a Domain
inline constexpr uint64_t kFormat = 1;

// One step's surroundings: what it wants stored goes out before everything else it wants.
template <class Effect>
struct TurnOf {
  Now now;
  std::vector<Effect>& out;
  contract::Persist persist;
};

}  // namespace muster::shard
