// SavedState: the whole state of a shard as bytes, for journals: a core loaded from them goes on as the saved one
// would. The engine is built anew from what it was shown and what it remembers, which is all its decisions depend on;
// counters begin at zero.
//
// The bytes begin with a zero and the number of the layout; then the states of the parts follow, and the engine's
// memory. Layout 0 had neither zero nor number and held all fields in one list: it begins with the length of the
// shard's id, which is never empty. Layout 1 had a back-off for each machine and one queue instead of holds and lanes,
// and knew no losses and no machines that are set aside. Layout 2 did not know whose a Failed machine was.
// Layout 3 forgot that a machine was fenced when it was dropped, and which repairs an operator had allowed. Layout 4
// knew no ceilings. Layout 5 did not know since when calls are open, which checks of pages failed, how many machines
// each cluster had, nor a limit for the first machines of a cluster. Layout 6 knew which clusters lack machines since
// the start, and not how many, and forgot no cluster. Layout 7 had beside them how many machines might be acquired in
// their place. All are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/codec.h"
#include "base/fields.h"
#include "core/shard/action_log.h"
#include "core/shard/calls.h"
#include "core/shard/cluster_sweep.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/cycle_timer.h"
#include "core/shard/demand.h"
#include "core/shard/executor.h"
#include "core/shard/gets.h"
#include "core/shard/hints.h"
#include "core/shard/inspection.h"
#include "core/shard/ledger.h"
#include "core/shard/lifecycle.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/order_log.h"
#include "core/shard/owned_set.h"
#include "core/shard/rails.h"
#include "core/shard/reconcile.h"
#include "core/shard/repairs.h"
#include "core/shard/reports.h"
#include "core/shard/sessions.h"
#include "core/shard/trial.h"
#include "engine/types.h"

namespace muster::shard {

inline constexpr uint64_t kLayout = 8;

struct SavedState {
  engine::Memory memory;  // the engine's
  Config config;
  CycleTimer::State cycle;
  Clusters::State clusters;
  Calls::State calls;
  ActionLog::State log;
  OwnedSet::State owned;
  Machines::State machines;
  Lifecycle::State lifecycle;
  Gets::State gets;
  Sessions::State sessions;
  Rails::State rails;
  Repairs::State repairs;
  Executor::State executor;
  Ledger::State ledger;
  Demand::State demand;
  Trial::State trial;
  Reconcile::State reconcile;
  Hints::State hints;
  Reports::State reports;
  Inspection::State inspection;
  OrderLog::State orders;
  Losses::State losses;
  ClusterSweep::State sweep;

  MUSTER_FIELDS(SavedState, memory, config, cycle, clusters, calls, log, owned, machines, lifecycle, gets, sessions,
                rails, repairs, executor, ledger, demand, trial, reconcile, hints, reports, inspection, orders, losses,
                sweep)
};

// The bytes of a SavedState, from its fields in their order, so that nothing has to be copied.
template <class... States>
std::string SaveBytes(const States&... states) {
  static_assert(sizeof...(States) == std::tuple_size_v<decltype(SavedState::Fields())>);
  std::string bytes;
  codec::Writer writer(bytes);
  writer.Varint(0);
  writer.Varint(kLayout);
  (codec::Encode(writer, states), ...);
  return bytes;
}

// None if the bytes are not the state of a shard, or of a newer layout.
std::optional<SavedState> LoadState(std::string_view bytes);

}  // namespace muster::shard
