// NodeHealth: what is known of nodes besides their records, and the transitions of their status that follow from it.
//
// Heartbeats live here and are not stored: only transitions are. A node is unavailable once its last heartbeat is older
// than the node timeout, for placement and failover alike; the monitor writes that down on its next round. A node whose
// agent could not be called, twice, is unreachable: NotReady at once, and heartbeats do not make it Ready before a call
// has succeeded. Ages are judged from the moment that the scheduler started, began to lead, or had its store back.
//
// Invariants: (1) every node with a record has an entry; (2) expiries are those of the entries that are not stale.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/rooms.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/store_copy.h"

namespace muster::scheduler {

// How often a node is told to send heartbeats.
Duration HeartbeatInterval(const Config& config);

class NodeHealth {
 public:
  struct Entry {
    MonoTime judged_from;  // the last heartbeat, or the moment since which ages count
    std::optional<WallTime> heard_at;
    std::optional<MonoTime> spoke;  // the last heartbeat or registration since ages count
    std::optional<MonoTime> registered;
    Duration pause{};          // how long it is silent between heartbeats, as seen; at most what it was told
    bool heard = false;        // a heartbeat or registration since ages count
    bool stale = false;        // judged_from is too long ago
    bool expired = false;      // and the monitor has seen it
    bool unreachable = false;  // a call failed, twice
    bool reached = false;      // the last call succeeded
    std::optional<MonoTime> failing_since;
    std::string why;  // of the failure
    model::Resources used;

    MUSTER_FIELDS(Entry, judged_from, heard_at, spoke, registered, pause, heard, stale, expired, unreachable, reached,
                  failing_since, why, used)
  };
  struct State {
    std::map<std::string, Entry, std::less<>> entries;
    std::set<std::pair<MonoTime, std::string>> expiries;
    std::set<std::string> dirty;  // whose status is to be judged
    std::optional<MonoTime> next_round;

    MUSTER_FIELDS(State, entries, expiries, dirty, next_round)
  };

  NodeHealth(const Config& config, const StoreCopy& copy, Drafts& drafts, State state);

  // All ages are judged from here on.
  void JudgeFrom(MonoTime now);
  // The record of the node came, changed or went.
  void OnRecord(const std::string& node, MonoTime now);
  void OnHeartbeat(const std::string& node, std::optional<model::Resources> used, Now now);
  void OnRegistered(const std::string& node, muster::Now now);
  // A call that failed twice. True if the node is unreachable by it, and was not before.
  bool OnCallFailed(const std::string& node, const Status& status, MonoTime now);
  void OnCallSucceeded(const std::string& node);
  // Expiries, and the monitor's round. The nodes that became unavailable.
  std::vector<std::string> RunDue(MonoTime now);
  // Writes the transitions that are due.
  void WriteTransitions(StepContext& ctx);

  // Ready in the record and in its draft, heartbeats recent, the agent not unreachable.
  bool Available(std::string_view node) const;
  // Its heartbeat is overdue by a pass, by the pauses that it makes itself; or it was not heard yet since ages count.
  bool Silent(const Entry& entry, MonoTime now) const;
  // Two nodes of other makes that are called at the same address, unless each has been heard since the other
  // registered: one agent, which has got another id.
  bool AreOneAgent(std::string_view a, std::string_view b) const;
  NodeNow Now(std::string_view node) const;
  const Entry* Find(std::string_view node) const;
  std::optional<MonoTime> NextWake() const;
  void SetDirty(const std::string& node) { state_.dirty.insert(node); }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  Entry& At(const std::string& node, MonoTime now);
  void Restart(const std::string& node, Entry& entry, MonoTime now);
  void Judge(const std::string& node, StepContext& ctx);
  void Write(const std::string& node, model::NodeStatus status, std::string reason, std::string_view by, Reason why,
             StepContext& ctx);

  const Config& config_;
  const StoreCopy& copy_;
  Drafts& drafts_;
  State state_;
};

}  // namespace muster::scheduler
