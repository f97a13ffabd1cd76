#include "cli/live_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/codec.h"
#include "base/hash.h"
#include "core/operators/demand.h"
#include "engine/bind_stamp.h"
#include "model/names.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

constexpr std::string_view kForm = "p1";

// Adds values to a digest, one after the other.
class Digest {
 public:
  template <class T>
  void Add(const T& value) {
    const std::string bytes = codec::ToBytes(value);
    state_ = Hash(fmt::format("{:016x}{}", state_, bytes));
  }
  uint32_t value() const { return static_cast<uint32_t>(state_ ^ (state_ >> 32)); }

 private:
  uint64_t state_ = 0;
};

Result<std::string> NameOfCluster(const std::string& given, const std::vector<contract::NodeView>& nodes,
                                  const std::vector<contract::MachineView>& machines,
                                  const contract::ClustersListed& clusters) {
  if (!given.empty()) return given;
  std::map<std::string_view, const model::Machine*> by_id;
  for (const contract::MachineView& view : machines) by_id.emplace(view.machine->id, &*view.machine);
  for (const contract::NodeView& node : nodes) {
    const auto machine = by_id.find(node.node);
    if (machine != by_id.end() && !machine->second->cluster.empty()) return machine->second->cluster;
  }
  if (clusters.clusters.size() == 1) return clusters.clusters.front().cluster_id;
  if (clusters.clusters.empty()) {
    return Error(Code::kFailedPrecondition,
                 "the shard knows no cluster: the cluster's operator has not said what it wants yet");
  }
  return InvalidArgument(
      fmt::format("--cluster is missing: the shard has {} clusters and none of their machines is a node here",
                  clusters.clusters.size()));
}

// Machines say whom they were bound for; a shard that takes them up is to know whom they serve since.
void StampServed(std::vector<model::Machine>& machines, const std::vector<contract::MachineView>& views,
                 const std::vector<contract::NeedView>& needs) {
  std::map<engine::NeedKey, const model::Profile*> served;
  for (const contract::NeedView& view : needs) served.emplace(engine::KeyOf(view.need), &view.need.profile);
  for (size_t i = 0; i < machines.size(); ++i) {
    const auto need = served.find({machines[i].cluster, views[i].need_fingerprint, views[i].need_group});
    if (need == served.end()) continue;
    for (const auto& [key, value] : engine::BindStampOf(need->first, *need->second)) {
      machines[i].shard_metadata[key] = value;
    }
  }
}

// A machine that was given back or taken by another cluster may still have its node here, until the operator has
// deleted it. What runs there ends with the machine: the copy begins without it.
void DropLeavingNodes(const std::vector<model::Machine>& machines, sim::LoopClusterStart& own,
                      std::vector<std::string>& notes) {
  std::map<std::string_view, const model::Machine*> by_id;
  for (const model::Machine& machine : machines) by_id.emplace(machine.id, &machine);
  std::set<std::string> gone;
  for (const contract::NodeView& node : own.nodes) {
    const auto machine = by_id.find(node.node);
    if (machine == by_id.end() || machine->second->cluster == own.id) continue;
    const std::string& serves = machine->second->cluster;
    notes.push_back(
        fmt::format("node {} leaves: its machine serves {}; here it is gone, and its workloads are placed "
                    "again",
                    node.node, serves.empty() ? "no cluster" : "cluster " + serves));
    gone.insert(node.node);
  }
  std::erase_if(own.nodes, [&](const contract::NodeView& node) { return gone.contains(node.node); });
  for (contract::WorkloadView& workload : own.workloads) {
    if (!gone.contains(workload.node)) continue;
    workload.node.clear();
    if (operators::CountsAsDemand(workload)) workload.phase = model::WorkloadPhase::kPending;
  }
}

// What keeps the fleet from serving a cluster, and does not in the copy.
void AddNotes(const contract::ClusterView& view, std::vector<std::string>& notes) {
  if (view.mode != contract::ActuationMode::kActive) {
    notes.push_back(fmt::format("cluster {} is paused or in dry run; here it is not", view.cluster_id));
  }
  if (view.hold_until) {
    notes.push_back(fmt::format("cluster {} acquires nothing before {}, because its Configures failed; here it does",
                                view.cluster_id, model::FormatWallTime(*view.hold_until)));
  }
  if (view.decommissioned) {
    notes.push_back(fmt::format("cluster {} is decommissioned, and its machines are reclaimed; here they are not",
                                view.cluster_id));
  }
}

}  // namespace

Result<LiveWorld> ReadLiveWorld(Halves& halves, const std::string& cluster) {
  LiveWorld world;
  world.start.settings = sim::LivelySettings();
  sim::LoopClusterStart own;
  MUSTER_ASSIGN_OR_RETURN(own.nodes, halves.AllNodes());
  MUSTER_ASSIGN_OR_RETURN(own.workloads, halves.AllWorkloads());
  MUSTER_ASSIGN_OR_RETURN(own.sets, halves.AllSets());
  MUSTER_ASSIGN_OR_RETURN(const contract::QuotasListed quotas,
                          halves.OfCluster<contract::QuotasListed>(contract::ListQuotas{}));
  for (const contract::QuotaView& view : quotas.quotas) own.quotas.push_back(view.quota);
  MUSTER_ASSIGN_OR_RETURN(const contract::MachinesListed machines,
                          halves.OfShard<contract::MachinesListed>(contract::ListMachines{}));
  MUSTER_ASSIGN_OR_RETURN(const contract::ClustersListed clusters,
                          halves.OfShard<contract::ClustersListed>(contract::ListClusters{}));
  MUSTER_ASSIGN_OR_RETURN(const contract::NeedsInspected needs,
                          halves.OfShard<contract::NeedsInspected>(contract::InspectNeeds{}));
  MUSTER_ASSIGN_OR_RETURN(world.cluster, NameOfCluster(cluster, own.nodes, machines.machines, clusters));
  own.id = world.cluster;
  for (const contract::MachineView& view : machines.machines) {
    world.start.machines.push_back(*view.machine);
    if (!view.hold.empty()) world.out_of_stock.insert(view.machine->id);
  }
  StampServed(world.start.machines, machines.machines, needs.needs);
  std::map<std::string, std::vector<model::Need>> others;
  for (const contract::ClusterView& view : clusters.clusters) {
    if (view.ceiling) {
      world.start.ceilings[view.cluster_id] = {.highest_priority = view.ceiling->highest_priority,
                                               .most_machines = view.ceiling->most_machines,
                                               .most_per_hour = view.ceiling->most_per_hour};
    }
    if (view.cluster_id == world.cluster) {
      if (!view.session) {
        world.notes.push_back(
            fmt::format("cluster {} has no session, so that the fleet does nothing for it; here its operator is there",
                        view.cluster_id));
      }
    } else if (view.session) {
      others.try_emplace(view.cluster_id);
    } else {
      world.notes.push_back(
          fmt::format("cluster {} has no session: it keeps its {} machines", view.cluster_id, view.configured));
    }
    AddNotes(view, world.notes);
  }
  DropLeavingNodes(world.start.machines, own, world.notes);
  for (const contract::NeedView& view : needs.needs) {
    if (view.need.cluster == world.cluster) own.asked.push_back(view.need);
    if (const auto other = others.find(view.need.cluster); other != others.end()) other->second.push_back(view.need);
  }
  for (auto& [id, wants] : others) world.start.others.push_back({.cluster = id, .needs = std::move(wants)});
  world.start.clusters.push_back(std::move(own));
  return world;
}

PlanId PlanIdOf(const LiveWorld& world, const model::WorkloadFile& file) {
  Digest files;
  for (const model::WorkloadSpec& spec : file.workloads) files.Add(spec);
  for (const model::Quota& quota : file.quotas) files.Add(quota);
  Digest workloads;
  Digest nodes;
  for (const sim::LoopClusterStart& cluster : world.start.clusters) {
    for (const contract::WorkloadView& view : cluster.workloads) {
      workloads.Add(view.workload);
      workloads.Add(view.revision);
      workloads.Add(view.desired);
      workloads.Add(operators::CountsAsDemand(view));  // not what has completed or finally failed
      workloads.Add(view.node);
    }
    for (const contract::SetView& view : cluster.sets) {
      workloads.Add(view.spec);
      workloads.Add(view.deleting);
    }
    for (const model::Quota& quota : cluster.quotas) workloads.Add(quota);
    for (const contract::NodeView& view : cluster.nodes) {
      nodes.Add(view.node);
      nodes.Add(view.status);
      nodes.Add(view.total);
      nodes.Add(view.labels);
      nodes.Add(view.taints);
      nodes.Add(view.cordoned);
    }
  }
  Digest fleet;
  for (const model::Machine& machine : world.start.machines) {
    fleet.Add(machine.id);
    fleet.Add(machine.state);
    fleet.Add(machine.cluster);
    fleet.Add(machine.instance_type);
    fleet.Add(machine.price_per_hour);
  }
  for (const std::string& id : world.out_of_stock) fleet.Add(id);
  for (const sim::LoopDemand& demand : world.start.others) {
    for (const model::Need& need : demand.needs) fleet.Add(model::RowDigest(need));
  }
  for (const auto& [cluster, ceiling] : world.start.ceilings) {
    fleet.Add(cluster);
    fleet.Add(ceiling);
  }
  for (const std::string& note : world.notes) fleet.Add(note);
  return {.files = files.value(), .workloads = workloads.value(), .nodes = nodes.value(), .fleet = fleet.value()};
}

std::string FormatPlanId(const PlanId& id) {
  return fmt::format("{}.{:08x}.{:08x}.{:08x}.{:08x}", kForm, id.files, id.workloads, id.nodes, id.fleet);
}

Result<PlanId> ParsePlanId(std::string_view text) {
  const auto bad = [&] {
    return InvalidArgument(fmt::format("{} is no plan id; muster plan -f FILE prints one, such as {}",
                                       model::Quoted(text), FormatPlanId({})));
  };
  PlanId id;
  if (text.size() != FormatPlanId(id).size() || !text.starts_with(kForm)) return bad();
  size_t at = kForm.size();
  for (uint32_t* part : {&id.files, &id.workloads, &id.nodes, &id.fleet}) {
    if (text[at] != '.') return bad();
    const char* const begin = text.data() + at + 1;
    const auto [end, error] = std::from_chars(begin, begin + 8, *part, 16);
    if (error != std::errc() || end != begin + 8) return bad();
    at += 9;
  }
  return id;
}

Status CheckPlanId(const PlanId& planned, const PlanId& now) {
  std::vector<std::string_view> moved;
  if (planned.files != now.files) moved.emplace_back("the files");
  if (planned.workloads != now.workloads) moved.emplace_back("the cluster's workloads");
  if (planned.nodes != now.nodes) moved.emplace_back("its nodes");
  if (planned.fleet != now.fleet) moved.emplace_back("the fleet");
  if (moved.empty()) return {};
  return {Code::kFailedPrecondition,
          fmt::format("nothing was applied: {} changed since the plan; plan again with muster plan -f FILE",
                      fmt::join(moved, " and "))};
}

}  // namespace muster::cli
