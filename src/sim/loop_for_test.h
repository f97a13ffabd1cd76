// Pieces of which tests of the whole loop are made.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/loop.h"

namespace muster::sim {

struct MachineDraft {
  std::string id;
  std::string type = "small";
  std::string zone = "a";
  int64_t cpu_milli = 4000;
  double dollars = 0.1;
  model::CapacityType capacity = model::CapacityType::kOnDemand;
};

// One that could be bought.
inline model::Machine Speculative(const MachineDraft& draft) {
  model::Machine machine;
  machine.id = draft.id;
  machine.state = model::MachineState::kSpeculative;
  machine.instance_type = draft.type;
  machine.zone = draft.zone;
  machine.capacity_type = draft.capacity;
  machine.price_per_hour = *model::MoneyFromDollars(draft.dollars);
  machine.resources = {{"cpu", draft.cpu_milli}, {"memory", int64_t{8} << 30}};
  machine.labels = {{std::string("rack"), draft.zone + "-1"}};
  return machine;
}
// One that serves the cluster from the beginning, with no need that it was bound for.
inline model::Machine Bound(const MachineDraft& draft, const std::string& cluster) {
  model::Machine machine = Speculative(draft);
  machine.state = model::MachineState::kConfigured;
  machine.host = {.provider = "loop", .ref = "first-" + draft.id};
  machine.cluster = cluster;
  return machine;
}

inline std::vector<model::Machine> Many(int count, const MachineDraft& draft) {
  std::vector<model::Machine> machines;
  for (int i = 0; i < count; ++i) {
    MachineDraft one = draft;
    one.id = fmt::format("{}-{}", draft.id, i);
    machines.push_back(Speculative(one));
  }
  return machines;
}

inline contract::ApplySpec Set(const std::string& name, int32_t replicas, int64_t cpu_milli, int32_t priority = 0) {
  contract::ApplySpec apply;
  apply.spec.kind = model::WorkloadKind::kSet;
  apply.spec.name = name;
  apply.spec.replicas = replicas;
  apply.spec.spec.type = model::WorkloadType::kProcess;
  apply.spec.spec.command = {"serve"};
  apply.spec.spec.resources = {{"cpu", cpu_milli}};
  apply.spec.spec.priority = priority;
  apply.spec.spec.grace = 5s;
  return apply;
}

inline model::Need NeedOf(int64_t cpu_milli, int64_t unit_milli, int32_t priority) {
  model::Need need;
  need.profile = model::Profile(model::ProfileParts{.priority = priority});
  need.aggregate = {{"cpu", cpu_milli}};
  need.min_unit = {{"cpu", unit_milli}};
  return need;
}

inline std::unique_ptr<Loop> MakeLoop(const LoopStart& start) {
  auto loop = Loop::Make(start);
  if (!loop) ADD_FAILURE() << loop.error().ToString();
  return loop ? *std::move(loop) : nullptr;
}

inline void Apply(Loop& loop, const std::string& cluster, const contract::ClusterRequest& request) {
  const auto reply = loop.Ask(cluster, request);
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
}

inline size_t Running(const LoopView& view, const std::string& cluster) {
  size_t count = 0;
  for (const contract::WorkloadView& workload : view.clusters.at(cluster).workloads) {
    if (workload.phase == model::WorkloadPhase::kRunning) ++count;
  }
  return count;
}

// Everything a stranger wants to see when a test fails.
inline std::string Story(const LoopView& view) {
  std::string text;
  for (const LoopAction& action : view.actions) {
    text += fmt::format("{:>7.1f}s {} {} {} [{}] {} {}\n", std::chrono::duration<double>(action.at).count(),
                        action.action.kind, action.action.machine_id, action.action.cluster_id,
                        model::ReasonName(action.action.reason), action.action.outcome, action.action.error);
  }
  for (const LoopDecision& decision : view.decisions) {
    text += fmt::format("{:>7.1f}s {} {} {} {}: {}\n", std::chrono::duration<double>(decision.at).count(),
                        decision.cluster, contract::DecisionKindName(decision.decision.kind),
                        decision.decision.workload, decision.decision.node, decision.decision.message);
  }
  for (const auto& [id, cluster] : view.clusters) {
    for (const contract::WorkloadView& workload : cluster.workloads) {
      text += fmt::format("{}/{} {} on {} {}\n", id, workload.workload, model::WorkloadPhaseName(workload.phase),
                          workload.node, workload.message);
    }
  }
  for (const contract::MachineView& machine : view.machines) {
    text += fmt::format("{} {} {} {}\n", machine.machine->id, model::StateName(machine.machine->state),
                        machine.machine->cluster, machine.machine->last_error);
  }
  return text;
}

// The state that the view shows, as a start of another world.
inline LoopStart StartAgain(const LoopView& view, LoopSettings settings) {
  LoopStart start{.settings = std::move(settings)};
  for (const contract::MachineView& machine : view.machines) start.machines.push_back(*machine.machine);
  for (const auto& [id, cluster] : view.clusters) {
    start.clusters.push_back({.id = id, .nodes = cluster.nodes, .workloads = cluster.workloads, .sets = cluster.sets});
  }
  return start;
}

}  // namespace muster::sim
