#include "planner/compile.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "placement/match.h"

namespace muster::planner {
namespace {

std::vector<uint32_t> KindsOf(const placement::World& world, const std::vector<const placement::Unit*>& units) {
  std::vector<bool> used(world.kinds.size(), false);
  for (const placement::Unit* unit : units) used[unit->kind.value()] = true;
  std::vector<uint32_t> kinds;
  for (size_t k = 0; k < used.size(); ++k) {
    if (used[k]) kinds.push_back(static_cast<uint32_t>(k));
  }
  return kinds;
}

// Only devices of which nothing is taken: the rounding of parts holds for whole ones.
int64_t WholeDevices(const std::vector<int32_t>& devices) {
  return std::ranges::count_if(devices, [](int32_t milli) { return milli >= 1000; });
}

std::vector<const placement::Unit*> UnitsThatStay(const Request& request, const KeptNodes& kept) {
  std::vector<const placement::Unit*> units;
  for (const auto* list : {&request.world.placed, &request.residents}) {
    for (const placement::PlacedUnit& placed : *list) {
      if (kept.Has(placed.node)) units.push_back(&placed.unit);
    }
  }
  return units;
}

bool IsHard(const placement::SpreadConstraint& spread) {
  return spread.when == model::WhenUnsatisfiable::kDoNotSchedule;
}

// A unit counts for co-location if it matches every term.
std::vector<placement::UnitSelector> ColocationOf(const placement::Kind& kind) {
  std::vector<placement::UnitSelector> all;
  for (const placement::UnitTerm& term : kind.colocate) all.push_back(SelectorOf(kind, term));
  std::ranges::sort(all);
  return all;
}

void Count(std::vector<Tally>& tallies, uint32_t selector, int64_t count, int64_t most) {
  const auto found = std::ranges::find(tallies, selector, &Tally::selector);
  Tally& tally = found != tallies.end() ? *found : tallies.emplace_back(Tally{.selector = selector});
  tally.count += count;
  tally.most = std::min(tally.most, most);
}

}  // namespace

int64_t DeviceParts(const placement::DeviceRequest& request) {
  if (request.whole > 0) return request.whole * kDeviceParts;
  if (request.milli <= 0) return 0;
  const int64_t parts = (int64_t{request.milli} * kDeviceParts + 999) / 1000;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(parts)));
}

std::vector<const placement::Unit*> UnitsToPlace(const Request& request) {
  std::vector<const placement::Unit*> units;
  const KeptNodes kept(request);
  for (const placement::PlacedUnit& placed : request.world.placed) {
    if (!placed.terminating && !kept.Has(placed.node)) units.push_back(&placed.unit);
  }
  for (const placement::Unit& unit : request.pending) units.push_back(&unit);
  return units;
}

Compiler::Compiler(const Request& request, const std::vector<const placement::Unit*>& units, RulesOf rules)
    : request_(request),
      kept_(request),
      rules_(rules),
      used_kinds_(KindsOf(request.world, units)),
      staying_kinds_(KindsOf(request.world, UnitsThatStay(request, kept_))),
      units_of_kind_(request.world.kinds.size()),
      selectors_(request.world),
      classes_(request.world, used_kinds_) {
  for (size_t u = 0; u < units.size(); ++u) units_of_kind_[units[u]->kind.value()].push_back(static_cast<uint32_t>(u));
  if (rules_ != RulesOf::kAll) return;
  for (const uint32_t k : staying_kinds_) {
    const placement::Kind& kind = request_.world.kinds[k];
    const bool spreads = std::ranges::any_of(kind.spread, [](const placement::SpreadConstraint& spread) {
      return IsHard(spread) && spread.topology_key != kHostnameKey;
    });
    if (spreads) classes_.AskFor(kind);
  }
}

Problem Compiler::Run() {
  AddDimensions();
  AddTopologyKeys();
  AddSelectors();
  AddCells();
  AddFixedNodes();
  classes_.MakeMasks();
  problem_.masks = classes_.masks();
  if (kept_.any()) AddFixedUnits();
  AddKinds();
  MergeBundles();
  AddChoices();
  if (rules_ == RulesOf::kAll) {
    MarkDomainSelectors();
    AddStayingRules();
    AddLooks();
  }
  problem_.classes_in_cell = std::move(classes_in_cell_);
  return std::move(problem_);
}

void Compiler::AddDimensions() {
  std::map<std::string, int64_t> grains;
  for (const uint32_t k : used_kinds_) {
    const placement::Kind& kind = request_.world.kinds[k];
    for (const auto& [name, amount] : kind.request.entries()) {
      int64_t& grain = grains[name];
      grain = std::gcd(grain, amount);
    }
    if (const int64_t parts = DeviceParts(kind.devices); parts > 0) {
      int64_t& grain = grains[std::string(kDeviceDimension)];
      grain = std::gcd(grain, parts);
    }
  }
  for (const auto& [name, grain] : grains) {
    problem_.dimensions.push_back(name);
    problem_.grains.push_back(grain);
  }
}

std::vector<int64_t> Compiler::RequestOf(const placement::Kind& kind) const {
  std::vector<int64_t> row;
  for (size_t d = 0; d < problem_.dims(); ++d) {
    const bool devices = problem_.dimensions[d] == kDeviceDimension;
    row.push_back((devices ? DeviceParts(kind.devices) : kind.request.Get(problem_.dimensions[d])) /
                  problem_.grains[d]);
  }
  return row;
}

std::vector<int64_t> Compiler::CapacityOf(const model::Resources& allocatable,
                                          const std::vector<int32_t>& devices) const {
  std::vector<int64_t> row;
  for (size_t d = 0; d < problem_.dims(); ++d) {
    const int64_t amount = problem_.dimensions[d] == kDeviceDimension ? WholeDevices(devices) * kDeviceParts
                                                                      : allocatable.Get(problem_.dimensions[d]);
    row.push_back(amount / problem_.grains[d] + (MUTANT("planner.capacity_rounded_up") ? 1 : 0));
  }
  return row;
}

void Compiler::AddTopologyKeys() {
  std::vector<std::string>& keys = problem_.topology_keys;
  const auto add = [&](const placement::Kind& kind) {
    for (const placement::SpreadConstraint& spread : kind.spread) {
      if (IsHard(spread)) keys.push_back(spread.topology_key);
    }
    for (const placement::UnitTerm& term : kind.colocate) keys.push_back(term.topology_key);
    for (const placement::UnitTerm& term : kind.exclude) keys.push_back(term.topology_key);
  };
  for (const uint32_t k : used_kinds_) add(request_.world.kinds[k]);
  for (const uint32_t k : staying_kinds_) {
    if (rules_ == RulesOf::kAll) add(request_.world.kinds[k]);
    for (const placement::UnitTerm& term : request_.world.kinds[k].exclude) keys.push_back(term.topology_key);
  }
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  std::erase(keys, kHostnameKey);
}

uint32_t Compiler::KeyOf(const std::string& topology_key) const {
  const auto at = std::ranges::lower_bound(problem_.topology_keys, topology_key);
  MUSTER_CHECK(at != problem_.topology_keys.end() && *at == topology_key);
  return static_cast<uint32_t>(at - problem_.topology_keys.begin());
}

void Compiler::AddSelectors() {
  std::vector<uint32_t> kinds = used_kinds_;
  kinds.insert(kinds.end(), staying_kinds_.begin(), staying_kinds_.end());
  std::ranges::sort(kinds);
  kinds.erase(std::ranges::unique(kinds).begin(), kinds.end());
  for (const uint32_t k : kinds) {
    const placement::Kind& kind = request_.world.kinds[k];
    for (const placement::SpreadConstraint& spread : kind.spread) {
      if (IsHard(spread)) selectors_.Add({SelectorOf(kind, spread)});
    }
    for (const placement::UnitTerm& term : kind.exclude) selectors_.Add({SelectorOf(kind, term)});
    if (!kind.colocate.empty()) selectors_.Add(ColocationOf(kind));
    for (const placement::HostPort& port : kind.ports) selectors_.AddPort(port);
  }
  selectors_.Match();
  problem_.selectors = static_cast<uint32_t>(selectors_.size());
}

uint32_t Compiler::CellOf(const model::TextMap& labels, std::map<std::vector<std::string>, uint32_t>& known) {
  std::vector<std::string> values;
  for (const std::string& key : problem_.topology_keys) {
    const auto found = labels.find(key);
    // A byte that no label value has: absent is not empty.
    values.push_back(found == labels.end() ? std::string("\n") : found->second);
  }
  const auto [at, inserted] = known.try_emplace(values, static_cast<uint32_t>(problem_.cells.size()));
  if (inserted) {
    problem_.cells.push_back({.values = std::move(values)});
    classes_in_cell_.emplace_back();
  }
  return at->second;
}

void Compiler::AddCells() {
  std::map<std::vector<std::string>, uint32_t> known;
  for (const Candidate& candidate : request_.candidates) {
    cell_of_candidate_.push_back(CellOf(candidate.labels, known));
    class_of_candidate_.push_back(classes_.ClassOf(candidate));
  }
  for (size_t n = 0; n < request_.world.nodes.size(); ++n) {
    const placement::Node& node = request_.world.nodes[n];
    if (!kept_.Has(node.id)) continue;
    problem_.fixed.push_back(
        {.node = static_cast<uint32_t>(n), .cell = CellOf(node.labels, known), .node_class = classes_.ClassOf(node)});
  }
  // Values to numbers, key by key.
  for (size_t key = 0; key < problem_.topology_keys.size(); ++key) {
    std::map<std::string, uint32_t> number;
    for (Cell& cell : problem_.cells) {
      const std::string& value = cell.values[key];
      const auto next = static_cast<uint32_t>(number.size());
      cell.domains.push_back(value == "\n" ? kNoKey : number.try_emplace(value, next).first->second);
    }
  }
  for (std::vector<bool>& row : classes_in_cell_) row.assign(classes_.size(), false);
  for (size_t c = 0; c < request_.candidates.size(); ++c) {
    classes_in_cell_[cell_of_candidate_[c]][class_of_candidate_[c]] = true;
  }
  for (const FixedNode& fixed : problem_.fixed) classes_in_cell_[fixed.cell][fixed.node_class] = true;
}

void Compiler::AddFixedNodes() {
  for (FixedNode& fixed : problem_.fixed) {
    const placement::Node& node = request_.world.nodes[fixed.node];
    fixed_by_node_[node.id] = static_cast<uint32_t>(&fixed - problem_.fixed.data());
    fixed.free = CapacityOf(node.total, node.devices);
    for (size_t d = 0; d < problem_.dims(); ++d) {
      if (std::ranges::find(node.unlimited, problem_.dimensions[d]) != node.unlimited.end()) {
        fixed.free[d] = kUnlimited;
      }
    }
  }
}

// The units that stay: what they take, count and bar.
void Compiler::AddFixedUnits() {
  std::vector<model::Resources> taken;
  std::vector<int64_t> devices(problem_.fixed.size(), 0);
  for (const FixedNode& fixed : problem_.fixed) {
    const model::Resources& reserved = request_.world.nodes[fixed.node].reserved;
    taken.push_back(MUTANT("planner.reserved_forgotten") ? model::Resources() : reserved);
  }
  problem_.fixed_counts.assign(selectors_.size(), std::vector<int64_t>(problem_.cells.size(), 0));
  for (const placement::PlacedUnit& placed : request_.world.placed) {
    if (!kept_.Has(placed.node)) continue;
    const uint32_t at = fixed_by_node_.at(placed.node);
    const placement::Kind& kind = request_.world.kinds[placed.unit.kind.value()];
    if (auto sum = Add(taken[at], kind.request); sum) taken[at] = *std::move(sum);
    devices[at] += kind.devices.whole + (kind.devices.milli > 0 ? 1 : 0);
    AddFixedUnit(placed, problem_.fixed[at]);
  }
  for (const placement::PlacedUnit& resident : request_.residents) {
    if (MUTANT("planner.residents_forgotten")) break;
    if (kept_.Has(resident.node)) AddFixedUnit(resident, problem_.fixed[fixed_by_node_.at(resident.node)]);
  }
  for (size_t f = 0; f < problem_.fixed.size(); ++f) {
    for (size_t d = 0; d < problem_.dims(); ++d) {
      int64_t& free = problem_.fixed[f].free[d];
      if (free == kUnlimited) continue;
      const placement::Node& node = request_.world.nodes[problem_.fixed[f].node];
      if (problem_.dimensions[d] == kDeviceDimension) {
        // Before the division: a grain may be more than one device, and what is taken less than a grain.
        free = std::max<int64_t>(WholeDevices(node.devices) - devices[f], 0) * kDeviceParts / problem_.grains[d];
      } else {
        const std::string& name = problem_.dimensions[d];
        free = std::max<int64_t>(node.total.Get(name) - taken[f].Get(name), 0) / problem_.grains[d];
      }
    }
  }
}

// What rules between units see of a unit that stays.
void Compiler::AddFixedUnit(const placement::PlacedUnit& placed, FixedNode& fixed) {
  const uint32_t k = placed.unit.kind.value();
  const placement::Kind& kind = request_.world.kinds[k];
  for (const uint32_t selector : selectors_.MatchesOf(k)) {
    Count(fixed.tallies, selector, 1, kUnlimited);
    if (placed.terminating) Count(fixed.terminating, selector, 1, kUnlimited);
    ++problem_.fixed_counts[selector][fixed.cell];
  }
  for (const placement::HostPort& port : kind.ports) Count(fixed.tallies, selectors_.AddPort(port), 0, 1);
  for (const placement::SpreadConstraint& spread : kind.spread) {
    if (rules_ != RulesOf::kAll || !IsHard(spread) || spread.topology_key != kHostnameKey) continue;
    if (SelectorOf(kind, spread).nothing) continue;
    Count(fixed.tallies, selectors_.Add({SelectorOf(kind, spread)}), 0, std::max(spread.max_skew, 1));
  }
  for (const placement::UnitTerm& term : kind.exclude) {
    const uint32_t selector = selectors_.Add({SelectorOf(kind, term)});
    const Limit limit{.selector = selector, .most = selectors_.Matches(selector, k) ? 1 : 0};
    if (term.topology_key == kHostnameKey) {
      Count(fixed.tallies, selector, 0, limit.most);
    } else {
      problem_.fixed_domain_limits.push_back({.key = KeyOf(term.topology_key), .cell = fixed.cell, .limit = limit});
    }
  }
}

void Compiler::AddSpread(const placement::Kind& kind, const placement::SpreadConstraint& spread, DenseKind& dense) {
  const uint32_t selector = selectors_.Add({SelectorOf(kind, spread)});
  const int64_t skew = std::max(spread.max_skew, 1);
  if (spread.topology_key == kHostnameKey) {
    // A machine without any of them can always be bought: the least count over hosts is 0.
    dense.limits.push_back({.selector = selector, .most = skew, .both_ways = false});
    return;
  }
  std::vector<bool> cells;
  for (const std::vector<bool>& row : classes_in_cell_) {
    bool eligible = false;
    for (uint32_t c = 0; c < row.size() && !eligible; ++c) eligible = row[c] && classes_.Eligible(kind, spread, c);
    cells.push_back(eligible);
  }
  std::vector<bool> classes;
  for (uint32_t c = 0; c < classes_.size(); ++c) classes.push_back(classes_.Eligible(kind, spread, c));
  const auto intern = [](std::vector<std::vector<bool>>& sets, std::vector<bool> set) {
    const auto known = std::ranges::find(sets, set);
    const auto number = static_cast<uint32_t>(known - sets.begin());
    if (known == sets.end()) sets.push_back(std::move(set));
    return number;
  };
  dense.rules.push_back({.kind = DomainRuleKind::kSpread,
                         .key = KeyOf(spread.topology_key),
                         .selector = selector,
                         .most = skew,
                         .cells = intern(problem_.cell_sets, std::move(cells)),
                         .classes = intern(problem_.class_sets, std::move(classes)),
                         .min_domains = spread.min_domains});
}

void Compiler::AddNodeRules(const placement::Kind& kind, uint32_t k, DenseKind& dense) {
  for (const placement::SpreadConstraint& spread : kind.spread) {
    if (IsHard(spread) && !SelectorOf(kind, spread).nothing) AddSpread(kind, spread, dense);
  }
  for (const placement::UnitTerm& term : kind.exclude) {
    const uint32_t selector = selectors_.Add({SelectorOf(kind, term)});
    const int64_t most = selectors_.Matches(selector, k) ? 1 : 0;
    if (term.topology_key == kHostnameKey) {
      dense.limits.push_back({.selector = selector, .most = most});
    } else {
      dense.rules.push_back(
          {.kind = DomainRuleKind::kLimit, .key = KeyOf(term.topology_key), .selector = selector, .most = most});
    }
  }
  for (const placement::HostPort& port : kind.ports) {
    dense.limits.push_back({.selector = selectors_.AddPort(port), .most = 1});
  }
  if (kind.colocate.empty()) return;
  const uint32_t selector = selectors_.Add(ColocationOf(kind));
  for (const placement::UnitTerm& term : kind.colocate) {
    if (term.topology_key == kHostnameKey) {
      dense.near.push_back(selector);
    } else {
      dense.rules.push_back({.kind = DomainRuleKind::kNear, .key = KeyOf(term.topology_key), .selector = selector});
    }
  }
}

void Compiler::AddKinds() {
  std::map<std::vector<int64_t>, uint32_t> request_rows;
  std::map<std::tuple<uint32_t, uint32_t, std::vector<uint32_t>, std::vector<Limit>, std::vector<uint32_t>,
                      std::vector<DomainRule>>,
           uint32_t>
      known;
  std::vector<DenseKind> drafts;
  for (const uint32_t k : used_kinds_) {
    const placement::Kind& kind = request_.world.kinds[k];
    DenseKind& dense = drafts.emplace_back(DenseKind{.mask = classes_.MaskOf(k), .matches = selectors_.MatchesOf(k)});
    const auto [at, inserted] =
        request_rows.try_emplace(RequestOf(kind), static_cast<uint32_t>(problem_.requests.size()));
    if (inserted) problem_.requests.push_back(at->first);
    dense.request = at->second;
    AddNodeRules(kind, k, dense);
    std::ranges::sort(dense.limits);
    dense.limits.erase(std::ranges::unique(dense.limits).begin(), dense.limits.end());
    std::ranges::sort(dense.rules);
    std::ranges::sort(dense.near);
    dense.near.erase(std::ranges::unique(dense.near).begin(), dense.near.end());
  }
  for (size_t i = 0; i < drafts.size(); ++i) {
    DenseKind& draft = drafts[i];
    const auto [at, inserted] =
        known.try_emplace({draft.request, draft.mask, draft.matches, draft.limits, draft.near, draft.rules},
                          static_cast<uint32_t>(problem_.kinds.size()));
    if (inserted) problem_.kinds.push_back(std::move(draft));
    std::vector<uint32_t>& units = problem_.kinds[at->second].units;
    const std::vector<uint32_t>& more = units_of_kind_[used_kinds_[i]];
    units.insert(units.end(), more.begin(), more.end());
  }
  for (DenseKind& kind : problem_.kinds) std::ranges::sort(kind.units);
}

// Units that must be on the node of another of their own group go to one node all together, unless one of the group has
// a node already.
void Compiler::MergeBundles() {
  std::map<uint32_t, size_t> bundle_of;  // selector -> position in `kinds`
  std::vector<DenseKind> kinds;
  for (DenseKind& kind : problem_.kinds) {
    const auto self = std::ranges::find_if(
        kind.near, [&](uint32_t selector) { return std::ranges::binary_search(kind.matches, selector); });
    const bool placed = self != kind.near.end() && !problem_.fixed_counts.empty() &&
                        std::ranges::any_of(problem_.fixed_counts[*self], [](int64_t count) { return count > 0; });
    if (self == kind.near.end() || placed) {
      kinds.push_back(std::move(kind));
      continue;
    }
    const uint32_t selector = *self;
    std::vector<int64_t> sum = problem_.requests[kind.request];
    for (int64_t& amount : sum) amount *= static_cast<int64_t>(kind.units.size());
    const auto [at, inserted] = bundle_of.try_emplace(selector, kinds.size());
    if (inserted) {
      std::erase(kind.near, selector);
      kind.bundle = true;
      kinds.push_back(std::move(kind));
    } else {
      DenseKind& into = kinds[at->second];
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += problem_.requests[into.request][d];
      into.units.insert(into.units.end(), kind.units.begin(), kind.units.end());
      into.limits.insert(into.limits.end(), kind.limits.begin(), kind.limits.end());
      into.rules.insert(into.rules.end(), kind.rules.begin(), kind.rules.end());
      into.matches.insert(into.matches.end(), kind.matches.begin(), kind.matches.end());
      if (into.mask != kind.mask) {
        std::vector<bool> both = problem_.masks[into.mask];
        for (size_t c = 0; c < both.size(); ++c) both[c] = both[c] && problem_.masks[kind.mask][c];
        into.mask = static_cast<uint32_t>(problem_.masks.size());
        problem_.masks.push_back(std::move(both));
      }
    }
    kinds[at->second].request = static_cast<uint32_t>(problem_.requests.size());
    problem_.requests.push_back(std::move(sum));
  }
  for (DenseKind& kind : kinds) {
    std::ranges::sort(kind.units);
    std::ranges::sort(kind.matches);
    kind.matches.erase(std::ranges::unique(kind.matches).begin(), kind.matches.end());
  }
  problem_.kinds = std::move(kinds);
}

void Compiler::MarkDomainSelectors() {
  problem_.domain_selectors.assign(selectors_.size(), false);
  const auto mark = [&](const std::string& key, std::vector<placement::UnitSelector> all) {
    if (key != kHostnameKey) problem_.domain_selectors[selectors_.Add(std::move(all))] = true;
  };
  for (const std::vector<uint32_t>* kinds : {&used_kinds_, &staying_kinds_}) {
    for (const uint32_t k : *kinds) {
      const placement::Kind& kind = request_.world.kinds[k];
      for (const placement::SpreadConstraint& spread : kind.spread) {
        if (IsHard(spread)) mark(spread.topology_key, {SelectorOf(kind, spread)});
      }
      for (const placement::UnitTerm& term : kind.exclude) mark(term.topology_key, {SelectorOf(kind, term)});
      for (const placement::UnitTerm& term : kind.colocate) mark(term.topology_key, ColocationOf(kind));
    }
  }
}

void Compiler::AddStayingRules() {
  DenseKind dense;
  for (const uint32_t k : staying_kinds_) {
    const placement::Kind& kind = request_.world.kinds[k];
    for (const placement::SpreadConstraint& spread : kind.spread) {
      if (IsHard(spread) && !SelectorOf(kind, spread).nothing) AddSpread(kind, spread, dense);
    }
  }
  std::ranges::sort(dense.rules);
  dense.rules.erase(std::ranges::unique(dense.rules).begin(), dense.rules.end());
  problem_.staying_rules = std::move(dense.rules);
  problem_.staying_limits = std::move(dense.limits);
}

void Compiler::AddLooks() {
  std::map<std::string, uint32_t> known;
  for (uint32_t c = 0; c < classes_.size(); ++c) {
    const placement::Node& example = classes_.Example(c);
    const std::string look = codec::ToBytes(example.labels) + codec::ToBytes(example.taints);
    problem_.looks.push_back(known.try_emplace(look, static_cast<uint32_t>(known.size())).first->second);
  }
}

// Every candidate that is not dominated: no other of its cell and class is as large in every dimension and as cheap.
void Compiler::AddChoices() {
  struct Row {
    Choice choice;
    std::vector<int64_t> capacity;
  };
  std::vector<std::vector<Row>> rows(problem_.cells.size());
  for (size_t c = 0; c < request_.candidates.size(); ++c) {
    const Candidate& candidate = request_.candidates[c];
    rows[cell_of_candidate_[c]].push_back({.choice = {.candidate = static_cast<uint32_t>(c),
                                                      .node_class = class_of_candidate_[c],
                                                      .price = candidate.price.micros},
                                           .capacity = CapacityOf(candidate.allocatable, candidate.devices)});
  }
  for (size_t cell = 0; cell < rows.size(); ++cell) {
    // The cheapest first and, of one price, the largest first: what dominates comes before what it dominates.
    std::ranges::stable_sort(rows[cell], [](const Row& a, const Row& b) {
      return a.choice.price != b.choice.price ? a.choice.price < b.choice.price : a.capacity > b.capacity;
    });
    problem_.cells[cell].first_choice = static_cast<uint32_t>(problem_.choices.size());
    for (const Row& row : rows[cell]) {
      bool dominated = false;
      for (auto k = problem_.cells[cell].first_choice; k < problem_.choices.size() && !dominated; ++k) {
        if (problem_.choices[k].node_class != row.choice.node_class) continue;
        const auto other = problem_.CapacityOf(k);
        dominated = std::equal(other.begin(), other.end(), row.capacity.begin(), std::greater_equal<>());
      }
      if (dominated) continue;
      problem_.choices.push_back(row.choice);
      problem_.capacities.insert(problem_.capacities.end(), row.capacity.begin(), row.capacity.end());
    }
    problem_.cells[cell].end_choice = static_cast<uint32_t>(problem_.choices.size());
  }
}

}  // namespace muster::planner
