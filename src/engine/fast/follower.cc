#include "engine/fast/follower.h"

#include <set>

namespace muster::engine::fast {

void Follower::Update(const World& world) {
  std::set<std::string_view> here;
  for (const model::Machine& machine : world.machines) {
    here.insert(machine.id);
    const auto [it, is_new] = machines_.emplace(machine.id, machine);
    if (!is_new && it->second == machine) continue;
    it->second = machine;
    engine_.Upsert(machine);
  }
  for (auto it = machines_.begin(); it != machines_.end();) {
    if (here.contains(it->first)) {
      ++it;
      continue;
    }
    engine_.Remove(it->first);
    it = machines_.erase(it);
  }
  for (auto it = clusters_.begin(); it != clusters_.end();) {
    if (world.clusters.contains(it->first)) {
      ++it;
      continue;
    }
    engine_.SetCluster(it->first, {.session = false, .gate_open = false});
    gone_.insert(it->first);
    it = clusters_.erase(it);
  }
  for (const auto& [name, state] : world.clusters) {
    clusters_[name] = state;
    gone_.erase(name);
    engine_.SetCluster(name, state);
  }
  engine_.SetHolds(world.holds);
  counts_ages_ = world.counts_ages;
  struct Rows {
    std::vector<model::Need> needs;
    std::vector<uint64_t> digests;
  };
  std::map<std::string, Rows> rows;
  for (const auto& [name, positions] : positions_) rows[name];
  positions_.clear();
  for (size_t i = 0; i < world.needs.size(); ++i) {
    const model::Need& need = world.needs[i];
    rows[need.cluster].needs.push_back(need);
    rows[need.cluster].digests.push_back(RowDigest(need));
    positions_[need.cluster].push_back(i);
  }
  for (const auto& [name, list] : rows) {
    engine_.ReplaceNeeds(name, {.rows = list.needs, .digests = list.digests}, std::nullopt);
  }
  const std::vector<std::string> gone(gone_.begin(), gone_.end());
  for (const std::string& name : engine_.ForgetClusters(gone)) gone_.erase(name);
}

Decision Follower::Decide(MonoTime now) {
  engine_.Decide(now, true, counts_ages_);
  Decision decision = engine_.Explain();
  for (NeedVerdict& verdict : decision.needs) {
    const std::vector<size_t>& positions = positions_.at(verdict.need.cluster);
    for (size_t& row : verdict.rows) row = positions[row];
  }
  return decision;
}

Decision Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy) {
  Follower follower(policy);
  follower.engine().Restore(memory);
  follower.Update(world);
  Decision decision = follower.Decide(now);
  memory = follower.engine().ExportMemory();
  return decision;
}

}  // namespace muster::engine::fast
