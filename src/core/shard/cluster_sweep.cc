#include "core/shard/cluster_sweep.h"

#include <vector>

#include "base/probe.h"

namespace muster::shard {

void ClusterSweep::Run(StepContext& ctx) {
  if (ctx.now.mono < state_.next || MUTANT("shard.cluster_names_stay")) return;
  state_.next = ctx.now.mono + kSweepClustersEvery;
  const Clusters::Names used = InUse(ctx.now.wall);
  std::vector<std::string> unused;
  for (const std::string& name : deps_.clusters.names()) {
    if (used.contains(name)) {
      state_.unused_since.erase(name);
    } else if (ctx.now.mono - state_.unused_since.try_emplace(name, ctx.now.mono).first->second >= kForgetAfter) {
      unused.push_back(name);
    }
  }
  for (const std::string& name : unused) Forget(name, ctx);
  engine_has_.insert(unused.begin(), unused.end());
  std::erase_if(engine_has_, [this](const std::string& name) { return deps_.clusters.names().contains(name); });
  if (engine_has_.empty()) return;
  const std::vector<std::string> names(engine_has_.begin(), engine_has_.end());
  for (const std::string& name : deps_.engine.engine().ForgetClusters(names)) engine_has_.erase(name);
}

Clusters::Names ClusterSweep::InUse(WallTime now) const {
  Clusters::Names used;
  if (MUTANT("shard.decommissioned_stay")) used = deps_.clusters.state().decommissioned;
  const auto add_keys = [&](const auto& by_cluster) {
    for (const auto& [cluster, of_it] : by_cluster) used.insert(cluster);
  };
  const auto add_needs = [&](const auto& by_need) {
    for (const auto& [need, of_it] : by_need) used.insert(need.cluster);
  };
  add_keys(deps_.sessions.state().by_cluster);
  for (const auto& [cluster, order] : deps_.orders.state().last) {
    if (now - order.at < kOrderKeeps || MUTANT("shard.orders_keep_clusters")) used.insert(cluster);
  }
  deps_.machines.AddClusters(used);
  deps_.losses.AddClusters(used);
  deps_.rails.AddClusters(used);
  deps_.demand.AddClusters(used);
  deps_.executor.AddClusters(used);
  for (const auto& [machine, cluster] : deps_.repairs.state().served) used.insert(cluster);
  const Ledger::State& ledger = deps_.ledger.state();
  add_needs(ledger.short_needs);
  add_needs(ledger.earlier_short);
  add_needs(ledger.restored.needs);
  for (const auto& [machine, row] : ledger.earlier_machines) {
    if (row.pledge) used.insert(row.pledge->cluster);
  }
  return used;
}

void ClusterSweep::Forget(const std::string& cluster, StepContext& ctx) {
  PROBE("shard.cluster_forgotten");
  deps_.machines.ForgetCluster(cluster);
  deps_.rails.Forget(cluster, ctx);
  deps_.demand.Forget(cluster);
  deps_.orders.Forget(cluster, ctx);
  deps_.clusters.Remove(cluster);
  ctx.counters.rollups_rejected.erase(cluster);
  ctx.counters.above_ceiling.erase(cluster);
  state_.unused_since.erase(cluster);
}

}  // namespace muster::shard
