#include "cli/explain_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "cli/cluster_refusals.h"
#include "cli/cluster_tables.h"
#include "cli/explain_offers.h"
#include "cli/table.h"
#include "core/operators/demand.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/reason.h"
#include "model/requirement.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

using model::MachineState;

constexpr size_t kNamed = 6;

std::string Plural(int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamed) text += fmt::format(" and {} more", names.size() - kNamed);
  return text;
}

// What the shard knows, asked once.
struct FleetFacts {
  contract::NeedsInspected needs;
  std::vector<contract::MachineView> machines;
  std::vector<contract::ActionView> actions;  // the latest first

  const contract::MachineView* Machine(const std::string& id) const {
    const auto at = std::ranges::find(machines, id, [](const contract::MachineView& view) { return view.machine->id; });
    return at == machines.end() ? nullptr : &*at;
  }
  const contract::NeedView* Need(const contract::NeedRef& ref) const {
    const auto at = std::ranges::find_if(needs.needs, [&](const contract::NeedView& view) {
      return view.need.cluster == ref.cluster_id && view.need.group == ref.group &&
             view.need.profile.fingerprint() == ref.fingerprint;
    });
    return at == needs.needs.end() ? nullptr : &*at;
  }
};

Result<FleetFacts> AskFleet(Halves& halves) {
  FleetFacts facts;
  MUSTER_ASSIGN_OR_RETURN(facts.needs, halves.OfShard<contract::NeedsInspected>(contract::InspectNeeds{}));
  MUSTER_ASSIGN_OR_RETURN(contract::MachinesListed machines,
                          halves.OfShard<contract::MachinesListed>(contract::ListMachines{}));
  facts.machines = std::move(machines.machines);
  MUSTER_ASSIGN_OR_RETURN(contract::ActionsListed actions,
                          halves.OfShard<contract::ActionsListed>(contract::ListActions{}));
  facts.actions = std::move(actions.actions);
  return facts;
}

// What the scheduler knows.
struct ClusterFacts {
  std::vector<contract::WorkloadView> workloads;
  std::vector<contract::NodeView> nodes;

  const contract::NodeView* Node(const std::string& id) const {
    const auto at = std::ranges::find(nodes, id, &contract::NodeView::node);
    return at == nodes.end() ? nullptr : &*at;
  }
};

Result<ClusterFacts> AskWholeCluster(Halves& halves) {
  ClusterFacts facts;
  MUSTER_ASSIGN_OR_RETURN(facts.workloads, halves.AllWorkloads());
  MUSTER_ASSIGN_OR_RETURN(facts.nodes, halves.AllNodes());
  return facts;
}

// A sum that is too large stays as it is.
void AddTo(model::Resources& sum, const model::Resources& more) {
  if (auto both = model::Add(sum, more)) sum = *std::move(both);
}

constexpr std::string_view kFold = "fold:";

// A gang that fits one machine is decided as a need of another name (N.folded-profile in docs/engine.md): the machine
// only has to have the keys that its members share.
std::string FoldedFingerprint(const model::Profile& profile) {
  model::ProfileParts parts = profile.parts();
  parts.spread.clear();
  for (model::Requirement& requirement : parts.requirements) {
    if (requirement.op != model::Operator::kSame) continue;
    requirement.op = requirement.values.empty() ? model::Operator::kExists : model::Operator::kIn;
  }
  return model::Profile(std::move(parts)).fingerprint();
}

// What all members of the unit's group ask for, as the name of a folded need has it.
std::string FoldGroupOf(const operators::DemandUnit& unit, const std::vector<contract::WorkloadView>& workloads) {
  model::Resources sum;
  for (const contract::WorkloadView& view : workloads) {
    if (!operators::CountsAsDemand(view)) continue;
    const operators::DemandUnit other = operators::UnitOf(view);
    if (other.group != unit.group || other.profile != unit.profile) continue;
    AddTo(sum, other.request);
  }
  std::vector<std::string> parts;
  for (const auto& [name, amount] : sum.entries()) {
    parts.push_back(fmt::format("{}={}", name, model::FormatQuantity(amount)));
  }
  return fmt::format("{}{}", kFold, fmt::join(parts, ","));
}

// The need of a workload of the cluster: one that the operator asks for apart, or that the shard has folded, if the
// shard has it; otherwise that of all others like it.
contract::NeedRef RefOf(const contract::WorkloadView& view, const std::string& cluster, const FleetFacts& fleet,
                        const std::vector<contract::WorkloadView>& workloads) {
  const operators::DemandUnit unit = operators::UnitOf(view);
  const std::string fingerprint = unit.profile.fingerprint();
  const contract::NeedRef apart{
      .cluster_id = cluster, .fingerprint = fingerprint, .group = operators::GroupOfSize(unit.request)};
  if (fleet.Need(apart) != nullptr) return apart;
  const contract::NeedRef plain{.cluster_id = cluster, .fingerprint = fingerprint, .group = unit.group};
  if (fleet.Need(plain) != nullptr) return plain;
  const std::string folded = FoldedFingerprint(unit.profile);
  if (folded == fingerprint) return plain;
  std::set<std::string> groups;
  for (const contract::NeedView& need : fleet.needs.needs) {
    const bool is_it =
        need.need.cluster == cluster && need.need.group.starts_with(kFold) && need.need.profile.fingerprint() == folded;
    if (is_it) groups.insert(need.need.group);
  }
  if (groups.empty()) return plain;
  // Gangs of several sizes are told apart by what they ask for.
  const std::string group = groups.size() == 1 ? *groups.begin() : FoldGroupOf(unit, workloads);
  return {.cluster_id = cluster, .fingerprint = folded, .group = group};
}

// How the shard names the scheduler's cluster: a node's id is its machine's, and the machine says whose it is. Without
// a common one: the only cluster that has the need, or the only cluster.
Result<std::string> ClusterNamed(const ChainOptions& options, const ClusterFacts& cluster, const FleetFacts& fleet,
                                 const std::function<contract::NeedRef(const std::string& of)>& need) {
  if (!options.cluster.empty()) return options.cluster;
  for (const contract::NodeView& node : cluster.nodes) {
    const contract::MachineView* machine = fleet.Machine(node.node);
    if (machine != nullptr && !machine->machine->cluster.empty()) return machine->machine->cluster;
  }
  std::set<std::string> all;
  for (const contract::NeedView& view : fleet.needs.needs) all.insert(view.need.cluster);
  std::vector<std::string> with_need;
  std::ranges::copy_if(all, std::back_inserter(with_need),
                       [&](const std::string& of) { return fleet.Need(need(of)) != nullptr; });
  if (with_need.size() == 1) return with_need.front();
  if (all.size() == 1) return *all.begin();
  if (all.empty()) return Error(Code::kNotFound, "the shard has no need of any cluster");
  return Error(Code::kFailedPrecondition,
               fmt::format("the shard serves {} and none of their machines is a node here: say which is this one with "
                           "--cluster",
                           Names({all.begin(), all.end()})));
}

// The cluster, if the need is its own: this scheduler's workloads say nothing of another cluster's need.
const ClusterFacts* OwnerOf(const contract::NeedRef& ref, const ClusterFacts* cluster, const FleetFacts& fleet) {
  if (cluster == nullptr) return nullptr;
  const auto need = [&](const std::string& of) {
    return contract::NeedRef{.cluster_id = of, .fingerprint = ref.fingerprint, .group = ref.group};
  };
  const auto own = ClusterNamed({}, *cluster, fleet, need);
  return own && *own == ref.cluster_id ? cluster : nullptr;
}

// "need" of a machine: the one it was last claimed for.
contract::NeedRef RefOf(const contract::MachineView& view, const std::string& cluster) {
  return {.cluster_id = view.machine->cluster.empty() ? cluster : view.machine->cluster,
          .fingerprint = view.need_fingerprint,
          .group = view.need_group};
}

ExplainedLink Silent(std::string_view who, const Status& why) {
  return {.kind = std::string(who),
          .name = "",
          .verdict = "unknown",
          .head = fmt::format("{}: no answer, so that the chain ends here: {}", who, why.message()),
          .lines = {}};
}

// --- workloads and nodes

ExplainedLink WorkloadLink(const contract::Explanation& explanation) {
  const contract::WorkloadView& view = explanation.workload;
  ExplainedLink link{.kind = "workload",
                     .name = view.workload,
                     .verdict = std::string(model::WorkloadPhaseName(view.phase)),
                     .head = "",
                     .lines = {}};
  const std::string_view phase = model::WorkloadPhaseName(view.phase);
  if (view.node.empty()) {
    const std::string why = view.message.empty() ? view.reason : view.message;
    link.head = fmt::format("workload {} is {} and has no node{}", view.workload, phase, why.empty() ? "" : ": " + why);
  } else {
    link.head = fmt::format("workload {} is {} on node {}", view.workload, phase, view.node);
  }
  link.lines.push_back(
      fmt::format("{}asks for {}, priority {}", view.set.empty() ? "" : fmt::format("a member of set {}, ", view.set),
                  view.spec.resources.empty() ? "nothing" : view.spec.resources.ToString(), view.spec.priority));
  for (const std::string& sentence : explanation.story) {
    if (sentence != view.message) link.lines.push_back(sentence);
  }
  if (!view.node.empty() && !view.message.empty()) link.lines.push_back(view.message);
  return link;
}

ExplainedLink PlacementLink(const contract::Explanation& explanation, bool every_node) {
  ExplainedLink link{.kind = "placement", .name = "", .verdict = "", .head = "", .lines = {}};
  const auto fits = std::ranges::count_if(explanation.nodes, [](const auto& node) { return node.reason.empty(); });
  if (explanation.nodes.empty()) {
    link.verdict = "no-nodes";
    link.head = "placement: no nodes have joined";
    return link;
  }
  link.verdict = fits > 0 ? "fits" : explanation.nodes.front().reason;
  // A workload that has a node takes room there already.
  link.head = fmt::format("placement: {} of {} would take {} now", fits,
                          Plural(static_cast<int64_t>(explanation.nodes.size()), "node"),
                          explanation.workload.node.empty() ? "it" : "another one like it");
  Rows rows;
  if (every_node) {
    rows.push_back({"NODE", "REASON", "DETAIL"});
    for (const contract::NodeRefusal& refusal : explanation.nodes) {
      rows.push_back({refusal.node, refusal.reason.empty() ? "fits" : refusal.reason, OrDash(refusal.detail)});
    }
  } else {
    rows = RefusalsByClass(explanation.nodes);
  }
  const std::string table = FormatTable(rows);
  for (size_t at = 0; at < table.size();) {
    const size_t end = table.find('\n', at);
    link.lines.push_back(table.substr(at, end - at));
    at = end + 1;
  }
  return link;
}

ExplainedLink NodeLink(const contract::NodeView& node, const std::vector<contract::WorkloadView>& workloads) {
  ExplainedLink link{.kind = "node",
                     .name = node.node,
                     .verdict = std::string(model::NodeStatusName(node.status)),
                     .head = fmt::format("node {} is {}", node.node, StatusOf(node)),
                     .lines = {}};
  if (!node.status_reason.empty()) link.lines.push_back(node.status_reason);
  link.lines.push_back(fmt::format("{} of {} reserved", node.reserved.empty() ? "nothing" : node.reserved.ToString(),
                                   node.total.ToString()));
  std::vector<std::string> names;
  for (const contract::WorkloadView& view : workloads) {
    if (view.node == node.node) {
      names.push_back(fmt::format("{} ({})", view.workload, model::WorkloadPhaseName(view.phase)));
    }
  }
  link.lines.push_back(
      names.empty() ? "no workload is there"
                    : fmt::format("{}: {}", Plural(static_cast<int64_t>(names.size()), "workload"), Names(names)));
  if (node.draining) link.lines.push_back(fmt::format("it is drained: {}", node.drain_reason));
  return link;
}

// --- needs and machines

struct NeedDemand {
  std::vector<std::string> workloads;
  std::vector<std::string> without_node;
  model::Resources sum;
  model::Resources whole;  // of members that exclude each other on a host: their nodes as a whole
};

NeedDemand DemandOf(const contract::NeedRef& ref, const FleetFacts& fleet, const ClusterFacts& cluster) {
  NeedDemand demand;
  std::set<std::string> whole_nodes;
  for (const contract::WorkloadView& view : cluster.workloads) {
    if (!operators::CountsAsDemand(view)) continue;
    const contract::NeedRef own = RefOf(view, ref.cluster_id, fleet, cluster.workloads);
    if (own.fingerprint != ref.fingerprint || own.group != ref.group) continue;
    demand.workloads.push_back(view.workload);
    if (view.node.empty()) demand.without_node.push_back(view.workload);
    AddTo(demand.sum, view.spec.resources);
    const operators::DemandUnit unit = operators::UnitOf(view);
    if (!unit.alone_on_host) continue;
    const contract::NodeView* node = cluster.Node(unit.node);
    if (node == nullptr) {
      AddTo(demand.whole, unit.request);
    } else if (whole_nodes.insert(unit.node).second) {
      AddTo(demand.whole, node->total);
    }
  }
  return demand;
}

// Why the need asks for more than its workloads (core/operators/demand.h); empty: it does not.
std::string MoreThanItsWorkloads(const model::Resources& asked, const NeedDemand& demand) {
  const model::Resources more = model::SubtractSaturating(asked, demand.sum);
  if (more.empty() || demand.workloads.empty()) return {};
  const model::Resources raised = model::SubtractSaturating(asked, model::Max(demand.sum, demand.whole));
  std::vector<std::string_view> why;
  if (raised != more) why.emplace_back("whole machines for members that exclude each other");
  if (!raised.empty()) why.emplace_back("room for workloads that no node takes although enough is bound");
  return fmt::format("it asks for {} more than that: {}", more.ToString(), fmt::join(why, ", and "));
}

std::string VerdictOf(const contract::NeedView& view) {
  if (view.satisfied) return "satisfied";
  return std::string(model::ReasonName(view.reason));
}

// What the cluster's operator adds up, if the cluster is given, and what the shard does about it.
Result<ExplainedLink> NeedLink(Halves& halves, const contract::NeedRef& ref, const FleetFacts& fleet,
                               const ClusterFacts* cluster) {
  const contract::NeedView* view = fleet.Need(ref);
  ExplainedLink link{.kind = "need", .name = ref.fingerprint, .verdict = "", .head = "", .lines = {}};
  if (view == nullptr) {
    link.verdict = "unknown";
    link.head =
        fmt::format("need {} of cluster {}: the shard has no such need{}", ref.fingerprint, ref.cluster_id,
                    fleet.needs.cycle == 0 ? ", it has not decided yet" : "; the operator sends it soon, or it ended");
    return link;
  }
  link.verdict = VerdictOf(*view);
  link.head = fmt::format("need {} of cluster {}{}, cycle {}", ref.fingerprint, ref.cluster_id,
                          ref.group.empty() ? "" : ", group " + ref.group, fleet.needs.cycle);
  if (ref.group.starts_with(kFold)) {
    link.lines.emplace_back("workloads that must be together fit one machine: they are asked for as one unit");
  }
  if (cluster != nullptr) {
    const NeedDemand demand = DemandOf(ref, fleet, *cluster);
    link.lines.push_back(fmt::format(
        "the operator adds up {}: {}", Plural(static_cast<int64_t>(demand.workloads.size()), "workload"),
        demand.workloads.empty() ? "none" : fmt::format("{} ({})", demand.sum.ToString(), Names(demand.workloads))));
    if (std::string more = MoreThanItsWorkloads(view->need.aggregate, demand); !more.empty()) {
      link.lines.push_back(std::move(more));
    }
    if (!demand.without_node.empty()) {
      link.lines.push_back(
          fmt::format("{} without a node: {}", demand.without_node.size(), Names(demand.without_node)));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const contract::Explained explained,
                          halves.OfShard<contract::Explained>(contract::Explain{.subject = ref}));
  // The shard's sentences, but for its own head line.
  for (size_t i = 1; i < explained.lines.size(); ++i) {
    const std::string& line = explained.lines[i];
    link.lines.push_back(line.substr(std::min(line.find_first_not_of(' '), line.size())));
  }
  return link;
}

// Machines that count for the need, and what they cost.
void AddMachinesOf(const contract::NeedRef& ref, const FleetFacts& fleet, ExplainedLink& link) {
  std::map<std::string, int64_t> kinds;
  std::vector<std::string> ids;
  model::Money price;
  for (const contract::MachineView& view : fleet.machines) {
    if (view.need_fingerprint != ref.fingerprint || view.need_group != ref.group) continue;
    if (!view.machine->cluster.empty() && view.machine->cluster != ref.cluster_id) continue;
    if (view.machine->state == MachineState::kSpeculative) continue;
    ++kinds[fmt::format("{} {}", view.machine->instance_type, model::StateName(view.machine->state))];
    ids.push_back(view.machine->id);
    price.micros += view.machine->price_per_hour.micros;
  }
  if (ids.empty()) {
    link.lines.emplace_back("no machine counts for it");
    return;
  }
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(fmt::format("{} {}", count, kind));
  link.lines.push_back(fmt::format("{} for {}/h: {} ({})", Plural(static_cast<int64_t>(ids.size()), "machine"),
                                   model::FormatMoney(price), fmt::join(parts, ", "), Names(ids)));
}

// What each kind of machine is to the need, the cheapest first.
void AddOffers(const contract::NeedView& need, const FleetFacts& fleet, ExplainedLink& link) {
  for (const Offer& offer : OffersFor(need.need, fleet.machines)) {
    link.lines.push_back(fmt::format("{}: {}", OfferName(offer), OfferVerdict(offer)));
  }
}

void AddActions(const std::string& machine, const FleetFacts& fleet, ExplainedLink& link) {
  std::vector<const contract::ActionView*> of_it;
  for (const contract::ActionView& action : fleet.actions) {
    if (action.machine_id == machine) of_it.push_back(&action);
  }
  if (of_it.empty()) {
    link.lines.emplace_back("the shard no longer has the decisions about it; the audit log has them all");
    return;
  }
  for (auto at = of_it.rbegin(); at != of_it.rend(); ++at) {  // in the order of time
    const contract::ActionView& action = **at;
    link.lines.push_back(fmt::format(
        "{} {} in cycle {}: {} ({}){}{}", model::FormatWallTime(action.decided), action.kind, action.cycle,
        model::ReasonSentence(action.reason), model::ReasonName(action.reason),
        action.need_fingerprint.empty() ? "" : ", for need " + action.need_fingerprint,
        action.outcome.empty() ? "" : ": " + action.outcome + (action.error.empty() ? "" : ", " + action.error)));
  }
}

Result<ExplainedLink> MachineLink(Halves& halves, const contract::MachineView& view, const FleetFacts& fleet) {
  const model::Machine& machine = *view.machine;
  ExplainedLink link{
      .kind = "machine",
      .name = machine.id,
      .verdict = std::string(model::ReasonName(view.reason)),
      .head = fmt::format("machine {} is {}{}: {} ({}) in zone {} at {}/h", machine.id, model::StateName(machine.state),
                          machine.cluster.empty() ? "" : " for cluster " + machine.cluster, machine.instance_type,
                          model::CapacityTypeName(machine.capacity_type), OrDash(machine.zone),
                          model::FormatMoney(machine.price_per_hour)),
      .lines = {}};
  MUSTER_ASSIGN_OR_RETURN(const contract::Explained explained,
                          halves.OfShard<contract::Explained>(contract::Explain{.subject = machine.id}));
  // Its own sentences: those about its need have a link of their own.
  for (size_t i = 1; i < explained.lines.size() && explained.lines[i].starts_with(' '); ++i) {
    const std::string& line = explained.lines[i];
    link.lines.push_back(line.substr(std::min(line.find_first_not_of(' '), line.size())));
  }
  AddActions(machine.id, fleet, link);
  const contract::NeedView* need = fleet.Need(RefOf(view, machine.cluster));
  if (need == nullptr) return link;
  for (const Offer& offer : OffersFor(need->need, fleet.machines)) {
    if (offer.type == machine.instance_type && offer.capacity == machine.capacity_type) {
      link.lines.push_back(fmt::format("its kind, {}: {}", OfferName(offer), OfferVerdict(offer)));
      break;  // those behind it cost more
    }
    link.lines.push_back(fmt::format("cheaper, {}: {}", OfferName(offer), OfferVerdict(offer)));
  }
  return link;
}

// The machine of the node, if there is one, with the need it serves: the second half of most chains.
Status AddMachineAndNeed(Halves& halves, const contract::MachineView& machine, const FleetFacts& fleet,
                         const ChainOptions& options, const ClusterFacts* cluster, ExplainedChain& chain) {
  auto machine_link = MachineLink(halves, machine, fleet);
  if (!machine_link) return machine_link.error();
  chain.links.push_back(std::move(*machine_link));
  if (machine.need_fingerprint.empty()) return {};
  const contract::NeedRef ref = RefOf(machine, options.cluster);
  auto need_link = NeedLink(halves, ref, fleet, OwnerOf(ref, cluster, fleet));
  if (!need_link) return need_link.error();
  chain.links.push_back(std::move(*need_link));
  return {};
}

// From the need on: what serves it, or could.
Status AddNeedAndSupply(Halves& halves, const contract::NeedRef& ref, const FleetFacts& fleet,
                        const ClusterFacts* cluster, ExplainedChain& chain) {
  auto link = NeedLink(halves, ref, fleet, cluster);
  if (!link) return link.error();
  if (const contract::NeedView* need = fleet.Need(ref)) {
    AddMachinesOf(ref, fleet, *link);
    AddOffers(*need, fleet, *link);
  }
  chain.links.push_back(std::move(*link));
  return {};
}

}  // namespace

Result<ExplainedChain> ExplainWorkload(Halves& halves, const std::string& name, const ChainOptions& options) {
  ExplainedChain chain;
  auto explanation = halves.OfCluster<contract::Explanation>(contract::ExplainWorkload{.workload = name});
  if (!explanation) return std::unexpected(NamedNotFound(explanation.error(), "workload", name));
  chain.workload = *std::move(explanation);
  const contract::WorkloadView& view = chain.workload->workload;
  chain.links.push_back(WorkloadLink(*chain.workload));
  chain.links.push_back(PlacementLink(*chain.workload, options.every_node));
  const auto fleet = AskFleet(halves);
  if (!fleet) {
    chain.links.push_back(Silent("shard", fleet.error()));
    return chain;
  }
  MUSTER_ASSIGN_OR_RETURN(const ClusterFacts cluster, AskWholeCluster(halves));
  const auto ref_in = [&](const std::string& of) { return RefOf(view, of, *fleet, cluster.workloads); };
  const auto named = ClusterNamed(options, cluster, *fleet, ref_in);
  if (!named) {
    chain.links.push_back(Silent("shard", named.error()));
    return chain;
  }
  const contract::NeedRef ref = ref_in(*named);
  const contract::MachineView* machine = view.node.empty() ? nullptr : fleet->Machine(view.node);
  if (!operators::CountsAsDemand(view)) {
    chain.links.push_back({.kind = "need",
                           .name = "",
                           .verdict = "none",
                           .head = "need: the operator does not count it, it is not to run",
                           .lines = {}});
    return chain;
  }
  const operators::DemandUnit unit = operators::UnitOf(view);
  if (const std::string reason = operators::LeftOutBy(unit); !reason.empty()) {
    chain.links.push_back({.kind = "need",
                           .name = "",
                           .verdict = "none",
                           .head = fmt::format("need: the operator leaves it out, {}", reason),
                           .lines = {}});
  } else if (machine == nullptr) {
    if (Status status = AddNeedAndSupply(halves, ref, *fleet, &cluster, chain); !status.ok()) {
      return std::unexpected(std::move(status));
    }
  } else {
    MUSTER_ASSIGN_OR_RETURN(ExplainedLink need, NeedLink(halves, ref, *fleet, &cluster));
    chain.links.push_back(std::move(need));
  }
  if (machine != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(ExplainedLink link, MachineLink(halves, *machine, *fleet));
    chain.links.push_back(std::move(link));
  }
  if (const contract::NodeView* node = cluster.Node(view.node)) {
    chain.links.push_back(NodeLink(*node, cluster.workloads));
    if (machine == nullptr) {
      chain.links.back().lines.emplace_back("the shard has no machine of this name: it joined by itself");
    }
  }
  return chain;
}

Result<ExplainedChain> ExplainNode(Halves& halves, const std::string& name, const ChainOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const ClusterFacts cluster, AskWholeCluster(halves));
  const contract::NodeView* node = cluster.Node(name);
  if (node == nullptr) return std::unexpected(NamedNotFound(Status(Code::kNotFound, ""), "node", name));
  ExplainedChain chain;
  chain.links.push_back(NodeLink(*node, cluster.workloads));
  const auto fleet = AskFleet(halves);
  if (!fleet) {
    chain.links.push_back(Silent("shard", fleet.error()));
    return chain;
  }
  const contract::MachineView* machine = fleet->Machine(name);
  if (machine == nullptr) {
    chain.links.push_back({.kind = "machine",
                           .name = name,
                           .verdict = "none",
                           .head = "machine: the shard has none of this name, the node joined by itself",
                           .lines = {}});
    return chain;
  }
  if (Status status = AddMachineAndNeed(halves, *machine, *fleet, options, &cluster, chain); !status.ok()) {
    return std::unexpected(std::move(status));
  }
  return chain;
}

Result<ExplainedChain> ExplainMachine(Halves& halves, const std::string& id, const ChainOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const FleetFacts fleet, AskFleet(halves));
  const contract::MachineView* machine = fleet.Machine(id);
  if (machine == nullptr) {
    return Error(Code::kNotFound, fmt::format("the shard has no machine {}; muster fleet machines lists those it has",
                                              model::Quoted(id)));
  }
  ExplainedChain chain;
  const auto cluster = AskWholeCluster(halves);
  if (Status status = AddMachineAndNeed(halves, *machine, fleet, options, cluster ? &*cluster : nullptr, chain);
      !status.ok()) {
    return std::unexpected(std::move(status));
  }
  if (!cluster) {
    chain.links.push_back(Silent("scheduler", cluster.error()));
  } else if (const contract::NodeView* node = cluster->Node(id)) {
    chain.links.push_back(NodeLink(*node, cluster->workloads));
  } else if (machine->machine->state == MachineState::kConfigured) {
    chain.links.push_back({.kind = "node",
                           .name = id,
                           .verdict = "none",
                           .head = "node: this scheduler has none of that name; its cluster may be another one",
                           .lines = {}});
  }
  return chain;
}

Result<ExplainedChain> ExplainNeed(Halves& halves, const std::string& id, const std::string& group,
                                   const ChainOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const FleetFacts fleet, AskFleet(halves));
  const auto cluster = AskWholeCluster(halves);
  contract::NeedRef ref{.cluster_id = options.cluster, .fingerprint = id, .group = group};
  constexpr std::string_view kOfWorkload = "workload/";
  if (id.starts_with(kOfWorkload)) {
    if (!cluster) return std::unexpected(cluster.error());
    const std::string name = id.substr(kOfWorkload.size());
    const auto at = std::ranges::find(cluster->workloads, name, &contract::WorkloadView::workload);
    if (at == cluster->workloads.end()) {
      return std::unexpected(NamedNotFound(Status(Code::kNotFound, ""), "workload", name));
    }
    const auto ref_in = [&](const std::string& of) { return RefOf(*at, of, fleet, cluster->workloads); };
    MUSTER_ASSIGN_OR_RETURN(const std::string named, ClusterNamed(options, *cluster, fleet, ref_in));
    ref = ref_in(named);
  }
  if (ref.cluster_id.empty()) {
    std::set<std::string> with_need;
    for (const contract::NeedView& view : fleet.needs.needs) {
      if (view.need.profile.fingerprint() == id && view.need.group == group) with_need.insert(view.need.cluster);
    }
    if (with_need.size() > 1) {
      return InvalidArgument(
          fmt::format("--cluster is missing: {} have this need", Names({with_need.begin(), with_need.end()})));
    }
    if (!with_need.empty()) ref.cluster_id = *with_need.begin();
  }
  if (fleet.Need(ref) == nullptr) {
    std::vector<std::string> known;
    for (const contract::NeedView& view : fleet.needs.needs) known.push_back(view.need.profile.fingerprint());
    const std::string nearest = model::NearestName(ref.fingerprint, known);
    return Error(Code::kNotFound, fmt::format("no cluster has a need {}{}; muster fleet needs -o wide lists them",
                                              model::Quoted(ref.fingerprint),
                                              nearest.empty() ? "" : ", did you mean " + model::Quoted(nearest) + "?"));
  }
  ExplainedChain chain;
  const ClusterFacts* owner = OwnerOf(ref, cluster ? &*cluster : nullptr, fleet);
  if (Status status = AddNeedAndSupply(halves, ref, fleet, owner, chain); !status.ok()) {
    return std::unexpected(std::move(status));
  }
  if (!cluster) chain.links.push_back(Silent("scheduler", cluster.error()));
  return chain;
}

std::string ChainText(const ExplainedChain& chain) {
  std::string text;
  for (const ExplainedLink& link : chain.links) {
    text += Printable(link.head) + "\n";
    for (const std::string& line : link.lines) text += "  " + Printable(line) + "\n";
  }
  return text;
}

Document ChainDocument(const ExplainedChain& chain) {
  Document links = Document::List();
  for (const ExplainedLink& link : chain.links) {
    Document lines = Document::List();
    for (const std::string& line : link.lines) lines.Add(line);
    links.Add(Document::Map()
                  .Add("kind", link.kind)
                  .Add("name", link.name)
                  .Add("verdict", link.verdict)
                  .Add("head", link.head)
                  .Add("lines", lines));
  }
  return links;
}

}  // namespace muster::cli
