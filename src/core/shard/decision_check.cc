#include "core/shard/decision_check.h"

#include <utility>

#include "engine/invariants.h"

namespace muster::shard {

void DecisionCheck::BeforeDecision(bool counts_ages) {
  if (!deps_.config.verify_decisions) return;
  world_ = {.holds = deps_.rails.holds().told(), .counts_ages = counts_ages};
  for (const auto& [id, tracked] : deps_.machines.tracked()) {
    world_.machines.push_back(deps_.machines.MachineForEngine(id, tracked));
  }
  for (const std::string& name : deps_.clusters.names()) {
    const std::vector<model::Need>& rows = deps_.demand.Of(name).rows;
    world_.needs.insert(world_.needs.end(), rows.begin(), rows.end());
    if (const auto state = deps_.engine.ClusterStateOf(name)) world_.clusters.emplace(name, *state);
  }
  memory_ = deps_.ledger.restored();  // what the engine reads only now
  engine::Memory known = deps_.engine.engine().ExportMemory();
  for (auto& [id, memory] : known.machines) memory_.machines.insert_or_assign(id, std::move(memory));
  memory_.needs = std::move(known.needs);
}

void DecisionCheck::AfterDecision() {
  if (!deps_.config.verify_decisions || !verdict_.ok()) return;
  verdict_ = engine::CheckDecision(world_, memory_, deps_.engine.engine().Explain());
}

}  // namespace muster::shard
