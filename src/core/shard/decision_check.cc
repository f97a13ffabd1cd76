#include "core/shard/decision_check.h"

#include <utility>

#include "engine/invariants.h"

namespace muster::shard {

void DecisionCheck::BeforeDecision() {
  if (!p_.config.verify_decisions) return;
  world_ = {};
  for (const auto& [id, tracked] : p_.machines.tracked()) {
    world_.machines.push_back(p_.machines.MachineForEngine(id, tracked));
  }
  for (const std::string& name : p_.clusters.names()) {
    const std::vector<model::Need>& rows = p_.demand.Of(name).rows;
    world_.needs.insert(world_.needs.end(), rows.begin(), rows.end());
    if (const auto state = p_.engine.ClusterStateOf(name)) world_.clusters.emplace(name, *state);
  }
  memory_ = p_.ledger.restored();  // what the engine reads only now
  engine::Memory known = p_.engine.engine().ExportMemory();
  for (auto& [id, memory] : known.machines) memory_.machines.insert_or_assign(id, std::move(memory));
  memory_.needs = std::move(known.needs);
}

void DecisionCheck::AfterDecision() {
  if (!p_.config.verify_decisions || !verdict_.ok()) return;
  verdict_ = engine::CheckDecision(world_, memory_, p_.engine.engine().Explain());
}

}  // namespace muster::shard
