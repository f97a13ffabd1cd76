// Resolves what objects of a dump say of each other: priorities, volumes, budgets; then drops the labels that no
// selector reads, so that pods of one kind become equal.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "kube/collected.h"
#include "model/names.h"
#include "model/text_value.h"
#include "placement/match.h"

namespace muster::kube {
namespace {

using placement::Kind;
using placement::KindIndex;
using placement::NodeTerm;

constexpr size_t kMostTerms = 256;

// Both lists of terms hold: every pair of one of each.
Status AndTerms(Kind& kind, const std::vector<NodeTerm>& terms, std::string_view pod) {
  if (terms.empty()) return {};
  if (terms.size() == 1 && terms[0].fields.empty() && !terms[0].labels.empty()) {
    for (const model::Requirement& requirement : terms[0].labels) {
      if (std::ranges::find(kind.requirements, requirement) == kind.requirements.end()) {
        kind.requirements.push_back(requirement);
      }
    }
    std::ranges::sort(kind.requirements);
    return {};
  }
  if (kind.node_terms.empty()) {
    kind.node_terms = terms;
    return {};
  }
  if (kind.node_terms.size() * terms.size() > kMostTerms) {
    return {Code::kInvalidArgument,
            fmt::format("pod {}: its affinity and its volumes allow more than {} combinations", pod, kMostTerms)};
  }
  std::vector<NodeTerm> both;
  for (const NodeTerm& a : kind.node_terms) {
    for (const NodeTerm& b : terms) {
      NodeTerm& term = both.emplace_back(a);
      term.labels.insert(term.labels.end(), b.labels.begin(), b.labels.end());
      term.fields.insert(term.fields.end(), b.fields.begin(), b.fields.end());
    }
  }
  kind.node_terms = std::move(both);
  return {};
}

class Resolver {
 public:
  explicit Resolver(Collected collected) : in_(std::move(collected)), out_(std::move(in_.rest)) {}

  Result<Dump> Run() {
    if (in_.nodes.empty() && in_.pods.empty()) {
      return std::unexpected(model::TextError(fmt::format("{}", fmt::join(in_.files, ", ")), {}, "",
                                              "there is neither a node nor a pod in it; write it with kubectl get "
                                              "nodes,pods,pdb,daemonsets,pvc,pv,csinodes,"
                                              "priorityclasses,namespaces -A -o json"));
    }
    if (Status status = TakeNodes(); !status.ok()) return std::unexpected(std::move(status));
    MatchBudgets();
    if (Status status = TakePods(); !status.ok()) return std::unexpected(std::move(status));
    CountBudgets();
    DropUnreadLabels();
    std::ranges::sort(in_.daemon_sets, {}, &DumpDaemonSet::id);
    out_.daemon_sets = std::move(in_.daemon_sets);
    return std::move(out_);
  }

 private:
  Status TakeNodes() {
    const auto id = [](const CollectedNode& node) -> const std::string& { return node.node.node.id; };
    std::ranges::sort(in_.nodes, [&](const CollectedNode& a, const CollectedNode& b) {
      return std::tie(id(a), a.origin) < std::tie(id(b), b.origin);
    });
    const auto twice = std::ranges::adjacent_find(in_.nodes, {}, id);
    if (twice != in_.nodes.end()) return GivenTwice("node", id(*twice), twice->origin, (twice + 1)->origin);
    std::set<std::string> drivers;
    for (const auto& [node, limits] : in_.attachable) {
      for (const auto& [name, amount] : limits.entries()) drivers.insert(name);
    }
    limited_drivers_ = drivers;
    for (CollectedNode& collected : in_.nodes) {
      DumpNode& node = collected.node;
      const auto limits = in_.attachable.find(node.node.id);
      for (const std::string& driver : drivers) {
        const int64_t amount = limits == in_.attachable.end() ? 0 : limits->second.Get(driver);
        if (amount > 0) {
          node.node.total.Set(driver, amount);
        } else {
          node.node.unlimited.push_back(driver);
        }
      }
      out_.nodes.push_back(std::move(node));
    }
    in_.nodes = {};
    return {};
  }

  // Which budgets a kind is under, by its namespace and labels.
  void MatchBudgets() {
    std::ranges::sort(in_.budgets, {}, &DisruptionBudget::id);
    std::map<std::string, std::vector<size_t>> by_namespace;
    for (size_t i = 0; i < in_.budgets.size(); ++i) by_namespace[in_.budgets[i].name_space].push_back(i);
    budgets_of_kind_.resize(in_.kinds.kinds().size());
    for (size_t k = 0; k < budgets_of_kind_.size(); ++k) {
      const Kind& kind = in_.kinds.kinds()[k];
      const auto here = by_namespace.find(kind.name_space);
      if (here == by_namespace.end()) continue;
      for (const size_t i : here->second) {
        const placement::Selector& selector = in_.budgets[i].selector;
        if (selector.given && placement::MatchesAll(selector.all, kind.labels)) budgets_of_kind_[k].push_back(i);
      }
    }
  }

  Status TakePods() {
    const auto id = [](const CollectedPod& pod) -> const std::string& { return pod.pod.unit.id; };
    std::ranges::sort(in_.pods, [&](const CollectedPod& a, const CollectedPod& b) {
      return std::tie(id(a), a.origin) < std::tie(id(b), b.origin);
    });
    const auto twice = std::ranges::adjacent_find(in_.pods, {}, id);
    if (twice != in_.pods.end()) return GivenTwice("pod", id(*twice), twice->origin, (twice + 1)->origin);
    covered_.resize(in_.budgets.size());
    out_.pods.reserve(in_.pods.size());
    for (CollectedPod& collected : in_.pods) {
      if (const Status status = TakePod(collected); !status.ok()) {
        const Origin& origin = collected.origin;
        return model::TextError(in_.files[origin.file], {.line = origin.line, .column = origin.column}, "",
                                status.message());
      }
      out_.pods.push_back(std::move(collected.pod));
    }
    in_.pods = {};
    return {};
  }

  Status TakePod(CollectedPod& collected) {
    DumpPod& pod = collected.pod;
    const DumpNode* node = FindNode(pod.node);
    if (!pod.node.empty() && node == nullptr) {
      ++out_.on_unknown_nodes;
      pod.missing_node = std::exchange(pod.node, "");
    }
    for (const size_t i : budgets_of_kind_[pod.unit.kind.value()]) {
      pod.budgets.push_back(in_.budgets[i].id);
      if (pod.terminating) continue;
      ++covered_[i].pods;
      if (!pod.node.empty()) ++covered_[i].running;
    }
    if (collected.claims.empty() && collected.priority_class.empty()) return {};
    Kind kind = in_.kinds.kinds()[pod.unit.kind.value()];
    if (!collected.priority_class.empty()) {
      const auto row = in_.priority_classes.find(collected.priority_class);
      if (row != in_.priority_classes.end()) {
        kind.priority = row->second;
      } else {
        ++out_.not_understood["priorityClassName (the dump has no such class; taken as 0)"];
      }
    }
    for (const std::string& claim : collected.claims) {
      if (Status status = AddClaim(claim, pod, node, kind); !status.ok()) return status;
    }
    pod.unit.kind = in_.kinds.Add(kind);
    return {};
  }

  Status AddClaim(const std::string& claim, DumpPod& pod, const DumpNode* node, Kind& kind) {
    const auto bound = in_.claims.find(claim);
    const auto volume = bound == in_.claims.end() ? in_.volumes.end() : in_.volumes.find(bound->second.volume);
    if (volume == in_.volumes.end()) {
      const bool waits = bound != in_.claims.end() && bound->second.volume.empty();
      if (waits) return {};  // it is made where the pod goes
      ++out_.unknown_volumes;
      if (node == nullptr || node->zone.empty()) return {};
      return AndTerms(kind, {NodeTerm{.labels = {{std::string(model::kZoneKey), model::Operator::kIn, {node->zone}}}}},
                      pod.unit.id);
    }
    if (volume->second.local) pod.local_volume = true;
    if (const std::string resource = AttachableResource(volume->second.driver); limited_drivers_.contains(resource)) {
      kind.request.Set(resource, kind.request.Get(resource) + 1000);
    }
    return AndTerms(kind, volume->second.terms, pod.unit.id);
  }

  const DumpNode* FindNode(const std::string& id) const {
    const auto at = std::ranges::lower_bound(out_.nodes, id, {},
                                             [](const DumpNode& node) -> const std::string& { return node.node.id; });
    return at != out_.nodes.end() && at->node.id == id ? &*at : nullptr;
  }

  void CountBudgets() {
    for (size_t i = 0; i < in_.budgets.size(); ++i) {
      const DisruptionBudget& budget = in_.budgets[i];
      const auto [pods, running] = covered_[i];
      int64_t allowed = 0;
      if (budget.allowed) {
        allowed = *budget.allowed;
      } else if (budget.min_available) {
        allowed = running - budget.min_available->Of(pods);
      } else if (budget.max_unavailable) {
        allowed = budget.max_unavailable->Of(pods) - (pods - running);
      }
      out_.budgets.push_back({budget.id, std::max<int64_t>(allowed, 0)});
    }
  }

  // Labels are read by selectors alone; a unit is the same without the others, and many more units are equal.
  void DropUnreadLabels() {
    std::vector<Kind> kinds = in_.kinds.Take();
    std::set<std::string> read;
    const auto add = [&](const placement::Selector& selector) {
      for (const model::Requirement& requirement : selector.all) read.insert(requirement.key);
    };
    const auto add_term = [&](const placement::UnitTerm& term) {
      add(term.selector);
      read.insert(term.match_label_keys.begin(), term.match_label_keys.end());
      read.insert(term.mismatch_label_keys.begin(), term.mismatch_label_keys.end());
    };
    for (const Kind& kind : kinds) {
      for (const auto& spread : kind.spread) {
        add(spread.selector);
        read.insert(spread.match_label_keys.begin(), spread.match_label_keys.end());
      }
      for (const auto& term : kind.colocate) add_term(term);
      for (const auto& term : kind.exclude) add_term(term);
      for (const auto& preferred : kind.preferred_colocate) add_term(preferred.term);
      for (const auto& preferred : kind.preferred_exclude) add_term(preferred.term);
    }
    placement::KindTable table;
    std::vector<KindIndex> renumbered(kinds.size());
    std::vector<bool> used(kinds.size());
    for (const DumpPod& pod : out_.pods) used[pod.unit.kind.value()] = true;
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (!used[i]) continue;
      model::TextMap::Map labels;
      for (const auto& [key, value] : kinds[i].labels) {
        if (read.contains(key)) labels.emplace(key, value);
      }
      kinds[i].labels = std::move(labels);
      renumbered[i] = table.Add(kinds[i]);
      kinds[i] = {};
    }
    for (DumpPod& pod : out_.pods) pod.unit.kind = renumbered[pod.unit.kind.value()];
    out_.kinds = table.Take();
  }

  Status GivenTwice(std::string_view what, std::string_view id, const Origin& first, const Origin& second) const {
    return model::TextError(in_.files[second.file], {.line = second.line, .column = second.column}, "",
                            fmt::format("{} {} is there twice, first at {}:{}:{}; give every object once", what,
                                        model::Quoted(id), in_.files[first.file], first.line, first.column));
  }

  struct Covered {
    int32_t pods = 0;
    int32_t running = 0;
  };

  Collected in_;
  Dump out_;
  std::set<std::string> limited_drivers_;
  std::vector<std::vector<size_t>> budgets_of_kind_;  // by the kinds that were read
  std::vector<Covered> covered_;                      // by budget
};

}  // namespace

std::string AttachableResource(std::string_view driver) { return fmt::format("attachable-volumes-csi-{}", driver); }

Result<Dump> Resolve(Collected collected) { return Resolver(std::move(collected)).Run(); }

}  // namespace muster::kube
