// Ledger: what a restart must not lose of the engine's memory, as rows that are written when they change: what is
// remembered of machines, how long drains take, and which needs are short and since when. A need that is pending, which
// lacks only what is on its way to it, is not short.
//
// Times on disk are wall times (contract/tables.h). The rows of an earlier life are kept as they were read until the
// machine or the need they are about is there again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "contract/tables.h"
#include "core/shard/cluster_ceilings.h"
#include "core/shard/cycle_timer.h"
#include "core/shard/engine_view.h"
#include "core/shard/machines.h"
#include "core/shard/step_context.h"
#include "engine/types.h"
#include "model/need.h"

namespace muster::shard {

class Demand;

// A need that is short, or a gang without hope that is pending.
struct ShortNeed {
  MonoTime since;
  ShortCycles cycles;
  int32_t priority = 0;

  bool operator==(const ShortNeed&) const = default;
  MUSTER_FIELDS(ShortNeed, since, cycles, priority)
};

struct ShortRow {
  WallTime since;
  ShortCycles cycles;

  MUSTER_FIELDS(ShortRow, since, cycles)
};

struct MachineRow {
  std::optional<model::Attribution> attribution;  // where it differs from the bind stamp
  std::optional<engine::NeedKey> pledge;
  std::optional<WallTime> unclaimed_since;
  std::optional<WallTime> draining_since;

  MUSTER_FIELDS(MachineRow, attribution, pledge, unclaimed_since, draining_since)
};

inline constexpr contract::Table<std::string, MachineRow> kMachineRows{"machine/"};     // machine
inline constexpr contract::Table<engine::NeedKey, ShortRow> kShortRows{"short/"};       // need
inline constexpr contract::Table<std::string, engine::DrainMean> kDrainRows{"drain/"};  // instance type

class Ledger {
 public:
  struct State {
    std::map<engine::NeedKey, ShortNeed> short_needs;
    std::map<std::string, uint64_t> machine_digests;  // of the rows on disk
    std::map<std::string, engine::DrainMean> drains;  // on disk
    // Of an earlier life.
    std::map<std::string, MachineRow> earlier_machines;
    std::map<engine::NeedKey, ShortRow> earlier_short;
    engine::Memory restored;  // told to the engine; empty once it has decided

    MUSTER_FIELDS(State, short_needs, machine_digests, drains, earlier_machines, earlier_short, restored)
  };

  // What is referred to outlives this.
  Ledger(EngineView& engine, ClusterCeilings& ceilings, State state)
      : engine_(engine), ceilings_(ceilings), state_(std::move(state)) {}

  void RegisterRows(contract::RowReader& reader);
  // Tells the engine what an earlier life remembered of machines and drains.
  void Start(Now now);
  // Tells the engine what an earlier life remembered of the cluster's needs, now that the cluster lists them again.
  void RestoreAges(const std::string& cluster, const CycleTimer& cycle);

  // After a decision: writes what changed. Settles the short needs of an earlier life whose cluster has accepted
  // demand.
  void Keep(const Machines& machines, const Demand& demand, StepContext& ctx);
  // The machine is no longer tracked.
  void OnMachineDropped(const std::string& id, StepContext& ctx);

  // Since when the need is short; null if it is not.
  const ShortNeed* Find(const engine::NeedKey& key) const;
  const ShortCounts& short_counts() const { return short_counts_; }
  // What the engine was told to remember and has not read yet.
  const engine::Memory& restored() const { return state_.restored; }
  // The engine has decided: it has read everything.
  void ForgetRestored() { state_.restored = {}; }

  // After a load.
  void Rebuild(const CycleTimer& cycle);
  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void KeepMachines(const Machines& machines, StepContext& ctx);
  void KeepDrains(StepContext& ctx);
  void KeepShort(const Demand& demand, StepContext& ctx);
  void PutShort(const ShortChanges::Changed& changed, StepContext& ctx);

  EngineView& engine_;
  ClusterCeilings& ceilings_;  // is told whom machines are pledged to
  State state_;
  ShortCounts short_counts_;  // derived from the engine's last decision
};

}  // namespace muster::shard
