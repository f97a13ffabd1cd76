#include "cli/live_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "cli/cluster_diff.h"
#include "cli/cluster_files.h"
#include "cli/cluster_names.h"
#include "core/operators/demand.h"
#include "kube/plan_request.h"
#include "model/names.h"
#include "model/reason.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

using model::MachineState;

MachineClass ClassOf(const model::Machine& machine) {
  return {.type = machine.instance_type, .capacity = machine.capacity_type, .zone = machine.zone};
}

bool HasHardware(const model::Machine& machine) {
  return machine.state != MachineState::kSpeculative && machine.state != MachineState::kCreating;
}

bool IsIn(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsLost(const Event& event, const model::Machine& machine) {
  return IsIn(event.lose_zones, machine.zone) || IsIn(event.drop_types, machine.instance_type);
}

// What of `part` thousandths; what does not fit stays at the largest amount.
int64_t Scaled(int64_t amount, int64_t thousandths) {
  __extension__ typedef __int128 Wide;
  const Wide scaled = Wide{amount} * thousandths / 1000;
  return scaled > INT64_MAX ? INT64_MAX : static_cast<int64_t>(scaled);
}

// So many members, rounded up: one and a half members are two.
int32_t ScaledCount(int32_t count, int64_t thousandths) {
  const int64_t scaled = (int64_t{count} * thousandths + 999) / 1000;
  return static_cast<int32_t>(std::min<int64_t>(scaled, INT32_MAX));
}

model::Need ScaledNeed(model::Need need, int64_t thousandths) {
  for (const auto& [name, amount] : std::vector(need.aggregate.entries())) {
    need.aggregate.Set(name, Scaled(amount, thousandths));
  }
  return need;
}

template <class Reply, class Request>
Result<Reply> AskLoop(sim::Loop& loop, const std::string& cluster, Request request) {
  MUSTER_ASSIGN_OR_RETURN(contract::ClusterReply reply, loop.Ask(cluster, std::move(request)));
  return std::get<Reply>(std::move(reply));
}

Status Multiply(sim::Loop& loop, const LiveWorld& world, const Event& event) {
  const sim::LoopView view = loop.View();
  const sim::LoopClusterView& cluster = view.clusters.at(world.cluster);
  const auto chosen = [&](const std::map<std::string, std::string>& labels) {
    return event.demand_of.empty() || Selects(event.demand_of, labels);
  };
  for (const contract::SetView& set : cluster.sets) {
    if (set.deleting || !chosen(set.spec.labels)) continue;
    const auto scaled = AskLoop<contract::Done>(
        loop, world.cluster,
        contract::ScaleSet{.set = set.spec.name, .replicas = ScaledCount(set.spec.replicas, event.demand)});
    if (!scaled) return About(scaled.error(), ObjectName(set.spec));
  }
  for (const contract::WorkloadView& workload : cluster.workloads) {
    const bool alone = workload.set.empty() && workload.desired == model::DesiredState::kRunning;
    if (!alone || !chosen(workload.labels)) continue;
    const int32_t copies = ScaledCount(1, event.demand);
    for (int32_t i = 1; i < copies; ++i) {
      model::WorkloadSpec spec = SpecOf(workload);
      spec.name = fmt::format("{}-what-if-{}", workload.workload, i);
      const auto applied = AskLoop<contract::Applied>(loop, world.cluster, contract::ApplySpec{.spec = spec});
      if (!applied) return About(applied.error(), ObjectName(spec));
    }
  }
  // Of other clusters only the sums are known, which no label tells apart.
  if (!event.demand_of.empty()) return {};
  for (const sim::LoopDemand& other : world.start.others) {
    std::vector<model::Need> needs;
    for (const model::Need& need : other.needs) needs.push_back(ScaledNeed(need, event.demand));
    loop.SetDemand(other.cluster, std::move(needs));
  }
  return {};
}

std::set<std::string> NamesOf(const std::vector<contract::WorkloadView>& workloads) {
  std::set<std::string> names;
  for (const contract::WorkloadView& workload : workloads) names.insert(workload.workload);
  return names;
}

// What needs lack and why, need by need. How long they have waited is no part of it.
std::vector<std::string> LacksOf(const std::vector<contract::NeedView>& needs) {
  std::vector<std::string> lacks;
  for (const contract::NeedView& view : needs) {
    lacks.push_back(fmt::format("{} {} {} {} {}", view.need.cluster, view.need.profile.fingerprint(), view.need.group,
                                view.residual.ToString(), model::ReasonName(view.reason)));
  }
  std::ranges::sort(lacks);
  return lacks;
}

}  // namespace

bool LiveOutcome::changes_anything() const {
  const bool same =
      std::ranges::all_of(machines, [](const auto& row) { return row.second.before == row.second.after; });
  return !same || !moves.empty() || cost_before != cost_after || waits_differ;
}

Result<std::unique_ptr<sim::Loop>> MakeLoop(const LiveWorld& world) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<sim::Loop> loop, sim::Loop::Make(world.start));
  loop->SetStock([held = world.out_of_stock](const model::Machine& machine) { return !held.contains(machine.id); });
  return loop;
}

std::string NodeOf(const contract::WorkloadView& workload) {
  return workload.reason == "failover.no_node" ? "" : workload.node;
}

LiveOutcome CompareViews(const sim::LoopView& before, sim::LoopView after, const std::string& cluster) {
  LiveOutcome outcome;
  outcome.cost_before = before.price_per_hour;
  outcome.cost_after = after.price_per_hour;
  for (const contract::MachineView& view : before.machines) {
    if (!HasHardware(*view.machine)) continue;
    MachineCount& count = outcome.machines[ClassOf(*view.machine)];
    ++count.before;
    count.price = view.machine->price_per_hour;
  }
  for (const contract::MachineView& view : after.machines) {
    if (!HasHardware(*view.machine)) continue;
    MachineCount& count = outcome.machines[ClassOf(*view.machine)];
    ++count.after;
    count.price = view.machine->price_per_hour;
  }
  std::map<std::string, std::string> was;
  std::set<std::string> had_node;
  std::set<std::string> waited;
  if (const auto at = before.clusters.find(cluster); at != before.clusters.end()) {
    waited = NamesOf(at->second.Pending());
    for (const contract::WorkloadView& view : at->second.workloads) was[view.workload] = NodeOf(view);
    for (const contract::NodeView& node : at->second.nodes) had_node.insert(node.node);
  }
  if (const auto at = after.clusters.find(cluster); at != after.clusters.end()) {
    for (const contract::WorkloadView& view : at->second.workloads) {
      const auto known = was.find(view.workload);
      const bool was_known = known != was.end();
      const std::string from = was_known ? known->second : "";
      if (was_known) was.erase(known);
      const bool runs = operators::CountsAsDemand(view);
      const std::string to = NodeOf(view);
      if (from == to && (was_known || to.empty())) continue;
      outcome.moves.push_back({.workload = view.workload, .before = from, .after = to, .gone = !runs});
    }
    outcome.pending = at->second.Pending();
    for (const contract::NodeView& node : at->second.nodes) {
      if (had_node.contains(node.node)) continue;
      const auto machine = std::ranges::find(after.machines, node.node,
                                             [](const contract::MachineView& view) { return view.machine->id; });
      if (machine == after.machines.end()) continue;
      outcome.node_names[node.node] =
          fmt::format("{} ({}) in {}", machine->machine->instance_type,
                      model::CapacityTypeName(machine->machine->capacity_type), machine->machine->zone);
    }
  }
  for (const auto& [workload, node] : was) {
    outcome.moves.push_back({.workload = workload, .before = node, .after = "", .gone = true});
  }
  std::ranges::sort(outcome.moves, {}, &Move::workload);
  outcome.shortfalls = after.Shortfalls();
  outcome.waits_differ = NamesOf(outcome.pending) != waited;
  outcome.after = std::move(after);
  return outcome;
}

Result<LiveOutcome> RunApply(const LiveWorld& world, const model::WorkloadFile& file, const Alive& alive) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<sim::Loop> loop, MakeLoop(world));
  const sim::LoopView before = loop->View();
  // How long workloads have waited is not shown. Those that wait here have waited long enough to evict others.
  if (const auto at = before.clusters.find(world.cluster);
      at != before.clusters.end() && !at->second.Pending().empty()) {
    loop->Run(world.start.settings.scheduler.preempt_after + 1s);
  }
  for (const model::Quota& quota : file.quotas) {
    const auto applied = AskLoop<contract::Applied>(*loop, world.cluster, contract::ApplyQuota{.quota = quota});
    if (!applied) return std::unexpected(About(applied.error(), "quota/" + quota.tenant));
  }
  for (const model::WorkloadSpec& spec : file.workloads) {
    const auto applied = AskLoop<contract::Applied>(*loop, world.cluster, contract::ApplySpec{.spec = spec});
    if (!applied) return std::unexpected(About(applied.error(), ObjectName(spec)));
  }
  const sim::Settled settled = loop->RunUntilSettled({.second_passed = alive});
  LiveOutcome outcome = CompareViews(before, loop->View(), world.cluster);
  outcome.settled = settled;
  return outcome;
}

Status CheckEvent(const Event& event, const std::vector<model::Machine>& machines) {
  std::set<std::string> types;
  std::set<std::string> zones;
  for (const model::Machine& machine : machines) {
    types.insert(machine.instance_type);
    zones.insert(machine.zone);
  }
  const auto check = [](const std::string& name, const std::set<std::string>& known, std::string_view what) -> Status {
    if (known.contains(name)) return {};
    const std::vector<std::string> names(known.begin(), known.end());
    const std::string nearest = model::NearestName(name, names);
    return {Code::kInvalidArgument, fmt::format("no machine is {} {}; {}", what, model::Quoted(name),
                                                nearest.empty() ? fmt::format("there are: {}", fmt::join(names, ", "))
                                                                : fmt::format("did you mean {}?", nearest))};
  };
  for (const std::string& zone : event.lose_zones) MUSTER_RETURN_IF_ERROR(check(zone, zones, "in zone"));
  for (const std::string& type : event.drop_types) MUSTER_RETURN_IF_ERROR(check(type, types, "of type"));
  for (const std::string& type : event.stock_outs) MUSTER_RETURN_IF_ERROR(check(type, types, "of type"));
  for (const auto& [type, factor] : event.prices) MUSTER_RETURN_IF_ERROR(check(type, types, "of type"));
  return {};
}

Status Happen(sim::Loop& loop, const LiveWorld& world, const Event& event) {
  loop.SetStock([event, held = world.out_of_stock](const model::Machine& machine) {
    return !held.contains(machine.id) && !IsLost(event, machine) && !IsIn(event.stock_outs, machine.instance_type);
  });
  std::set<MachineClass> moved;
  for (const contract::MachineView& view : loop.View().machines) {
    const model::Machine& machine = *view.machine;
    for (const auto& [type, factor] : event.prices) {
      if (machine.instance_type != type || !moved.insert(ClassOf(machine)).second) continue;
      loop.Observe(contract::MarketMoved{.instance_type = type,
                                         .zone = machine.zone,
                                         .capacity_type = machine.capacity_type,
                                         .price_per_hour = {.micros = Scaled(machine.price_per_hour.micros, factor)},
                                         .interruption_probability = machine.interruption_probability});
    }
    if (IsLost(event, machine) && !machine.host.empty()) {
      loop.Observe(contract::MachineLost{
          .machine_id = machine.id, .host_ref = machine.host.ref, .reason = "what if its zone or type were gone"});
    }
  }
  return event.demand == 1000 ? Status() : Multiply(loop, world, event);
}

Result<LiveOutcome> RunEvent(const LiveWorld& world, const Event& event, const Alive& alive) {
  if (Status known = CheckEvent(event, world.start.machines); !known.ok()) return std::unexpected(std::move(known));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<sim::Loop> loop, MakeLoop(world));
  const sim::Settled first = loop->RunUntilSettled({.second_passed = alive});
  const sim::LoopView before = loop->View();
  if (Status happened = Happen(*loop, world, event); !happened.ok()) return std::unexpected(std::move(happened));
  const sim::Settled then = loop->RunUntilSettled({.second_passed = alive});
  LiveOutcome outcome = CompareViews(before, loop->View(), world.cluster);
  // An apply is compared with a shard that has not decided yet; here it has, and what was short is known.
  outcome.waits_differ |= LacksOf(outcome.shortfalls) != LacksOf(before.Shortfalls());
  outcome.settled = {.settled = first.settled && then.settled, .took = then.took, .in_flight = {}};
  for (const std::string& what : first.in_flight) outcome.settled.in_flight.push_back("before the event, " + what);
  std::ranges::copy(then.in_flight, std::back_inserter(outcome.settled.in_flight));
  return outcome;
}

// --- the planner beside it

namespace {

// The types of the fleet's machines, with every zone and terms they are there in. Labels that not all machines of a
// type have in common are left out.
planner::Catalogue CatalogueOf(const std::vector<const model::Machine*>& machines) {
  std::map<std::string, planner::MachineType> types;
  for (const model::Machine* const one : machines) {
    const model::Machine& machine = *one;
    const auto [at, fresh] = types.try_emplace(machine.instance_type);
    planner::MachineType& type = at->second;
    if (fresh) {
      type.name = machine.instance_type;
      type.capacity = machine.EffectiveAllocatable();
      type.labels = machine.labels;
    } else {
      model::TextMap::Map common = type.labels;
      std::erase_if(common, [&](const auto& label) { return machine.Attribute(label.first) != label.second; });
      type.labels = common;
    }
    const planner::Offer offer{.zone = machine.zone,
                               .capacity = machine.capacity_type,
                               .price = machine.price_per_hour,
                               .interruption = machine.interruption_probability};
    const auto same = std::ranges::find_if(type.offers, [&](const planner::Offer& known) {
      return known.zone == offer.zone && known.capacity == offer.capacity;
    });
    if (same == type.offers.end()) {
      type.offers.push_back(offer);
    } else {
      same->price = std::min(same->price, offer.price);
    }
  }
  planner::Catalogue catalogue{.source = "the running fleet", .types = {}};
  for (auto& [name, type] : types) catalogue.types.push_back(std::move(type));
  return catalogue;
}

// What the cluster has or could get: machines that serve others, that failed or that cannot be had are left out.
std::vector<const model::Machine*> MachinesFor(const LiveWorld& world, const sim::LoopView& view) {
  std::vector<const model::Machine*> machines;
  for (const contract::MachineView& one : view.machines) {
    const model::Machine& machine = *one.machine;
    const bool others = !machine.cluster.empty() && machine.cluster != world.cluster;
    const bool to_be_had = HasHardware(machine) || !world.out_of_stock.contains(machine.id);
    if (!others && to_be_had && machine.state != MachineState::kFailed) machines.push_back(&machine);
  }
  return machines;
}

MachineClass ClassOf(const planner::Candidate& candidate) {
  return {.type = candidate.type, .capacity = candidate.capacity, .zone = candidate.zone};
}

void Add(CheapestFleet& fleet, const MachineClass& key, model::Money price) {
  MachineCount& count = fleet.machines[key];
  ++count.after;
  count.price = price;
  fleet.cost.micros += price.micros;
}

// The planner buys without limit. Of what it would buy more of than there is, all are taken, as nodes that are there,
// and the rest is planned again without them: a fleet that can be had, and not always the cheapest of those.
class StockedPlan {
 public:
  StockedPlan(planner::Request request, const std::vector<const model::Machine*>& machines)
      : request_(std::move(request)) {
    for (const model::Machine* const machine : machines) ++stock_[ClassOf(*machine)];
  }

  Result<CheapestFleet> Make() {
    MUSTER_ASSIGN_OR_RETURN(planner::Plan plan, planner::MakePlan(request_));
    while (TakeScarce(plan)) {
      MUSTER_ASSIGN_OR_RETURN(plan, planner::MakePlan(request_));
    }
    CheapestFleet fleet;
    fleet.unplaced = static_cast<int64_t>(plan.unplaced.size());
    for (const planner::PlannedMachine& machine : plan.machines) {
      const planner::Candidate& candidate = request_.candidates[machine.candidate];
      Add(fleet, ClassOf(candidate), candidate.price);
    }
    std::set<std::string> used;
    for (const planner::Assignment& assignment : plan.assignments) used.insert(assignment.node);
    for (const auto& [id, facts] : request_.nodes) {
      if (!used.contains(id)) continue;
      Add(fleet, {.type = facts.type, .capacity = facts.capacity, .zone = facts.zone}, *facts.price);
    }
    return fleet;
  }

 private:
  // False: the plan is within what there is.
  bool TakeScarce(const planner::Plan& plan) {
    std::map<MachineClass, int64_t> wanted;
    for (const planner::PlannedMachine& machine : plan.machines) {
      ++wanted[ClassOf(request_.candidates[machine.candidate])];
    }
    std::erase_if(wanted, [this](const auto& row) { return row.second <= stock_[row.first]; });
    std::vector<planner::Candidate> plenty;
    for (const planner::Candidate& candidate : request_.candidates) {
      if (wanted.contains(ClassOf(candidate))) {
        TakeAll(candidate);
      } else {
        plenty.push_back(candidate);
      }
    }
    request_.candidates = std::move(plenty);
    return !wanted.empty();
  }

  void TakeAll(const planner::Candidate& candidate) {
    request_.keep = planner::Keep::kNodes;
    for (int64_t i = 0; i < stock_[ClassOf(candidate)]; ++i) {
      placement::Node node{.id = fmt::format("taken-{:04}", request_.world.nodes.size()),
                           .taints = candidate.taints,
                           .total = candidate.allocatable,
                           .devices = candidate.devices};
      model::TextMap::Map labels = candidate.labels;
      labels["kubernetes.io/hostname"] = node.id;
      node.labels = std::move(labels);
      request_.nodes[node.id] = {.price = candidate.price,
                                 .type = candidate.type,
                                 .zone = candidate.zone,
                                 .pool = candidate.pool,
                                 .capacity = candidate.capacity,
                                 .stays_because = {}};
      request_.world.nodes.push_back(std::move(node));
    }
  }

  planner::Request request_;
  std::map<MachineClass, int64_t> stock_;
};

// The machines of the view that carry something of the cluster, which wants so many units.
CheapestFleet FleetOf(const sim::LoopView& view, const std::string& cluster, int64_t wanted) {
  std::map<std::string, int64_t> carried;  // by node
  for (const contract::WorkloadView& workload : view.clusters.at(cluster).workloads) {
    if (operators::CountsAsDemand(workload)) ++carried[NodeOf(workload)];
  }
  CheapestFleet fleet{.unplaced = wanted};
  for (const contract::MachineView& one : view.machines) {
    const model::Machine& machine = *one.machine;
    const auto there = carried.find(machine.id);
    if (machine.cluster != cluster || there == carried.end()) continue;
    fleet.unplaced = std::max<int64_t>(0, fleet.unplaced - there->second);  // a set may have more members for a while
    Add(fleet, ClassOf(machine), machine.price_per_hour);
  }
  return fleet;
}

}  // namespace

Result<CheapestFleet> FindCheapestFleet(const LiveWorld& world, const sim::LoopView& view, const Alive& alive) {
  model::WorkloadFile wanted;
  const sim::LoopClusterView& own = view.clusters.at(world.cluster);
  for (const contract::SetView& set : own.sets) {
    if (set.deleting) continue;
    model::WorkloadSpec spec = set.spec;
    spec.replicas -= set.completed;  // what has completed of a job runs no more
    if (spec.replicas > 0) wanted.workloads.push_back(std::move(spec));
  }
  for (const contract::WorkloadView& workload : own.workloads) {
    if (workload.set.empty() && operators::CountsAsDemand(workload)) wanted.workloads.push_back(SpecOf(workload));
  }
  if (wanted.workloads.empty()) return CheapestFleet();
  int64_t units = 0;
  for (const model::WorkloadSpec& spec : wanted.workloads) {
    units += spec.kind == model::WorkloadKind::kWorkload ? 1 : spec.replicas;
  }
  const std::vector<const model::Machine*> machines = MachinesFor(world, view);
  MUSTER_ASSIGN_OR_RETURN(
      kube::PlanInput input,
      kube::MakePlanInput({}, {wanted}, CatalogueOf(machines), {.keep = planner::Keep::kNone, .allow = {"spot"}}));
  input.request.exact = true;
  input.request.go_on = [&alive](uint64_t, uint64_t) {
    if (alive) alive();
    return true;
  };
  MUSTER_ASSIGN_OR_RETURN(CheapestFleet found, StockedPlan(std::move(input.request), machines).Make());
  // Where machines are scarce the planner may leave out what the fleet carries.
  CheapestFleet there = FleetOf(view, world.cluster, units);
  const bool better = std::tie(there.unplaced, there.cost) < std::tie(found.unplaced, found.cost);
  return better ? std::move(there) : std::move(found);
}

}  // namespace muster::cli
