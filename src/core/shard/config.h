// The shard's configuration: what an operator may set. docs/operating-shard.md has the flags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/coordinator.h"
#include "contract/provider.h"
#include "contract/shard.h"
#include "engine/types.h"
#include "model/machine.h"

namespace muster::shard {

enum class FailedPolicy : uint8_t { kRepair = 0, kKeep = 1 };

// When losses look like a fault of the provider, and how fast they are made good meanwhile.
struct LossLimits {
  model::Probability share{
      50'000};         // of a cluster's or the fleet's machines that cost money: more at once are no chance
  int64_t fewest = 5;  // as many at least
  Duration window = 10min;
  model::Probability replaced{100'000};  // of them, missing machines that are given up within replace_window
  Duration replace_window = 2min;
  model::Probability repaired{10'000};  // of the tracked machines, those under repair at a time; never below one
  int32_t refusals = 3;                 // of a repair by the provider, in a row, until it is given up

  MUSTER_FIELDS(LossLimits, share, fewest, window, replaced, replace_window, repaired, refusals)
};

// What one cluster may ask for in a roll-up; a larger one is refused.
struct RollupLimits {
  int64_t rows = 100'000;
  int64_t profiles = 50'000;  // distinct ones
  int64_t groups = 50'000;    // distinct names of groups
  int64_t bytes = 64 << 20;   // as the shard stores the rows

  MUSTER_FIELDS(RollupLimits, rows, profiles, groups, bytes)
};

struct Config {
  std::string id = "shard-0";
  engine::Policy policy;
  std::vector<contract::Domain> own;  // empty: every machine, unless a coordinator assigns domains
  int64_t epoch_at_least = 0;         // 0: not given

  // The cycle.
  Duration cycle_interval = 1s;
  Duration cycle_gap = 100ms;    // between the starts of two cycles, so that a burst of news makes one
  Duration restart_grace = 15s;  // how long a restarted shard waits for clusters it knows before it decides

  // Reconcile.
  bool incremental_reconcile = true;
  Duration sweep_interval = 1min;
  int32_t list_page = 5000;  // 0: no pages
  Duration list_timeout = contract::kProviderListTimeout;
  Duration call_timeout = contract::kProviderCallTimeout;

  // Rails.
  int64_t max_actions_per_cycle = 0;       // 0: no limit
  model::Probability reclaim_cap{50'000};  // of a cluster's Configured machines in one cycle, never below one machine
  model::Probability reclaim_budget{100'000};  // the same within the window
  Duration reclaim_window = 2min;
  bool empty_rollup_guard = true;
  contract::ActuationMode mode = contract::ActuationMode::kUnspecified;  // given: set at start, in place of what was

  // Execute.
  int32_t execute_concurrency = 64;
  int32_t execute_queue = 2048;  // operations that have begun and not ended; more are left to the next cycle
  Duration blob_timeout = 30s;
  Duration ack_timeout = 10s;  // how long a cluster may take to acknowledge before its machine is drained anyway
  Duration give_up = 2min;     // how long an instruction waits for a session that is gone

  // Holds after failures (holds.h), and the stop while the provider is away.
  Duration retry_first = 2s;  // of one machine; doubles up to retry_longest
  Duration retry_longest = 5min;
  Duration hold_first = 30s;  // of a stock class or a cluster; doubles up to hold_longest
  Duration hold_longest = 10min;
  Duration hold_window = 1min;    // three failures within it begin such a hold
  Duration outage_longest = 30s;  // between two attempts to call a provider that is away; begins with retry_first
  Duration trial_interval = 10s;  // between two decisions that show what paused clusters would have done

  FailedPolicy failed_policy = FailedPolicy::kRepair;
  Duration repair_first = 1min;  // doubles up to repair_longest
  Duration repair_longest = 1h;

  Duration hints_interval = 5s;

  std::string coordinator;  // empty: none
  Duration report_interval = 10s;
  std::string address;           // told to the coordinator
  std::string provider_address;  // the same

  bool verify_decisions = false;  // for tests: check every decision against the engine's invariants

  // Journals read these last (saved_state.cc).
  LossLimits losses;
  RollupLimits rollups;
  int32_t first_bootstraps = 3;  // at once, of a cluster that has no more machines Configured; 0: no limit

  MUSTER_FIELDS(Config, id, policy, own, epoch_at_least, cycle_interval, cycle_gap, restart_grace,
                incremental_reconcile, sweep_interval, list_page, list_timeout, call_timeout, max_actions_per_cycle,
                reclaim_cap, reclaim_budget, reclaim_window, empty_rollup_guard, mode, execute_concurrency,
                execute_queue, blob_timeout, ack_timeout, give_up, retry_first, retry_longest, hold_first, hold_longest,
                hold_window, outage_longest, trial_interval, failed_policy, repair_first, repair_longest,
                hints_interval, coordinator, report_interval, address, provider_address, verify_decisions, losses,
                rollups, first_bootstraps)
};

}  // namespace muster::shard
