#include "kube/plan_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "kube/gpus.h"
#include "kube/pools.h"
#include "model/names.h"
#include "model/quantity.h"
#include "placement/arithmetic.h"
#include "placement/workload_units.h"

namespace muster::kube {
namespace {

using placement::Kind;
using placement::KindIndex;

struct AllowRow {
  std::string_view name;
  std::string_view label;
};
constexpr auto kAllowed = std::to_array<AllowRow>({{"amd64", kArchLabel},
                                                   {"arm64", kArchLabel},
                                                   {"ppc64le", kArchLabel},
                                                   {"s390x", kArchLabel},
                                                   {"linux", kOsLabel},
                                                   {"windows", kOsLabel},
                                                   {"on-demand", kCapacityTypeLabel},
                                                   {"reserved", kCapacityTypeLabel},
                                                   {"bare-metal", kCapacityTypeLabel},
                                                   {"spot", kCapacityTypeLabel}});

constexpr size_t kMostNames = 5;  // of types in a note

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// A test that ties a unit to one machine by its name: no new machine passes it.
bool IsHostTest(const model::Requirement& requirement) {
  return (requirement.key == kHostnameLabel || requirement.key == placement::kNodeNameField) &&
         requirement.op == model::Operator::kIn;
}
bool IsTiedToHost(const Kind& kind) {
  if (std::ranges::any_of(kind.requirements, IsHostTest)) return true;
  return !kind.node_terms.empty() && std::ranges::all_of(kind.node_terms, [](const placement::NodeTerm& term) {
    return std::ranges::any_of(term.labels, IsHostTest) || std::ranges::any_of(term.fields, IsHostTest);
  });
}

// Where a unit runs, as far as it decides where it may run: values of the three labels.
using Home = std::array<std::string, 3>;
constexpr std::array<std::string_view, 3> kHomeLabels = {kArchLabel, kOsLabel, kCapacityTypeLabel};

Home HomeOf(const DumpNode& node) { return {node.arch, node.os, std::string(model::CapacityTypeName(node.capacity))}; }

LabelKeys KeysRead(const Dump& dump, const std::vector<model::WorkloadFile>& files) {
  LabelKeys keys = LabelsRead(dump);
  for (const model::WorkloadFile& file : files) {
    for (const model::WorkloadSpec& spec : file.workloads) AddLabelsRead(placement::KindOf(spec), keys);
  }
  return keys;
}

class Builder {
 public:
  Builder(const Dump& dump, const std::vector<model::WorkloadFile>& files, const planner::Catalogue& catalogue,
          const PlanOptions& options)
      : dump_(dump), catalogue_(catalogue), options_(options), pools_(FindPools(dump, KeysRead(dump, files))) {
    for (const DumpNode& node : dump.nodes) nodes_[node.node.id] = &node;
  }

  PlanInput Run(const std::vector<model::WorkloadFile>& files) {
    request().keep = options_.keep;
    FindHomes();
    SortPods();
    TakeNodes();
    TakePods();
    TakeFiles(files);
    request().world.kinds = kinds_.Take();
    request().world.namespaces = dump_.namespaces;
    request().world.budgets = dump_.budgets;
    TakeCandidates();
    AddNotes();
    return std::move(input_);
  }

 private:
  planner::Request& request() { return input_.request; }

  // Pods of one owner are alike: a pending one may go where the others run.
  void FindHomes() {
    for (const DumpNode& node : dump_.nodes) {
      if (!node.control_plane) homes_.insert(HomeOf(node));
    }
    // Without nodes: what most programs are made for.
    if (homes_.empty()) {
      for (const std::string_view terms : {"bare-metal", "on-demand", "reserved"}) {
        homes_.insert({"amd64", "linux", std::string(terms)});
      }
    }
    for (const DumpPod& pod : dump_.pods) {
      if (!pod.node.empty() && !pod.owner.empty()) {
        const auto key = std::pair(std::string_view(dump_.kinds[pod.unit.kind.value()].name_space), pod.owner);
        owner_homes_.emplace(key, HomeOf(*nodes_.at(pod.node)));
      }
    }
  }

  void SortPods() {
    for (const DumpPod& pod : dump_.pods) {
      if (pod.terminating) {
        ++input_.terminating_pods;
      } else if (pod.daemon || pod.is_static) {
        ++input_.daemon_pods;
        if (!pod.node.empty()) overhead_[pod.node].push_back(&pod);
      } else {
        if (!pod.node.empty()) pods_on_[pod.node].push_back(&pod);
        units_.push_back(&pod);
      }
    }
  }

  void TakeNodes() {
    input_.nodes = static_cast<int64_t>(dump_.nodes.size());
    for (const DumpNode& node : dump_.nodes) {
      const std::string& id = node.node.id;
      std::optional<FixedNode> fixed;
      if (options_.keep == planner::Keep::kNone) fixed = WhyFixed(node);
      if (fixed) fixed_.insert(id);
      placement::Node copy = node.node;
      for (const DumpPod* pod : overhead_[id]) {
        const auto sum = model::Add(copy.reserved, dump_.kinds[pod->unit.kind.value()].request);
        if (sum) copy.reserved = *sum;
        if (fixed || options_.keep == planner::Keep::kNodes) AddResident(*pod);
      }
      copy.devices = DevicesOf(model::SubtractSaturating(copy.total, copy.reserved));
      DropGpus(copy.total);
      DropGpus(copy.reserved);
      request().world.nodes.push_back(std::move(copy));
      const auto pool = pools_.of_node.find(id);
      request().nodes[id] = {.price = PriceOf(node, catalogue_),
                             .type = node.type,
                             .zone = node.zone,
                             .pool = pool == pools_.of_node.end() ? "" : pool->second,
                             .capacity = node.capacity,
                             .stays_because = StaysBecause(node, pods_on_[id], dump_),
                             .fixed = fixed.has_value()};
      if (fixed) input_.fixed.push_back(*std::move(fixed));
    }
  }

  // Of the ideal fleet: what no new machine could take over.
  std::optional<FixedNode> WhyFixed(const DumpNode& node) const {
    const std::string& id = node.node.id;
    if (node.control_plane) return FixedNode{id, FixedReason::kControlPlane, "it is a control plane"};
    const auto pods = pods_on_.find(id);
    if (pods == pods_on_.end()) return std::nullopt;
    for (const DumpPod* pod : pods->second) {
      if (pod->local_volume) {
        return FixedNode{id, FixedReason::kLocalVolume, fmt::format("pod {} has a local volume", pod->unit.id)};
      }
      if (IsTiedToHost(dump_.kinds[pod->unit.kind.value()])) {
        return FixedNode{id, FixedReason::kTiedPod, fmt::format("pod {} is tied to its name", pod->unit.id)};
      }
    }
    return std::nullopt;
  }

  // What rules between units can see of a pod that belongs to its node.
  void AddResident(const DumpPod& pod) {
    const Kind& read = dump_.kinds[pod.unit.kind.value()];
    if (read.labels.empty() && read.ports.empty() && read.exclude.empty()) return;
    const auto [at, is_new] = resident_kinds_.try_emplace(pod.unit.kind);
    if (is_new) {
      Kind kind;
      kind.name_space = read.name_space;
      kind.labels = read.labels;
      kind.ports = read.ports;
      kind.exclude = read.exclude;
      at->second = kinds_.Add(kind);
    }
    request().residents.push_back(
        {.unit = {.id = pod.unit.id, .kind = at->second, .order = pod.unit.order}, .node = pod.node});
  }

  void TakePods() {
    for (const DumpPod* pod : units_) {
      placement::Unit unit = pod->unit;
      unit.kind = KindFor(*pod);
      if (!pod->owner.empty()) input_.unit_owner.emplace(unit.id, pod->owner);
      if (pod->node.empty() || !fixed_.contains(pod->node)) ++input_.units;
      if (pod->node.empty()) {
        ++input_.pending;
        request().pending.push_back(std::move(unit));
        continue;
      }
      placement::PlacedUnit placed{.unit = std::move(unit), .node = pod->node};
      placed.budgets = pod->budgets;
      placed.may_evict = !pod->do_not_disrupt && !pod->owner.empty() && !pod->local_volume && pod->budgets.size() < 2;
      request().world.placed.push_back(std::move(placed));
    }
  }

  KindIndex KindFor(const DumpPod& pod) {
    const KindIndex read = pod.unit.kind;
    std::optional<Home> home;
    if (!pod.node.empty()) {
      home = HomeOf(*nodes_.at(pod.node));
    } else if (!pod.owner.empty()) {
      const auto at = owner_homes_.find(std::pair(std::string_view(dump_.kinds[read.value()].name_space), pod.owner));
      if (at != owner_homes_.end()) home = at->second;
    }
    const bool assume = pod.without_requests && !options_.assume_requests.empty();
    const auto [at, is_new] = converted_.try_emplace(std::tuple(read, home, assume));
    if (!is_new) return at->second;
    Kind kind = dump_.kinds[read.value()];
    if (assume) {
      for (const auto& [name, milli] : options_.assume_requests.entries()) kind.request.Set(name, milli);
    }
    AskForDevices(kind);
    for (size_t i = 0; i < kHomeLabels.size(); ++i) AddHome(kind, i, home);
    std::ranges::sort(kind.requirements);
    at->second = kinds_.Add(kind);
    return at->second;
  }

  void AddHome(Kind& kind, size_t label, const std::optional<Home>& home) const {
    std::set<std::string> values;
    if (home) {
      values.insert((*home)[label]);
    } else {
      // What says itself where it runs is not told twice.
      const auto said = std::ranges::find(kind.requirements, kHomeLabels[label], &model::Requirement::key);
      if (said != kind.requirements.end()) return;
      for (const Home& any : homes_) values.insert(any[label]);
      // Terms that end without notice are not given to what never ran on them.
      if (kHomeLabels[label] == kCapacityTypeLabel && values.size() > 1) values.erase("spot");
    }
    values.erase("");
    if (values.empty()) return;
    for (const std::string& name : options_.allow) {
      const auto row = std::ranges::find(kAllowed, name, &AllowRow::name);
      if (row != kAllowed.end() && row->label == kHomeLabels[label]) values.insert(name);
    }
    kind.requirements.push_back(
        {std::string(kHomeLabels[label]), model::Operator::kIn, {values.begin(), values.end()}});
  }

  void TakeFiles(const std::vector<model::WorkloadFile>& files) {
    int64_t order = 0;
    for (const DumpPod* pod : units_) order = std::max(order, pod->unit.order);
    const size_t before = request().pending.size();
    std::vector<placement::Unit>& pending = request().pending;
    for (const model::WorkloadFile& file : files) {
      for (const model::WorkloadSpec& spec : file.workloads) {
        if (spec.replicas == 0) continue;
        Kind kind = placement::KindOf(spec);
        kind.request.Set(planner::kPodsResource, 1000);
        AskForDevices(kind);
        kind.type = model::WorkloadType::kUnspecified;  // a machine that is bought runs every type
        for (size_t i = 0; i < kHomeLabels.size(); ++i) AddHome(kind, i, std::nullopt);
        std::ranges::sort(kind.requirements);
        const KindIndex index = kinds_.Add(kind);
        ++order;
        for (int32_t i = 0; i < spec.replicas; ++i) {
          pending.push_back({.id = model::MemberId(spec, i), .kind = index, .order = order});
          if (spec.kind != model::WorkloadKind::kWorkload) {
            input_.unit_owner.emplace(pending.back().id,
                                      fmt::format("{}/{}", model::WorkloadKindName(spec.kind), spec.name));
          }
        }
      }
      for (const model::Quota& quota : file.quotas) {
        model::Resources limit = quota.limits;
        if (quota.workloads >= 0) limit.Set(placement::kUnitsQuota, quota.workloads * 1000);
        request().world.quotas[quota.tenant] = limit;
      }
    }
    const auto added = static_cast<int64_t>(pending.size() - before);
    input_.units += added;
    input_.pending += added;
  }

  void TakeCandidates() {
    request().candidates = CandidatesFor(dump_, pools_, catalogue_);
    // Terms and architectures that no unit may use only make the search longer.
    std::set<std::string> usable[3];
    bool any[3] = {};
    for (const uint32_t k : KindsOfUnits()) {
      const Kind& kind = request().world.kinds[k];
      for (size_t i = 0; i < kHomeLabels.size(); ++i) {
        const auto test = std::ranges::find_if(kind.requirements, [&](const model::Requirement& requirement) {
          return requirement.key == kHomeLabels[i] && requirement.op == model::Operator::kIn;
        });
        if (test == kind.requirements.end()) {
          any[i] = true;
        } else {
          usable[i].insert(test->values.begin(), test->values.end());
        }
      }
    }
    std::erase_if(request().candidates, [&](const planner::Candidate& candidate) {
      for (size_t i = 0; i < kHomeLabels.size(); ++i) {
        const auto value = candidate.labels.find(std::string(kHomeLabels[i]));
        if (!any[i] && value != candidate.labels.end() && !usable[i].contains(value->second)) return true;
      }
      return false;
    });
  }

  // Of what is planned, or could be.
  std::set<uint32_t> KindsOfUnits() {
    std::set<uint32_t> kinds;
    for (const placement::Unit& unit : request().pending) kinds.insert(unit.kind.value());
    for (const placement::PlacedUnit& placed : request().world.placed) {
      if (!fixed_.contains(placed.node)) kinds.insert(placed.unit.kind.value());
    }
    return kinds;
  }

  void AddNotes() {
    std::vector<std::string>& notes = input_.notes;
    input_.without_requests = PodsWithoutRequests(dump_);
    if (input_.without_requests > 0) {
      notes.push_back(fmt::format("{} pod{} neither cpu nor memory, taken as {}", input_.without_requests,
                                  input_.without_requests == 1 ? " requests" : "s request",
                                  options_.assume_requests.empty()
                                      ? "needing nothing; --assume-requests cpu=100m,memory=128Mi changes that"
                                      : options_.assume_requests.ToString()));
    }
    for (std::string& note : NotesOf(dump_)) notes.push_back(std::move(note));
    NoteSlots();
    NoteFixed();
    NoteQuotas();
    if (pools_.left_out > 0) {
      notes.push_back(fmt::format(
          "nodes of {} makes, by labels that units ask for: machines are planned as the {} with most nodes are made",
          pools_.pools.size() + static_cast<size_t>(pools_.left_out), pools_.pools.size()));
    }
  }

  // One sentence for each reason, with an example.
  void NoteFixed() {
    for (const FixedReason reason : {FixedReason::kControlPlane, FixedReason::kLocalVolume, FixedReason::kTiedPod}) {
      const auto first = std::ranges::find(input_.fixed, reason, &FixedNode::reason);
      if (first == input_.fixed.end()) continue;
      const auto count = std::ranges::count(input_.fixed, reason, &FixedNode::reason);
      input_.notes.push_back(count == 1
                                 ? fmt::format("node {} stays: {}", first->id, first->because)
                                 : fmt::format("{} nodes stay, such as {}: {}", count, first->id, first->because));
    }
  }

  void NoteSlots() {
    std::set<std::string> known;  // types whose nodes say it
    for (const DumpNode& node : dump_.nodes) {
      if (node.node.total.Get(planner::kPodsResource) > 0) known.insert(node.type);
    }
    std::vector<std::string> names;
    for (const planner::MachineType& type : catalogue_.types) {
      const bool says = type.capacity.Get(planner::kPodsResource) > 0 || known.contains(type.name);
      if (!says && names.size() < kMostNames + 1) names.push_back(type.name);
    }
    if (names.empty()) return;
    const bool more = names.size() > kMostNames;
    if (more) names.resize(kMostNames);
    input_.notes.push_back(
        fmt::format("the catalogue does not say how many pods (slots) {}{} take: {} each, as a kubelet does by default",
                    fmt::join(names, ", "), more ? " and others" : "", kDefaultSlots));
  }

  // Quotas bound what a scheduler admits, not what machines carry: they are compared, and the plan has room for all.
  void NoteQuotas() {
    std::map<std::string, model::Resources> asked;  // by tenant
    const auto add = [&](const placement::Unit& unit) {
      const Kind& kind = request().world.kinds[unit.kind.value()];
      if (!request().world.quotas.contains(kind.tenant)) return;
      if (const auto sum = model::Add(asked[kind.tenant], placement::QuotaUse(kind))) asked[kind.tenant] = *sum;
    };
    for (const placement::PlacedUnit& placed : request().world.placed) add(placed.unit);
    for (const placement::Unit& unit : request().pending) add(unit);
    std::vector<std::string> within;
    for (const auto& [tenant, limit] : request().world.quotas) {
      bool exceeded = false;
      for (const auto& [name, most] : limit.entries()) {
        const int64_t amount = asked[tenant].Get(name);
        if (amount <= most) continue;
        exceeded = true;
        input_.notes.push_back(fmt::format(
            "quota of tenant {}: {} of {} is asked for and {} allowed; a scheduler lets the rest wait, the plan has "
            "room for all",
            model::Quoted(tenant), model::FormatQuantityFor(name, amount), name, model::FormatQuantityFor(name, most)));
      }
      if (!exceeded) within.push_back(model::Quoted(tenant));
    }
    if (!within.empty()) input_.notes.push_back(fmt::format("within quota: tenant {}", fmt::join(within, ", ")));
  }

  const Dump& dump_;
  const planner::Catalogue& catalogue_;
  const PlanOptions& options_;
  const Pools pools_;
  std::map<std::string, const DumpNode*> nodes_;
  std::set<Home> homes_;  // of the nodes
  std::map<std::pair<std::string_view, std::string>, Home> owner_homes_;
  std::map<std::string, std::vector<const DumpPod*>> pods_on_;
  std::map<std::string, std::vector<const DumpPod*>> overhead_;
  std::vector<const DumpPod*> units_;
  std::set<std::string> fixed_;
  std::map<std::tuple<KindIndex, std::optional<Home>, bool>, KindIndex> converted_;
  std::map<KindIndex, KindIndex> resident_kinds_;  // by kind of the dump
  placement::KindTable kinds_;
  PlanInput input_;
};

}  // namespace

Result<model::Resources> ParseAssumedRequests(std::string_view text) {
  model::Resources resources;
  for (const std::string& word : SplitList(text)) {
    const size_t sign = word.find('=');
    if (sign == std::string::npos) {
      return InvalidArgument(fmt::format("{}: write NAME=AMOUNT, such as cpu=100m", model::Quoted(word)));
    }
    const Status status = resources.Parse(word.substr(0, sign), word.substr(sign + 1));
    if (!status.ok()) return std::unexpected(status);
  }
  return resources;
}

Result<std::vector<std::string>> ParseAllowed(std::string_view text) {
  std::vector<std::string> words = SplitList(text);
  for (const std::string& word : words) {
    if (std::ranges::find(kAllowed, word, &AllowRow::name) != kAllowed.end()) continue;
    std::string known;
    for (const AllowRow& row : kAllowed) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
    return InvalidArgument(fmt::format("{} is none of {}", model::Quoted(word), known));
  }
  return words;
}

int64_t PodsWithoutRequests(const Dump& dump) {
  return std::ranges::count_if(dump.pods, [](const DumpPod& pod) {
    return pod.without_requests && !pod.terminating && !pod.daemon && !pod.is_static;
  });
}

std::vector<std::string> NotesOf(const Dump& dump) {
  std::vector<std::string> notes;
  const auto note = [&](int64_t count, std::string_view text) {
    if (count > 0) notes.push_back(fmt::format("{}: {}", text, count));
  };
  note(dump.on_unknown_nodes, "pods on nodes that the dump does not have, taken as pending");
  note(dump.unknown_volumes, "volume claims without a known volume, whose pods stay in their zone");
  for (const auto& [name, count] : dump.not_understood) note(count, fmt::format("pods with {}", name));
  return notes;
}

std::string StaysBecause(const DumpNode& node, const std::vector<const DumpPod*>& pods, const Dump& dump) {
  if (node.control_plane) return "it is a control plane";
  if (node.do_not_disrupt) return "an annotation forbids to disrupt it";
  for (const DumpPod* pod : pods) {
    const std::string& id = pod->unit.id;
    if (pod->owner.empty()) return fmt::format("pod {} has no controller that would make it again", id);
    if (pod->do_not_disrupt) return fmt::format("an annotation of pod {} forbids its eviction", id);
    if (pod->local_volume) return fmt::format("pod {} has a local volume", id);
    if (pod->budgets.size() > 1)
      return fmt::format("pod {} is under two disruption budgets: no eviction is allowed", id);
    for (const std::string& name : pod->budgets) {
      const auto budget = std::ranges::find(dump.budgets, name, &placement::Budget::id);
      if (budget != dump.budgets.end() && budget->allowed == 0) {
        return fmt::format("disruption budget {} allows no eviction of pod {}", name, id);
      }
    }
    if (IsTiedToHost(dump.kinds[pod->unit.kind.value()])) return fmt::format("pod {} is tied to its name", id);
  }
  return "";
}

Result<PlanInput> MakePlanInput(const Dump& dump, const std::vector<model::WorkloadFile>& files,
                                const planner::Catalogue& catalogue, const PlanOptions& options) {
  PlanInput input = Builder(dump, files, catalogue, options).Run(files);
  std::set<std::string_view> ids;
  for (const placement::Unit& unit : input.request.pending) {
    if (!ids.insert(unit.id).second) {
      return InvalidArgument(fmt::format("workload {} is given twice; give every file once", model::Quoted(unit.id)));
    }
  }
  return input;
}

}  // namespace muster::kube
