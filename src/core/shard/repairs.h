// Repairs: Failed machines are given back and, if they are owned hardware, made again.
//
// A repair is Delete, our one edge out of Failed. On-demand and spot machines are then Speculative again and are bought
// when a need asks for them; owned hardware is created again at once. Each attempt waits twice as long as the one
// before. Durable: the number of attempts, whether the machine is to be created again, whether it is given up, and the
// cluster it served if its record no longer says so: reconcile puts that into the record again.
//
// A repair costs a machine, and the Failed state is only what the provider says. So no more than a share of the fleet
// is under repair at a time, none of a paused cluster, and none while machines fail in masses (losses.h); an order to
// repair one is carried out all the same. A machine that the provider refuses to delete is given up after a few
// attempts: it stays Failed until its state changes or an operator orders the repair.
//
// Invariants:
//   1. `begun` and `due` hold every repair that has a time, and nothing else: those under way in `begun`.
//   2. A machine is under way from the start of its repair until its end is seen.
//   3. A cycle costs what it starts or puts off, however many wait.
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
#include "core/shard/machines.h"
#include "core/shard/operation.h"
#include "core/shard/step_context.h"
#include "model/machine.h"

namespace muster::shard {

class Executor;
class Losses;
class Rails;

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

inline constexpr contract::Table<std::string, RepairRow> kRepairRows{"repair/"};                        // machine
inline constexpr contract::KeySet<std::string> kRefusedRows{.prefix = "repair-refused/", .value = ""};  // machine
inline constexpr contract::Table<std::string, std::string> kServedRows{"repair-served/"};  // machine: cluster

class Repairs {
 public:
  using ByMachine = std::map<std::string, Repair, std::less<>>;
  struct State {
    ByMachine repairs;
    std::set<std::string, std::less<>> under_way;
    std::map<std::string, int32_t, std::less<>> refusals;    // by the provider, in a row
    std::set<std::string, std::less<>> given_up;             // refused too often
    std::map<std::string, std::string, std::less<>> served;  // Failed: the cluster, where the record does not name it
    std::set<std::string, std::less<>> allowed;              // Failed, and an operator has accepted that; not durable

    MUSTER_FIELDS(State, repairs, under_way, refusals, given_up, served, allowed)
  };

  explicit Repairs(const Config& config, State state);

  void RegisterRows(contract::RowReader& reader);

  // The machine has come to this state. `first_sweep`: this life of the shard has just begun. What fails then is
  // written when the sweep is done, with all that follows from it: a life that ends before knows no more of it than the
  // next.
  void OnState(const model::Machine& machine, bool first_sweep, StepContext& ctx);
  void OnFirstSweep(StepContext& ctx);
  // The provider's record of a Failed machine does not name its cluster, which is that one.
  void KeepServed(const std::string& id, const std::string& cluster, StepContext& ctx);
  // The cluster that KeepServed gave; empty: none.
  const std::string& ServedBy(const std::string& id) const;
  // The provider refused to delete the machine as it is.
  void OnRefused(const std::string& id) { ++state_.refusals[id]; }
  // A repair's operation has ended.
  void OnEnded(const std::string& id, OperationKind kind, Outcome outcome, StepContext& ctx);
  // The machine is no longer tracked.
  void Forget(const std::string& id, StepContext& ctx);

  // In a cycle: starts what is due, as far as the rails let it and the executor can take it; the rest waits.
  void RunDue(const Losses& losses, Rails& rails, Executor& executor, StepContext& ctx);
  // Starts the repair of the machine, or does nothing if its state has nothing to repair.
  void Begin(const model::Machine& machine, model::Reason reason, Executor& executor, StepContext& ctx);
  // An operator accepted the losses of the cluster, or all of them if the name is empty: what waits to be repaired is
  // due now, and takes nothing from the cluster's budget. How many.
  size_t AllowNow(const std::string& cluster, const Machines& machines, StepContext& ctx);
  // Whether this life or an earlier one has seen that the machine failed.
  bool Knows(const std::string& id) const { return state_.repairs.contains(id); }
  // The provider refuses to delete the machine: it is not tried again.
  bool IsGivenUp(const std::string& id) const { return state_.given_up.contains(id); }
  size_t under_way() const { return state_.under_way.size(); }
  // Whose the machine is, or was when it failed.
  const std::string& ClusterOf(const model::Machine& machine) const {
    return machine.cluster.empty() ? ServedBy(machine.id) : machine.cluster;
  }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  using Queue = std::set<std::pair<MonoTime, std::string>>;

  Queue& QueueOf(const std::string& id) { return state_.under_way.contains(id) ? begun_ : due_; }
  void SetDue(const std::string& id, Repair& repair, std::optional<MonoTime> due);
  void SetUnderWay(const std::string& id, bool under_way);
  // The first of the queue starts, or is put off. False: no more repairs start in this cycle.
  bool RunFirst(const Queue& queue, const Losses& losses, Rails& rails, Executor& executor, StepContext& ctx);
  void ForgetServed(const std::string& id, StepContext& ctx);
  Duration PauseBefore(const Repair& repair) const;
  void GiveUp(const std::string& id, StepContext& ctx);
  void Keep(const std::string& id, StepContext& ctx) const;

  const Config& config_;
  State state_;
  // Derived from state_.
  Queue begun_;
  Queue due_;
};

}  // namespace muster::shard
