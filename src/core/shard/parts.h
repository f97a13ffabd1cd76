// Parts: the shard's components, wired to each other. A part holds references only to parts above it in this list; what
// a part must tell one below it, Core carries over (shard.cc). Three parts are lent one below them for the length of a
// call: repairs the executor that starts them, the ledger the demand that says which clusters have spoken, losses the
// budget of changes.
#pragma once

#include "base/parallel.h"
#include "core/shard/action_log.h"
#include "core/shard/calls.h"
#include "core/shard/cluster_sweep.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/cycle_timer.h"
#include "core/shard/decision_check.h"
#include "core/shard/demand.h"
#include "core/shard/engine_view.h"
#include "core/shard/executor.h"
#include "core/shard/gets.h"
#include "core/shard/hints.h"
#include "core/shard/inspection.h"
#include "core/shard/ledger.h"
#include "core/shard/lifecycle.h"
#include "core/shard/losses.h"
#include "core/shard/machine_changes.h"
#include "core/shard/machines.h"
#include "core/shard/order_log.h"
#include "core/shard/owned_set.h"
#include "core/shard/rails.h"
#include "core/shard/reconcile.h"
#include "core/shard/repairs.h"
#include "core/shard/reports.h"
#include "core/shard/saved_state.h"
#include "core/shard/sessions.h"
#include "core/shard/trial.h"

namespace muster::shard {

struct Parts {
  // `parallel`, which must outlive this, may be null.
  Parts(SavedState state, Parallel* workers);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void RegisterRows(contract::RowReader& reader);
  std::string Save() const;
  // After a load: shows the engine what the parts know, and everything else that follows from their state.
  void Rebuild(const engine::Memory& memory);
  void CheckInvariants() const;

  const Config config;
  Parallel* const parallel;
  EngineView engine;
  Counters counters;  // since the start of this life
  CycleTimer cycle;
  Clusters clusters;
  Calls calls;
  ActionLog log;
  OrderLog orders;
  OwnedSet owned;
  Machines machines;
  Losses losses;
  Lifecycle lifecycle;
  Gets gets;
  Sessions sessions;
  Rails rails;
  Repairs repairs;
  Executor executor;
  Ledger ledger;
  Demand demand;
  MachineChanges changes;
  Trial trial;
  Reconcile reconcile;
  Hints hints;
  Reports reports;
  Inspection inspection;
  ClusterSweep sweep;
  DecisionCheck check;
};

}  // namespace muster::shard
