// LoopView: what a whole loop (loop.h) has come to, as plain values: where every workload is and why, which machines
// there are for whom and at what price, what is short, and everything that was decided on the way.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "contract/cluster_views.h"
#include "contract/shard.h"
#include "core/operators/types.h"
#include "model/money.h"

namespace muster::sim {

struct LoopClusterView {
  std::vector<contract::WorkloadView> workloads;  // by id; node, phase, reason and message say where and why
  std::vector<contract::NodeView> nodes;          // by id
  std::vector<contract::SetView> sets;            // by name
  std::vector<operators::CorrectionView> corrections;

  // Workloads that are to run and have no node, or lost it and found no other.
  std::vector<contract::WorkloadView> Pending() const;
};

// An action of the shard as it ended, or as it stands.
struct LoopAction {
  Duration at{};  // decided, since the start
  contract::ActionView action;
};

// A decision of a scheduler.
struct LoopDecision {
  Duration at{};
  std::string cluster;
  contract::Decision decision;
};

struct LoopView {
  std::map<std::string, LoopClusterView> clusters;  // native ones, by id
  std::vector<contract::MachineView> machines;      // by id; all of the provider's
  model::Money price_per_hour;                      // of the machines that have hardware, Failed ones too
  std::vector<contract::NeedView> needs;            // of all clusters, in the order of decision
  std::vector<LoopAction> actions;                  // since the start, in the order of decision
  std::vector<LoopDecision> decisions;              // the same

  // Needs that are not satisfied and wait for nothing that is on its way.
  std::vector<contract::NeedView> Shortfalls() const;
  // Machines bound to the cluster, in whatever state.
  std::vector<contract::MachineView> Bound(const std::string& cluster) const;
};

}  // namespace muster::sim
