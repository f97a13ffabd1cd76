// Holds: what is left alone for a while because calls failed, so that needs move on to the next best machine.
//
//   machine   its Create failed: no cluster acquires it
//   class     Creates of one stock class failed: nothing of it is bought
//   pair      a Configure or a blob failed: this cluster does not acquire this machine
//   cluster   Configures or blobs of one cluster failed: it acquires nothing
//   rest      a Drain or a Delete failed: neither begins on the machine. The engine is told of machines that serve: it
//             takes others in their place. An Idle machine that cannot be deleted may still be acquired
//
// A hold of one machine begins with Config::retry_first and doubles with every failure in a row up to retry_longest.
// A class and a cluster are held after three failures within Config::hold_window without a success between, a class
// also after one RESOURCE_EXHAUSTED; the hold begins with hold_first and doubles up to hold_longest. Once it has passed
// the engine may plan with all of the class or cluster again, but one operation goes ahead, the probe, and the others
// begin when it has succeeded; if it fails, the hold is twice as long.
//
// An outage of the provider (UNAVAILABLE, a deadline) is no failure of a machine and does not come here. A call that
// hangs though the provider answers others holds its machine alone.
// Durable: every hold, and the failures counted so far.
//
// Invariants:
//   1. A hold is never longer than the longest of its kind, over restarts and changes of the wall clock too.
//   2. At most one operation of a class or cluster whose hold has passed is under way until one has succeeded.
//   3. probes holds the probe of every hold that has one, and nothing else.
#pragma once

#include <compare>
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
#include "contract/tables.h"
#include "core/shard/config.h"
#include "core/shard/machines.h"
#include "core/shard/operation.h"
#include "core/shard/step_context.h"
#include "engine/types.h"
#include "model/machine.h"

namespace muster::shard {

// Stored: numbers stay.
enum class HoldKind : uint8_t { kMachine = 0, kClass = 1, kPair = 2, kCluster = 3, kRest = 4 };
std::string_view HoldKindName(HoldKind kind);  // "machine", "class", "pair", "cluster", "rest"

struct HoldKey {
  HoldKind kind = HoldKind::kMachine;
  std::string machine;         // of kMachine, kPair, kRest
  std::string cluster;         // of kPair, kCluster
  engine::StockClass stock{};  // of kClass

  auto operator<=>(const HoldKey&) const = default;
  MUSTER_FIELDS(HoldKey, kind, machine, cluster, stock)
};

struct Hold {
  int32_t times = 0;  // held so often in a row; 0: failures are counted, nothing is held
  MonoTime until;
  std::deque<MonoTime> recent;  // class and cluster: failures within the window, while nothing is held
  std::string probe;            // class and cluster: the machine of the operation that goes ahead; empty: none
  MonoTime probe_since;

  MUSTER_FIELDS(Hold, times, until, recent, probe, probe_since)
};

struct HoldRow {
  int32_t times = 0;
  WallTime until;
  std::vector<WallTime> recent;

  MUSTER_FIELDS(HoldRow, times, until, recent)
};

inline constexpr contract::Table<HoldKey, HoldRow> kHoldRows{"hold/"};

class Holds {
 public:
  struct State {
    std::map<HoldKey, Hold> holds;
    std::map<HoldKey, HoldRow> earlier;  // of an earlier life, until the start

    MUSTER_FIELDS(State, holds, earlier)
  };

  explicit Holds(const Config& config, State state);

  void RegisterRows(contract::RowReader& reader);
  void Start(StepContext& ctx);

  // --- what happened
  // A Create failed; `out_of_stock`: RESOURCE_EXHAUSTED.
  void OnCreateFailed(const model::Machine& machine, bool out_of_stock, StepContext& ctx);
  void OnCreated(const model::Machine& machine, StepContext& ctx);
  // A Configure, or the blob for it, failed.
  void OnConfigureFailed(const std::string& machine, const std::string& cluster, StepContext& ctx);
  void OnConfigured(const std::string& machine, const std::string& cluster, StepContext& ctx);
  // A Drain or a Delete failed.
  void OnOtherFailed(const std::string& machine, StepContext& ctx);
  // An operation failed in a way that tells nothing about others: the machine is held, and no class or cluster. With
  // `for_long` for as long as a machine is held at all, because the provider does not know the operation.
  void OnMachineFailed(const std::string& machine, OperationKind kind, const std::string& cluster, bool for_long,
                       StepContext& ctx);
  // A transition has brought the machine to another state: it need not rest.
  void OnMoved(const std::string& machine, StepContext& ctx);
  void OnDropped(const std::string& machine, StepContext& ctx);

  // --- operations
  // Whether the operation must not begin, or not reach the provider, for now. `kind` is no repair.
  bool Blocks(OperationKind kind, const model::Machine& machine, const std::string& cluster, MonoTime now) const;
  // Whether a Configure of the cluster failed since one ended well: of late, for a failure that held nothing is
  // forgotten after hold_longest.
  bool HasFailedLast(const std::string& cluster) const;
  // Whether no machine may be taken from others for the cluster, to which so many are on their way. Once its hold has
  // passed it may have one: to configure that is the probe.
  bool BarsTaking(const std::string& cluster, int64_t coming, MonoTime now) const;
  // The operation begins: it is the probe if its class or cluster waits for one.
  void OnStarted(OperationKind kind, const model::Machine& machine, const std::string& cluster, MonoTime now);
  // The operation ended before it is known whether the provider can do it: another may be the probe. Costs nothing if
  // the machine is no probe.
  void OnUndecided(const std::string& machine);
  // Until when nothing that gives the machine back, and no Create, may begin.
  MonoTime RestsUntil(const std::string& machine) const;

  // --- the decision
  // Forgets what is long past. What the engine is to be told; none if that is the same as when it was last asked.
  std::optional<engine::Holds> TakeChanges(const Machines& machines, StepContext& ctx);
  // As TakeChanges last said.
  const engine::Holds& told() const { return told_; }
  // Those that a hold, or a count of failures, is about.
  void AddClusters(std::set<std::string, std::less<>>& used) const;
  bool IsClusterHeld(const std::string& cluster, MonoTime now) const;

  // --- for people
  struct Shown {
    HoldKey key;
    int32_t times = 0;
    MonoTime until;
  };
  // What keeps the machine from being acquired or given back now, the longest first; of its class only while it is
  // Speculative.
  std::vector<Shown> Of(const model::Machine& machine, MonoTime now) const;
  std::optional<MonoTime> ClusterHeldUntil(const std::string& cluster, MonoTime now) const;
  // How many holds of each kind there were when TakeChanges was last asked.
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  const Hold* Find(const HoldKey& key) const;
  Duration Longest(HoldKind kind) const;
  bool BlocksGroup(const HoldKey& key, const std::string& machine, MonoTime now) const;
  void Begin(const HoldKey& key, Hold& hold, bool for_long, StepContext& ctx);
  void FailOne(const HoldKey& key, bool for_long, StepContext& ctx);
  void FailGroup(const HoldKey& key, const std::string& machine, bool at_once, StepContext& ctx);
  void SucceedGroup(const HoldKey& key, const std::string& machine, StepContext& ctx);
  void Erase(const HoldKey& key, StepContext& ctx);
  // `machine` empty: the hold has none.
  void SetProbe(const HoldKey& key, Hold& hold, const std::string& machine);
  void Store(const HoldKey& key, const Hold& hold, StepContext& ctx) const;

  const Config& config_;
  State state_;
  // Derived.
  engine::Holds told_;
  bool changed_ = true;
  MonoTime next_change_;  // the first time at which a hold ends or is forgotten
  std::map<std::string, uint64_t> counts_;
  std::set<std::pair<std::string, HoldKey>> probes_;  // by machine
};

}  // namespace muster::shard
