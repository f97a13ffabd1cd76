#include "planner/movable.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/probe.h"
#include "planner/compile.h"

namespace muster::planner {
namespace {

// Units on one node that match one selector.
struct OnNode {
  uint32_t selector = 0;
  uint32_t node = 0;
  int64_t all = 0;
  int64_t counted = 0;  // without terminating ones, which spread leaves out
};

class Maker {
 public:
  Maker(const Request& request, const std::set<uint32_t>& may_go) : request_(request), may_go_(may_go) {}

  Movable Run() {
    TakeWorld();
    const std::vector<const placement::Unit*> units = UnitsToPlace(movable_.request);
    problem_ = Compiler(movable_.request, units, RulesOf::kAll).Run();
    spreads_ = !problem_.staying_rules.empty();
    for (const DenseKind& kind : problem_.kinds) {
      spreads_ = spreads_ || std::ranges::count(kind.rules, DomainRuleKind::kSpread, &DomainRule::kind) > 0;
    }
    PartKinds();
    FindHostSpreads();
    FindUnitsByNode();
    HoldUnitsThatBreakRules();
    HoldHostSpreads();
    HoldDomains();
    if (spreads_ && !MUTANT("planner.buys_new_domains")) DropChoicesOfNewDomains();
    movable_.problem = std::make_unique<const Problem>(std::move(problem_));
    return std::move(movable_);
  }

 private:
  void TakeWorld() {
    Request& request = movable_.request;
    request.world.kinds = request_.world.kinds;
    request.world.namespaces = request_.world.namespaces;
    request.world.nodes = request_.world.nodes;
    request.candidates = request_.candidates;
    request.keep = Keep::kNodes;
    request.effort = request_.effort;
    std::map<std::string_view, uint32_t> position;
    for (const uint32_t n : may_go_) position.emplace(request_.world.nodes[n].id, n);
    for (const placement::PlacedUnit& placed : request_.world.placed) {
      const auto at = position.find(placed.node);
      if (at == position.end() || placed.terminating) {
        request.world.placed.push_back(placed);
        continue;
      }
      request.pending.push_back(placed.unit);
      movable_.origin.push_back(at->second);
    }
  }

  uint32_t CellOf(uint32_t node) const { return problem_.fixed[node].cell; }
  uint32_t LookOf(uint32_t node) const { return problem_.looks[problem_.fixed[node].node_class]; }

  bool IsInvolved(const DenseKind& kind) const {
    return !kind.rules.empty() || std::ranges::any_of(kind.matches, [&](uint32_t selector) {
      return bool{problem_.domain_selectors[selector]};
    });
  }

  // Units of involved kinds keep their cell and their look: a kind for each look, and a lot for each cell.
  void PartKinds() {
    movable_.lot_of.assign(movable_.origin.size(), 0);
    std::vector<DenseKind> kinds;
    for (DenseKind& kind : problem_.kinds) {
      MUSTER_CHECK(!kind.bundle, "a unit that must share its node moves");
      if (!IsInvolved(kind) || MUTANT("planner.moves_across_zones")) {
        AddLot(kinds.size(), kAnyCell, kind.units);
        kinds.push_back(std::move(kind));
        continue;
      }
      std::map<uint32_t, std::map<uint32_t, std::vector<uint32_t>>> parts;  // look, cell
      for (const uint32_t u : kind.units) parts[LookOf(movable_.origin[u])][CellOf(movable_.origin[u])].push_back(u);
      for (auto& [look, cells] : parts) {
        DenseKind part = kind;
        part.mask = MaskWithin(kind.mask, look);
        part.units.clear();
        for (auto& [cell, units] : cells) {
          AddLot(kinds.size(), cell, units);
          part.units.insert(part.units.end(), units.begin(), units.end());
        }
        kinds.push_back(std::move(part));
      }
    }
    problem_.kinds = std::move(kinds);
  }

  void AddLot(size_t kind, uint32_t cell, const std::vector<uint32_t>& units) {
    for (const uint32_t u : units) movable_.lot_of[u] = static_cast<uint32_t>(movable_.lots.size());
    movable_.lots.push_back({static_cast<uint32_t>(kind), cell, static_cast<int64_t>(units.size())});
  }

  uint32_t MaskWithin(uint32_t mask, uint32_t look) {
    const auto [at, is_new] = masks_.try_emplace({mask, look}, static_cast<uint32_t>(problem_.masks.size()));
    if (is_new) {
      std::vector<bool> row = problem_.masks[mask];
      for (size_t c = 0; c < row.size(); ++c) row[c] = row[c] && problem_.looks[c] == look;
      problem_.masks.push_back(std::move(row));
    }
    return at->second;
  }

  const DenseKind& KindOf(uint32_t unit) const { return problem_.kinds[movable_.lots[movable_.lot_of[unit]].kind]; }

  void FindHostSpreads() {
    host_spreads_.insert(problem_.staying_limits.begin(), problem_.staying_limits.end());
    for (const DenseKind& kind : problem_.kinds) {
      for (const Limit& limit : kind.limits) {
        if (!limit.both_ways) host_spreads_.insert(limit);
      }
    }
  }

  void FindUnitsByNode() {
    std::vector<bool> tracked = problem_.domain_selectors;
    for (const Limit& limit : host_spreads_) tracked[limit.selector] = true;
    std::map<std::pair<uint32_t, uint32_t>, OnNode> found;
    const auto add = [&](uint32_t selector, uint32_t node, int64_t all, int64_t counted) {
      if (!tracked[selector]) return;
      OnNode& one = found[{selector, node}];
      one = {selector, node, one.all + all, one.counted + counted};
    };
    for (uint32_t n = 0; n < problem_.fixed.size(); ++n) {
      for (const Tally& tally : problem_.fixed[n].tallies) add(tally.selector, n, tally.count, tally.count);
      for (const Tally& tally : problem_.fixed[n].terminating) add(tally.selector, n, 0, -tally.count);
    }
    for (uint32_t u = 0; u < movable_.origin.size(); ++u) {
      for (const uint32_t selector : KindOf(u).matches) add(selector, movable_.origin[u], 1, 1);
    }
    for (const auto& [key, one] : found) on_nodes_.push_back(one);
  }

  std::span<const OnNode> Of(uint32_t selector) const {
    const auto [first, last] = std::ranges::equal_range(on_nodes_, selector, {}, &OnNode::selector);
    return {first, last};
  }

  uint32_t DomainOf(uint32_t node, uint32_t key) const { return problem_.cells[CellOf(node)].domains[key]; }

  bool Counts(const DomainRule& rule, uint32_t node) const {
    return DomainOf(node, rule.key) != kNoKey &&
           (rule.kind != DomainRuleKind::kSpread || problem_.class_sets[rule.classes][problem_.fixed[node].node_class]);
  }

  // Every domain with a node that counts, at zero.
  const std::map<uint32_t, int64_t>& DomainsOf(const DomainRule& rule) {
    const std::tuple key(rule.kind == DomainRuleKind::kSpread, rule.key, rule.classes);
    const auto [at, is_new] = domains_.try_emplace(key);
    for (uint32_t n = 0; is_new && n < problem_.fixed.size(); ++n) {
      if (Counts(rule, n)) at->second.try_emplace(DomainOf(n, rule.key), 0);
    }
    return at->second;
  }

  // By domain, what a rule counts there.
  std::map<uint32_t, int64_t> CountsOf(const DomainRule& rule) {
    std::map<uint32_t, int64_t> counts = DomainsOf(rule);
    for (const OnNode& one : Of(rule.selector)) {
      if (!Counts(rule, one.node)) continue;
      counts[DomainOf(one.node, rule.key)] += rule.kind == DomainRuleKind::kSpread ? one.counted : one.all;
    }
    return counts;
  }

  const std::map<uint32_t, int64_t>& KnownCountsOf(const DomainRule& rule) {
    const std::tuple key(rule.kind, rule.key, rule.selector, rule.classes);
    const auto [at, is_new] = counts_.try_emplace(key);
    if (is_new) at->second = CountsOf(rule);
    return at->second;
  }

  // Whether a unit in the domain could be put there with all others in place.
  bool Holds(const DomainRule& rule, bool is_counted, uint32_t domain) {
    const std::map<uint32_t, int64_t>& counts = KnownCountsOf(rule);
    const int64_t self = is_counted ? 1 : 0;
    if (domain == kNoKey) return rule.kind == DomainRuleKind::kLimit;
    const auto own = counts.find(domain);
    const int64_t others = (own == counts.end() ? 0 : own->second) - self;
    if (rule.kind == DomainRuleKind::kLimit) return others + self <= rule.most;
    if (rule.kind == DomainRuleKind::kNear) {
      int64_t total = -self;
      for (const auto& [unused, count] : counts) total += count;
      return others > 0 || (is_counted && total == 0);
    }
    int64_t least = others;
    for (const auto& [other, count] : counts) {
      if (other != domain) least = std::min(least, count);
    }
    if (static_cast<int64_t>(counts.size()) < rule.min_domains) least = 0;
    return others + self - least <= rule.most;
  }

  void HoldUnitsThatBreakRules() {
    for (uint32_t u = 0; u < movable_.origin.size(); ++u) {
      const uint32_t node = movable_.origin[u];
      const DenseKind& kind = KindOf(u);
      for (const DomainRule& rule : kind.rules) {
        const bool is_counted = std::ranges::binary_search(kind.matches, rule.selector);
        if (Holds(rule, is_counted, DomainOf(node, rule.key)) || MUTANT("planner.moves_what_breaks")) continue;
        Hold(node, fmt::format("a rule of {} does not hold now, so no scheduler would put it back",
                               movable_.request.pending[u].id));
        if (rule.kind == DomainRuleKind::kLimit) HoldExcluded(rule.key, DomainOf(node, rule.key), rule.selector);
      }
    }
    for (const FixedDomainLimit& fixed : problem_.fixed_domain_limits) {
      HoldExcluded(fixed.key, problem_.cells[fixed.cell].domains[fixed.key], fixed.limit.selector);
    }
  }

  // Units that another one excludes from the domain where they are.
  void HoldExcluded(uint32_t key, uint32_t domain, uint32_t selector) {
    for (const OnNode& one : Of(selector)) {
      if (domain == kNoKey || DomainOf(one.node, key) != domain || !may_go_.contains(one.node)) continue;
      Hold(one.node, "a unit on it is excluded from where it is, so no scheduler would put it back");
    }
  }

  // A node with more units than the skew relies on those of every other node: none of them may leave.
  void HoldHostSpreads() {
    for (const Limit& limit : host_spreads_) {
      const std::span<const OnNode> nodes = Of(limit.selector);
      const bool relies = std::ranges::any_of(nodes, [&](const OnNode& one) { return one.counted > limit.most; });
      for (const OnNode& one : nodes) {
        if (relies && may_go_.contains(one.node)) Hold(one.node, "a spread over hosts relies on the units on it");
      }
    }
  }

  // One node of every empty domain that minDomains may count on.
  void HoldDomains() {
    std::set<DomainRule> rules(problem_.staying_rules.begin(), problem_.staying_rules.end());
    for (const DenseKind& kind : problem_.kinds) rules.insert(kind.rules.begin(), kind.rules.end());
    for (const DomainRule& rule : rules) {
      if (rule.kind != DomainRuleKind::kSpread || rule.min_domains <= 1) continue;
      std::set<uint32_t> empty;
      for (const auto& [domain, count] : KnownCountsOf(rule)) {
        if (count == 0) empty.insert(domain);
      }
      for (uint32_t n = 0; n < problem_.fixed.size(); ++n) {
        if (Counts(rule, n) && empty.erase(DomainOf(n, rule.key)) > 0 && may_go_.contains(n)) {
          Hold(n,
               fmt::format("a spread asks for {} domains of {}", rule.min_domains, problem_.topology_keys[rule.key]));
        }
      }
    }
  }

  void Hold(uint32_t node, std::string because) { movable_.must_stay.try_emplace(node, std::move(because)); }

  void DropChoicesOfNewDomains() {
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (uint32_t n = 0; n < problem_.fixed.size(); ++n) seen.emplace(CellOf(n), LookOf(n));
    std::vector<Choice> choices;
    std::vector<int64_t> capacities;
    for (uint32_t c = 0; c < problem_.cells.size(); ++c) {
      Cell& cell = problem_.cells[c];
      const auto first = static_cast<uint32_t>(choices.size());
      for (uint32_t k = cell.first_choice; k < cell.end_choice; ++k) {
        if (!seen.contains({c, problem_.looks[problem_.choices[k].node_class]})) continue;
        choices.push_back(problem_.choices[k]);
        const auto capacity = problem_.CapacityOf(k);
        capacities.insert(capacities.end(), capacity.begin(), capacity.end());
      }
      cell.first_choice = first;
      cell.end_choice = static_cast<uint32_t>(choices.size());
    }
    problem_.choices = std::move(choices);
    problem_.capacities = std::move(capacities);
  }

  const Request& request_;
  const std::set<uint32_t>& may_go_;
  Movable movable_;
  Problem problem_;
  bool spreads_ = false;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> masks_;  // by mask and look
  std::set<Limit> host_spreads_;                             // of units that move and of units that stay
  std::vector<OnNode> on_nodes_;                             // by selector, then node
  std::map<std::tuple<bool, uint32_t, uint32_t>, std::map<uint32_t, int64_t>> domains_;
  std::map<std::tuple<DomainRuleKind, uint32_t, uint32_t, uint32_t>, std::map<uint32_t, int64_t>> counts_;
};

}  // namespace

Movable MakeMovable(const Request& request, const std::set<uint32_t>& may_go) { return Maker(request, may_go).Run(); }

}  // namespace muster::planner
