// Repairs: Failed machines are given back and, if they are owned hardware, made again.
//
// A repair is Delete, our one edge out of Failed. On-demand and spot machines are then Speculative again and are bought
// when a need asks for them; owned hardware is created again at once. Each attempt waits twice as long as the one
// before. Durable: the number of attempts, and whether the machine is to be created again.
//
// Invariant: `due` holds every repair that has a time, and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "contract/tables.h"
#include "core/shard/config.h"
#include "core/shard/operation.h"
#include "core/shard/step_context.h"
#include "model/machine.h"

namespace muster::shard {

class Executor;

struct Repair {
  int32_t attempts = 0;
  std::optional<MonoTime> due;  // of the next attempt; none: under way, or given up
  bool recreate = false;        // owned hardware: create it again once it is given back

  MUSTER_FIELDS(Repair, attempts, due, recreate)
};

struct RepairRow {
  int32_t attempts = 0;
  bool recreate = false;

  MUSTER_FIELDS(RepairRow, attempts, recreate)
};

inline constexpr contract::Table<std::string, RepairRow> kRepairRows{"repair/"};  // machine

class Repairs {
 public:
  using State = std::map<std::string, Repair, std::less<>>;

  explicit Repairs(const Config& config, State state);

  void RegisterRows(contract::RowReader& reader);

  // The machine has come to this state.
  void OnState(const model::Machine& machine, StepContext& ctx);
  // A repair's operation has ended.
  void OnEnded(const std::string& id, OperationKind kind, Outcome outcome, StepContext& ctx);
  // The machine is no longer tracked.
  void Forget(const std::string& id, StepContext& ctx);

  // Starts what is due, as far as the executor can take it; the rest waits.
  void RunDue(Executor& executor, StepContext& ctx);
  // Starts the repair of the machine, or does nothing if its state has nothing to repair.
  void Begin(const model::Machine& machine, model::Reason reason, Executor& executor, StepContext& ctx);
  // When the next one is due; MonoTime::max() if none is.
  MonoTime NextWake() const { return due_.empty() ? MonoTime::max() : due_.begin()->first; }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void SetDue(const std::string& id, Repair& repair, std::optional<MonoTime> due);
  Duration PauseBefore(const Repair& repair) const;
  void Keep(const std::string& id, StepContext& ctx) const;

  const Config& config_;
  State state_;
  std::set<std::pair<MonoTime, std::string>> due_;  // derived from state_
};

}  // namespace muster::shard
