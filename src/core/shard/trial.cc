#include "core/shard/trial.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/fast/engine.h"

namespace muster::shard {
namespace {

constexpr Duration kPerMachine = 100us;  // between two trials: a build costs a few microseconds of each

}  // namespace

std::vector<engine::Action> Trial::Run(MonoTime now, bool counts_ages) {
  const auto machines = static_cast<int64_t>(deps_.machines.tracked().size());
  state_.next = now + std::max<Duration>(deps_.config.trial_interval, kPerMachine * machines);
  engine::Policy policy = deps_.config.policy;
  policy.surplus_hold = {};
  engine::fast::Engine engine(policy, deps_.parallel);
  for (const auto& [id, tracked] : deps_.machines.tracked())
    engine.Upsert(deps_.machines.MachineForEngine(id, tracked));
  for (const std::string& name : deps_.clusters.names()) {
    engine::ClusterState state = deps_.engine.ClusterStateOf(name).value_or(engine::ClusterState{.session = false});
    if (std::exchange(state.paused, false)) state.reclaims_allowed = std::numeric_limits<int64_t>::max();
    engine.SetCluster(name, state);
    const ClusterDemand& demand = deps_.demand.Of(name);
    if (demand.accepted) engine.ReplaceNeeds(name, {.rows = demand.rows, .digests = demand.digests}, std::nullopt);
  }
  engine.SetHolds(deps_.rails.holds().told());
  engine.Restore(deps_.ledger.restored());  // what the shard's engine reads only now
  engine.Restore(deps_.engine.engine().ExportMemory());
  engine.Decide(now, false, counts_ages);
  std::vector<engine::Action> actions;
  for (engine::fast::NamedAction& named : engine.NamedActions()) actions.push_back(std::move(named.action));
  return actions;
}

}  // namespace muster::shard
