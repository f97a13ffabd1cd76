#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "base/probe.h"
#include "placement/arithmetic.h"
#include "placement/fast/state.h"

namespace muster::placement::fast {
namespace {

// By class of node: whether it passes.
template <class Judge>
Bitmap PassingClasses(const NodeTable& nodes, Judge judge) {
  std::vector<uint8_t> passes;
  for (const Node& node : nodes.classes()) passes.push_back(judge(node));
  Bitmap bits(nodes.rows());
  nodes.in_use().ForEach([&](size_t row) {
    if (passes[nodes.class_of(static_cast<Position>(row))] != 0) bits.Set(row);
  });
  return bits;
}

// What decides a mask, as bytes.
std::string AffinityKey(const Kind& kind) {
  return codec::ToBytes(kind.requirements) + codec::ToBytes(kind.node_terms);
}
std::string TaintKey(const Kind& kind) { return codec::ToBytes(kind.tolerations); }

bool IsHard(const SpreadConstraint& constraint) { return constraint.when == model::WhenUnsatisfiable::kDoNotSchedule; }

}  // namespace

// Judged once for each value of the label.
const Bitmap& Placer::State::Passing(const model::Requirement& requirement) {
  const auto [it, added] = passing.try_emplace(requirement, nodes.rows());
  if (!added) return it->second;
  const LabelColumn& column = nodes.Column(requirement.key);
  const bool without = model::Matches(requirement, std::nullopt);
  std::vector<uint8_t> passes(column.texts.size());
  for (size_t i = 0; i < passes.size(); ++i) {
    passes[i] = model::Matches(requirement, column.texts.Text(Index<struct ValueTag>::Of(i)));
  }
  nodes.in_use().ForEach([&](size_t row) {
    const uint32_t value = column.value[row];
    if (value == kNoValue ? without : passes[value] != 0) it->second.Set(row);
  });
  return it->second;
}

Bitmap Placer::State::PassingAll(const std::vector<model::Requirement>& requirements) {
  Bitmap bits = nodes.in_use();
  for (const model::Requirement& requirement : requirements) bits.And(Passing(requirement));
  return bits;
}

Bitmap Placer::State::PassingTerm(const NodeTerm& term) {
  if (term.labels.empty() && term.fields.empty()) return Bitmap(nodes.rows());
  Bitmap bits = PassingAll(term.labels);
  if (term.fields.empty()) return bits;
  Bitmap both(nodes.rows());
  bits.ForEach([&](size_t row) {
    if (MatchesTerm({.labels = {}, .fields = term.fields}, nodes.node(static_cast<Position>(row)))) both.Set(row);
  });
  return both;
}

void Placer::State::NumberKind(const Kind& kind, KindIndex index) {
  if (index.value() == kinds.size()) {
    kinds.emplace_back();
    kind_rows.emplace_back();
  }
  kinds[index.value()] = kind;
  KindRow& row = kind_rows[index.value()];
  IndexKind(index);
  for (const auto& [name, milli] : InFitOrder(kind.request)) {
    row.request.push_back({.dim = nodes.Dim(name), .milli = milli, .reason = FitReason(name)});
  }
  row.quota_use = QuotaUse(kind);
  counters_by_label.Candidates(kind.labels, [&](CounterIndex i) {
    if (Feeds(counters[i.value()], kind)) Derived(index).feeds.push_back(i);
  });
  holders_by_label.Candidates(kind.labels, [&](CounterIndex i) {
    if (Matches(counters[i.value()].spec.selectors.front(), kind, namespaces)) Derived(index).excluded_by.push_back(i);
  });
  if (holders_known) AddHolders(index);
}

void Placer::State::IndexKind(KindIndex index) {
  const Kind& kind = kinds[index.value()];
  kinds_by_label.Add(kind, index);
  if (!kind.exclude.empty()) excluding.push_back(index);
}

KindIndex Placer::State::AddKind(const Kind& kind) {
  for (; kinds_indexed < kinds.size(); ++kinds_indexed) {
    kind_index.emplace(codec::ToBytes(kinds[kinds_indexed]), KindIndex::Of(kinds_indexed));
  }
  const KindIndex next = free_kinds.empty() ? KindIndex::Of(kinds.size()) : free_kinds.back();
  const auto [it, added] = kind_index.emplace(codec::ToBytes(kind), next);
  if (!added) return it->second;
  if (free_kinds.empty()) {
    ++kinds_indexed;
  } else {
    free_kinds.pop_back();
  }
  NumberKind(kind, next);
  return next;
}

void Placer::State::ForgetKinds() {
  Invalidate();
  std::vector<uint8_t> used(kinds.size());
  for (const UnitRow& unit : units) {
    if (unit.in_use) used[unit.unit.kind.value()] = 1;
  }
  if (!MUTANT("placement.stale_kind")) kind_index.clear();
  kinds_by_label = {};
  excluding.clear();
  free_kinds.clear();
  for (size_t i = 0; i < kinds.size(); ++i) {
    const KindIndex index = KindIndex::Of(i);
    if (used[i] != 0) {
      kind_index.emplace(codec::ToBytes(kinds[i]), index);
      IndexKind(index);
    } else {
      kinds[i] = {};
      kind_rows[i] = {};
      free_kinds.push_back(index);
    }
  }
  kinds_indexed = kinds.size();
}

void Placer::State::Invalidate() {
  passing.clear();
  if (!MUTANT("placement.keep_masks")) {
    masks.clear();
    mask_index.clear();
  }
  counters.clear();
  counter_index.clear();
  counters_by_label.clear();
  holders_by_label.clear();
  holders_known = false;
  for (const KindIndex kind : std::exchange(derived, {})) {
    KindRow& row = kind_rows[kind.value()];
    row.has_derived = false;
    row.compiled = false;
    row.feeds.clear();
    row.excluded_by.clear();
  }
  ++changes;  // no refusal is known any more
}

KindRow& Placer::State::Derived(KindIndex kind) {
  KindRow& row = kind_rows[kind.value()];
  if (!std::exchange(row.has_derived, true)) derived.push_back(kind);
  return row;
}

bool Placer::State::Feeds(const Counter& counter, const Kind& kind) const {
  return std::ranges::all_of(counter.spec.selectors,
                             [&](const UnitSelector& selector) { return Matches(selector, kind, namespaces); });
}

StaticIndex Placer::State::MaskFor(const Kind& kind) {
  const std::string key = AffinityKey(kind) + TaintKey(kind) + codec::ToBytes(kind.type);
  const auto [it, added] = mask_index.emplace(key, StaticIndex::Of(masks.size()));
  if (!added) return it->second;
  StaticMask& mask = masks.emplace_back();
  mask.affinity = PassingAll(kind.requirements);
  if (!kind.node_terms.empty()) {
    Bitmap any(nodes.rows());
    for (const NodeTerm& term : kind.node_terms) any.Or(PassingTerm(term));
    mask.affinity.And(any);
  }
  mask.tolerated = PassingClasses(nodes, [&](const Node& node) { return UntoleratedTaint(kind, node) == nullptr; });
  mask.all = PassingClasses(nodes, [&](const Node& node) {
    return node.ready && (node.fresh || MUTANT("placement.stale_passes")) && SupportsType(node, kind.type) &&
           PassesCordon(kind, node);
  });
  mask.all.And(mask.affinity);
  mask.all.And(mask.tolerated);
  return it->second;
}

CounterIndex Placer::State::CounterFor(CounterSpec spec) {
  return CounterFor(std::move(spec), [&] { return nodes.in_use(); });
}

CounterIndex Placer::State::CounterFor(CounterSpec spec, const std::function<Bitmap()>& eligible) {
  const auto [it, added] = counter_index.emplace(std::move(spec), CounterIndex::Of(counters.size()));
  const CounterIndex index = it->second;
  if (!added) return index;
  Counter& counter = counters.emplace_back();
  counter.spec = it->first;
  counter.column = &nodes.Column(counter.spec.key);
  counter.eligible = eligible();
  counter.count.resize(counter.column->texts.size());
  counter.support.resize(counter.column->texts.size());
  nodes.in_use().ForEach([&](size_t row) {
    if (counter.column->value[row] == kNoValue) counter.eligible.Clear(row);
  });
  counter.eligible.ForEach([&](size_t row) { ++counter.support[counter.column->value[row]]; });
  counter.values = std::ranges::count_if(counter.support, [](int64_t nodes_there) { return nodes_there > 0; });
  counter.domains = {counter.values};
  std::vector<uint8_t> feeds(kinds.size());
  const auto feed = [&](KindIndex kind) {
    if (feeds[kind.value()] != 0) return;
    feeds[kind.value()] = 1;
    Derived(kind).feeds.push_back(index);
  };
  const UnitSelector& first = counter.spec.selectors.front();
  if (counter.spec.holders) {
    holders_by_label.Add(first.labels, index);
    kinds_by_label.Candidates(first.labels, [&](KindIndex kind) {
      if (!Matches(first, kinds[kind.value()], namespaces)) return;
      std::vector<CounterIndex>& by = Derived(kind).excluded_by;
      if (std::ranges::find(by, index) == by.end()) by.push_back(index);
    });
    for (const KindIndex kind : excluding) {
      for (const UnitTerm& term : kinds[kind.value()].exclude) {
        if (term.topology_key == counter.spec.key && SelectorOf(kinds[kind.value()], term) == first) feed(kind);
      }
    }
  } else {
    counters_by_label.Add(first.labels, index);
    kinds_by_label.Candidates(first.labels, [&](KindIndex kind) {
      if (Feeds(counter, kinds[kind.value()])) feed(kind);
    });
  }
  for (const UnitRow& unit : units) {
    if (!unit.in_use || unit.lifted || feeds[unit.unit.kind.value()] == 0) continue;
    if (!unit.terminating || !counter.spec.skip_terminating) counter.Add(unit.row, 1);
  }
  return index;
}

// Counters of the units that hold this kind's exclusion terms.
void Placer::State::AddHolders(KindIndex index) {
  const Kind& kind = kinds[index.value()];
  for (const UnitTerm& term : kind.exclude) {
    const size_t before = counters.size();
    const CounterIndex counter =
        CounterFor({.holders = true, .selectors = {SelectorOf(kind, term)}, .key = term.topology_key});
    std::vector<CounterIndex>& feeds = Derived(index).feeds;
    // One that was there before does not know this kind yet.
    if (before == counters.size() && std::ranges::find(feeds, counter) == feeds.end()) feeds.push_back(counter);
  }
}

std::vector<UnitSelector> Placer::State::ColocateSelectors(const Kind& kind) const {
  std::vector<UnitSelector> selectors;
  for (const UnitTerm& term : kind.colocate) selectors.push_back(SelectorOf(kind, term));
  return selectors;
}

void Placer::State::Compile(KindIndex index) {
  if (kind_rows[index.value()].compiled) return;
  KindRow& row = Derived(index);
  if (!holders_known) {
    holders_known = true;
    for (const KindIndex kind : excluding) AddHolders(kind);
  }
  const Kind& kind = kinds[index.value()];
  row.mask = MaskFor(kind);
  CompileSpread(kind, row);
  CompileUnits(kind, row);
  CompilePreferences(kind, row);
  row.compiled = true;
}

Bitmap Placer::State::EligibleFor(const SpreadConstraint& constraint, const std::set<std::string>& keys,
                                  const StaticMask& mask) {
  Bitmap eligible = nodes.in_use();
  for (const std::string& key : keys) {
    eligible.And(Passing({.key = key, .op = model::Operator::kExists, .values = {}}));
  }
  const bool affinity = constraint.node_affinity == NodeInclusion::kHonor;
  if (affinity && !MUTANT("placement.affinity_policy")) eligible.And(mask.affinity);
  if (constraint.node_taints == NodeInclusion::kHonor) eligible.And(mask.tolerated);
  return eligible;
}

void Placer::State::CompileSpread(const Kind& kind, KindRow& row) {
  row.spread.clear();
  row.soft_spread.clear();
  row.hard_keys.clear();
  std::set<std::string> keys;
  for (const SpreadConstraint& constraint : kind.spread) {
    if (!IsHard(constraint)) continue;
    keys.insert(constraint.topology_key);
    row.hard_keys.push_back(&nodes.Column(constraint.topology_key));
  }
  const StaticMask& mask = masks[row.mask.value()];
  for (const SpreadConstraint& constraint : kind.spread) {
    const bool hard = IsHard(constraint);
    const bool affinity = constraint.node_affinity == NodeInclusion::kHonor;
    const bool taints = constraint.node_taints == NodeInclusion::kHonor;
    std::set<std::string> needed = keys;
    if (!hard) needed = {constraint.topology_key};
    CounterSpec spec{.holders = false,
                     .selectors = {SelectorOf(kind, constraint)},
                     .key = constraint.topology_key,
                     .skip_terminating = !MUTANT("placement.terminating_counts"),
                     .eligible = codec::ToBytes(needed) + (affinity ? "a" + AffinityKey(kind) : "-") +
                                 (taints ? "t" + TaintKey(kind) : "-")};
    SpreadRow out{.counter = {}, .max_skew = std::max(1, constraint.max_skew), .min_domains = constraint.min_domains};
    out.self = Matches(spec.selectors.front(), kind, namespaces) ? 1 : 0;
    out.counter = CounterFor(std::move(spec), [&] { return EligibleFor(constraint, needed, mask); });
    out.constraint = &constraint;
    (hard ? row.spread : row.soft_spread).push_back(out);
  }
}

void Placer::State::CompileUnits(const Kind& kind, KindRow& row) {
  row.colocate.clear();
  row.exclude.clear();
  const std::vector<UnitSelector> all = ColocateSelectors(kind);
  for (const UnitTerm& term : kind.colocate) {
    row.colocate.push_back(CounterFor({.holders = false, .selectors = all, .key = term.topology_key}));
  }
  row.colocates_itself =
      std::ranges::all_of(all, [&](const UnitSelector& selector) { return Matches(selector, kind, namespaces); });
  for (const UnitTerm& term : kind.exclude) {
    row.exclude.push_back(
        CounterFor({.holders = false, .selectors = {SelectorOf(kind, term)}, .key = term.topology_key}));
  }
}

void Placer::State::CompilePreferences(const Kind& kind, KindRow& row) {
  row.soft_units.clear();
  row.avoided.clear();
  row.node_weight.clear();
  const auto add = [&](const PreferredUnitTerm& preferred, int64_t sign) {
    const CounterIndex counter = CounterFor(
        {.holders = false, .selectors = {SelectorOf(kind, preferred.term)}, .key = preferred.term.topology_key});
    row.soft_units.push_back({.counter = counter, .weight = sign * preferred.weight});
  };
  for (const PreferredUnitTerm& preferred : kind.preferred_colocate) add(preferred, 1);
  for (const PreferredUnitTerm& preferred : kind.preferred_exclude) add(preferred, -1);
  std::vector<int32_t> by_class;
  for (const Node& node : nodes.classes()) by_class.push_back(static_cast<int32_t>(AvoidedTaints(kind, node)));
  if (std::ranges::any_of(by_class, [](int32_t avoided) { return avoided > 0; })) {
    row.avoided.resize(nodes.rows());
    nodes.in_use().ForEach(
        [&](size_t node) { row.avoided[node] = by_class[nodes.class_of(static_cast<Position>(node))]; });
  }
  if (!kind.preferred_nodes.empty()) {
    row.node_weight.resize(nodes.rows());
    for (const PreferredNodeTerm& preferred : kind.preferred_nodes) {
      PassingTerm(preferred.term).ForEach([&](size_t node) { row.node_weight[node] += preferred.weight; });
    }
  }
  row.ranked = !row.soft_units.empty() || !row.soft_spread.empty() || !row.avoided.empty() ||
               !row.node_weight.empty() || any_devices;
}

}  // namespace muster::placement::fast
