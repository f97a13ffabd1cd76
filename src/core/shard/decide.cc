// The cycle: the engine decides over what it was shown, the rails look at it, and what they let pass begins.
#include <algorithm>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"
#include "engine/fast/cycle.h"
#include "engine/invariants.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;
using engine::ActionKind;

}  // namespace

MonoTime Core::NextCycle() const {
  const bool now = cycle_due_ || (starved_ && operations_.empty());
  return last_cycle_ + (now ? config_.cycle_gap : config_.cycle_interval);
}

void Core::RunCycle(Turn& turn) {
  ++cycle_;
  cycle_due_ = false;
  starved_ = false;
  last_cycle_ = turn.now.mono;
  for (auto& [name, cluster] : clusters_) {
    engine_->SetCluster(name, {.session = cluster.session != 0 || MUTANT("shard.session_not_needed"),
                               .gate_open = cluster.gate_open || MUTANT("shard.gate_always_open"),
                               .reclaims_allowed = ReclaimsAllowed(name, cluster, turn)});
  }
  const bool explain = !waiting_.empty() || config_.verify_decisions;
  engine::World world;
  engine::Memory before;
  if (config_.verify_decisions) {
    world = WorldNow();
    before = restored_;  // what the engine will only read now
    engine::Memory known = engine_->ExportMemory();
    for (auto& [id, memory] : known.machines) before.machines.insert_or_assign(id, std::move(memory));
    before.needs = std::move(known.needs);
  }
  engine_->Decide(turn.now.mono, explain);
  if (config_.verify_decisions && verdict_.ok()) verdict_ = engine::CheckDecision(world, before, engine_->Explain());
  const engine::fast::BrokerStats& plans = engine_->cycle().broker();
  counters_.plans_kept += plans.proposals_basic + plans.proposals_gang - plans.conflicts - plans.displacements;
  counters_.plans_conflicts += plans.conflicts;
  counters_.plans_displaced += plans.displacements;
  counters_.reclaims_capped += engine_->cycle().reclaims_capped();
  decided_ = true;
  restored_ = {};
  Laps laps(parallel_);
  CountDemand(turn.now.mono);
  if (!waiting_.empty()) AnswerWaiting(turn);
  const std::vector<engine::fast::NamedAction> actions = engine_->NamedActions();
  KeepMemory(turn);
  KeepShort(turn);
  CarryOut(actions, turn);
  laps.Ended("execute");
  turn.out.push_back(CycleEnded{cycle_});
}

// For metrics, which are read every few seconds at most.
void Core::CountDemand(MonoTime now) {
  if (now < next_demand_count_) return;
  next_demand_count_ = now + config_.hints_interval;
  for (auto& [bucket, machines] : demand_) machines = 0;
  const engine::fast::Demand& demand = engine_->demand();
  engine_->cycle().ForEachClaim([&](const engine::fast::ClaimRow& claim) {
    demand_[demand.info(demand.order()[claim.need]->profile).profile.interruption()] += claim.count;
  });
}

void Core::CarryOut(const std::vector<engine::fast::NamedAction>& actions, Turn& turn) {
  const std::set<std::pair<std::string, uint8_t>> suppressed_before = std::exchange(suppressed_, {});
  int64_t begun = 0;
  for (const engine::fast::NamedAction& named : actions) {
    const engine::Action& action = named.action;
    ++counters_.actions[std::string(engine::ActionKindName(action.kind))];
    if (const ActuationMode mode = ModeFor(action.cluster, action.need); mode != ActuationMode::kActive) {
      const std::pair<std::string, uint8_t> which{action.machine, static_cast<uint8_t>(action.kind)};
      ++(mode == ActuationMode::kPaused ? counters_.suppressed
                                        : counters_.dry_run)[std::string(engine::ActionKindName(action.kind))];
      if (!suppressed_before.contains(which)) Suppress(action, mode, turn);
      suppressed_.insert(which);
      if (!MUTANT("shard.pause_ignored")) continue;
    }
    if (!MayBegin(action, turn.now.mono)) {
      ++counters_.deduped;
      continue;
    }
    // Preempt is how priority is kept: no volume limits it.
    const bool limited = action.kind != ActionKind::kPreempt || MUTANT("shard.preempt_limited");
    if (limited && config_.max_actions_per_cycle > 0 && begun >= config_.max_actions_per_cycle) {
      PROBE("shard.action_deferred");
      ++counters_.deferred;
      MakeDue();
      continue;
    }
    if (operations_.size() >= static_cast<size_t>(config_.execute_queue)) {
      PROBE("shard.queue_full");
      ++counters_.dropped;
      starved_ = true;
      continue;
    }
    begun += limited ? 1 : 0;
    Begin(named, turn);
  }
}

// Once for as long as it lasts: the same action is decided again in every cycle.
void Core::Suppress(const engine::Action& action, ActuationMode mode, Turn& turn) {
  PROBE("shard.suppressed");
  Log({.cycle = cycle_,
       .decided = turn.now.wall,
       .kind = std::string(engine::ActionKindName(action.kind)),
       .machine_id = action.machine,
       .cluster_id = action.cluster,
       .need_fingerprint = action.need ? action.need->fingerprint : "",
       .need_group = action.need ? action.need->group : "",
       .reason = action.reason,
       .grace_seconds = action.grace.count(),
       .outcome = mode == ActuationMode::kPaused ? "suppressed" : "dryrun"},
      turn);
}

engine::World Core::WorldNow() const {
  engine::World world;
  for (const auto& [id, tracked] : machines_) {
    model::Machine machine = *tracked.record;
    machine.state = ShownState(id, tracked);
    if (machine.state == model::MachineState::kConfiguring && machine.cluster.empty()) {
      const auto operation = operations_.find(id);
      if (operation != operations_.end()) machine.cluster = operation->second.cluster;
    }
    world.machines.push_back(std::move(machine));
  }
  for (const auto& [name, cluster] : clusters_) {
    world.needs.insert(world.needs.end(), cluster.rows.begin(), cluster.rows.end());
    const engine::fast::Inventory& inventory = engine_->inventory();
    const engine::fast::ClusterId id = inventory.FindCluster(name);
    if (id != engine::fast::kNoId) world.clusters.emplace(name, inventory.cluster(id).state);
  }
  return world;
}

}  // namespace muster::shard
