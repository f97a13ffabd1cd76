// MachineChanges: what follows in other parts of the shard when the provider shows another state of a machine, or no
// longer has it. One place, so that no part has to be told of a change twice.
#pragma once

#include <string>
#include <vector>

#include "core/shard/demand.h"
#include "core/shard/executor.h"
#include "core/shard/ledger.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/rails.h"
#include "core/shard/repairs.h"
#include "core/shard/sessions.h"
#include "core/shard/step_context.h"
#include "model/machine.h"

namespace muster::shard {

class MachineChanges {
 public:
  // The parts that follow; all outlive it.
  struct Deps {
    Machines& machines;
    Executor& executor;
    Sessions& sessions;
    Repairs& repairs;
    Ledger& ledger;
    Losses& losses;
    Rails& rails;
    Demand& demand;
  };

  explicit MachineChanges(const Deps& deps) : deps_(deps) {}

  // The machine was seen for the first time; `first_sweep`: by this life of the shard, which has just begun.
  void OnAdopted(const model::Machine& machine, bool first_sweep, StepContext& ctx);
  // Its state or cluster is another than before. Machines that failed in masses, and are to be set aside: not in the
  // first sweep, in which it is not known yet of how many machines they are.
  std::vector<std::string> OnMoved(const model::Machine& before, const model::Machine& machine, bool first_sweep,
                                   StepContext& ctx);
  // The first sweep is done, and all machines have been seen: what failed meanwhile is stored.
  void OnFirstSweep(StepContext& ctx) { deps_.repairs.OnFirstSweep(ctx); }
  // It is known which of the Failed machines are set aside: clusters are told of the others.
  void TellFailed(StepContext& ctx) const;
  // A machine that was set aside as Failed is that from now on: its cluster is told.
  void OnGivenUp(const model::Machine& machine, StepContext& ctx) const;
  // The first sweep shows as Failed what an earlier life has set aside as that.
  void OnStillFailing(const model::Machine& machine, StepContext& ctx);
  // Whether an earlier life, or this one, has seen the machine fail.
  bool KnowsFailed(const std::string& id) const { return deps_.repairs.Knows(id); }
  // The cluster that a Failed machine served, if its records no longer say so; else empty.
  const std::string& ServedBy(const std::string& id) const { return deps_.repairs.ServedBy(id); }
  void KeepServed(const std::string& id, const std::string& cluster, StepContext& ctx) {
    deps_.repairs.KeepServed(id, cluster, ctx);
  }
  // The provider no longer shows it, and it is not given up yet.
  void OnMissing(const std::string& id, StepContext& ctx);
  // A missing machine is shown again; of one that an earlier life missed no part has heard.
  void OnReturned(const model::Machine& machine, bool first_sweep, StepContext& ctx);
  // Removes the machine.
  void Drop(const std::string& id, const std::string& detail, StepContext& ctx);

 private:
  // `told`: whether its cluster hears of it now.
  void OnState(const model::Machine& before, const model::Machine& machine, bool first_sweep, bool told,
               StepContext& ctx);

  const Deps deps_;
};

}  // namespace muster::shard
