// Parts: the scheduler's components, wired to each other. A part holds references only to parts above it in this list;
// what a part must tell one below it, Core carries over (scheduler.cc). Each has its State, which is saved in journals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "core/scheduler/agent_calls.h"
#include "core/scheduler/coming_machines.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/evictions.h"
#include "core/scheduler/node_health.h"
#include "core/scheduler/orphans.h"
#include "core/scheduler/placements.h"
#include "core/scheduler/queries.h"
#include "core/scheduler/quota_use.h"
#include "core/scheduler/reconciler.h"
#include "core/scheduler/refusals.h"
#include "core/scheduler/requests.h"
#include "core/scheduler/rooms.h"
#include "core/scheduler/set_controller.h"
#include "core/scheduler/spec_edits.h"
#include "core/scheduler/standing.h"
#include "core/scheduler/store_copy.h"
#include "core/scheduler/transitions.h"
#include "core/scheduler/views.h"

namespace muster::scheduler {

inline constexpr uint64_t kLayout = 13;

struct SavedState {
  uint64_t layout = kLayout;
  Config config;
  Standing::State standing;
  StoreCopy::State copy;
  Drafts::State drafts;
  NodeHealth::State health;
  Rooms::State rooms;
  QuotaUse::State quota;
  Refusals::State refusals;
  AgentCalls::State calls;
  Orphans::State orphans;
  ComingMachines::State coming;
  Placements::State placements;
  Reconciler::State reconciler;
  SetController::State sets;
  Evictions::State evictions;
  Requests::State requests;
  std::optional<MonoTime> next_pass;
  uint64_t passes = 0;  // so far
  MonoTime next_wave;   // before that, room that was left ends no waits

  MUSTER_FIELDS(SavedState, layout, config, standing, copy, drafts, health, rooms, quota, refusals, calls, orphans,
                coming, placements, reconciler, sets, evictions, requests, next_pass, passes, next_wave)
};

struct Parts {
  explicit Parts(SavedState state);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  std::string Save() const;
  // After a load: everything that follows from the states.
  void Rebuild();
  void CheckInvariants() const;

  const Config config;
  Counters counters;
  Standing standing;
  StoreCopy copy;
  Drafts drafts;
  NodeHealth health;
  Rooms rooms;
  QuotaUse quota;
  Refusals refusals;
  AgentCalls calls;
  Orphans orphans;
  Transitions transitions;
  ComingMachines coming;
  Placements placements;
  Reconciler reconciler;
  SpecEdits edits;
  SetController sets;
  Evictions evictions;
  Requests requests;
  Views views;
  Queries queries;
  std::optional<MonoTime> next_pass;
  uint64_t passes = 0;
  MonoTime next_wave;
};

}  // namespace muster::scheduler
