#include "placement/fast/placer.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/probe.h"
#include "placement/arithmetic.h"
#include "placement/fast/state.h"

namespace muster::placement::fast {
namespace {

// Label keys that units are spread, co-located or excluded over, without those that name single nodes.
std::vector<std::string> LeadingKeys(const World& world) {
  std::set<std::string> keys;
  for (const Kind& kind : world.kinds) {
    for (const SpreadConstraint& constraint : kind.spread) keys.insert(constraint.topology_key);
    for (const auto* terms : {&kind.colocate, &kind.exclude}) {
      for (const UnitTerm& term : *terms) keys.insert(term.topology_key);
    }
  }
  std::vector<std::string> leading;
  for (const std::string& key : keys) {
    std::set<std::string_view> values;
    for (const Node& node : world.nodes) {
      const auto it = node.labels.find(key);
      if (it != node.labels.end()) values.insert(it->second);
    }
    if (values.size() * kBlock <= world.nodes.size() * 2) leading.push_back(key);
  }
  return leading;
}

}  // namespace

Placer::Placer(Policy policy) : state_(std::make_unique<State>(std::move(policy))) {}
Placer::~Placer() = default;
Placer::Placer(Placer&&) noexcept = default;
Placer& Placer::operator=(Placer&&) noexcept = default;

void Placer::Load(const World& world) {
  state_ = std::make_unique<State>(state_->policy);
  State& state = *state_;
  state.nodes.Load(world.nodes, LeadingKeys(world));
  state.GrowRows();
  for (const auto& [id, row] : state.nodes.by_id()) {
    state.free_devices[row] = state.nodes.node(row).devices;
    state.any_devices = state.any_devices || !state.free_devices[row].empty();
  }
  for (const Kind& kind : world.kinds) state.NumberKind(kind, KindIndex::Of(state.kinds.size()));
  state.namespaces = world.namespaces;
  for (const Budget& budget : world.budgets) state.budgets[budget.id] = budget.allowed;
  for (const PlacedUnit& placed : world.placed) AddUnit(placed);
  state.quotas = world.quotas;
  state.CountQuotaUse();
}

KindIndex Placer::AddKind(const Kind& kind) { return state_->AddKind(kind); }

void Placer::ForgetKinds() { state_->ForgetKinds(); }

const Kind& Placer::KindAt(KindIndex kind) const { return state_->kinds.at(kind.value()); }

void Placer::State::GrowRows() {
  free_devices.resize(nodes.rows());
  units_on.resize(nodes.rows());
  row_change.resize(nodes.rows(), changes);
}

void Placer::State::UpsertNode(const Node& node) {
  Position row = nodes.Find(node.id);
  bool changed = true;
  if (row == kNoValue) {
    row = nodes.Add(node);
    GrowRows();
  } else {
    changed = nodes.Update(row, node);
  }
  free_devices[row] = node.devices;
  for (const UnitSlot slot : units_on[row]) {
    const UnitRow& unit = units[slot.value()];
    TakeDevices(free_devices[row], node.devices, kinds[unit.unit.kind.value()].devices, unit.devices, 1);
  }
  changed = changed || (!node.devices.empty() && !any_devices);
  any_devices = any_devices || !node.devices.empty();
  if (changed) Invalidate();
  Changed(row);
}

void Placer::UpsertNode(const Node& node) { state_->UpsertNode(node); }

bool Placer::RemoveNode(std::string_view id) {
  const Position row = state_->nodes.Find(id);
  if (row == kNoValue) return false;
  while (!state_->units_on[row].empty()) state_->RemoveUnit(state_->units_on[row].back());
  state_->nodes.Remove(row);
  state_->free_devices[row].clear();
  state_->Invalidate();
  return true;
}

void Placer::AddUnit(const PlacedUnit& placed) {
  State& state = *state_;
  const Position row = state.nodes.Find(placed.node);
  MUSTER_CHECK(row != kNoValue, "unit {}: there is no node {}", placed.unit.id, placed.node);
  MUSTER_CHECK(placed.unit.kind.value() < state.kinds.size(), "unit {}: there is no such kind", placed.unit.id);
  std::vector<int32_t> devices = placed.devices;
  const DeviceRequest& request = state.kinds[placed.unit.kind.value()].devices;
  if (devices.empty() && !request.empty()) {
    devices =
        ChooseDevices(state.free_devices[row], state.nodes.node(row).devices, request).value_or(std::vector{kNoDevice});
  }
  const UnitSlot slot = state.AddUnit(placed.unit, row, std::move(devices));
  UnitRow& unit = state.units[slot.value()];
  unit.terminating = placed.terminating;
  unit.budgets = placed.budgets;
  unit.may_evict = placed.may_evict;
  state.Enter(slot);
}

bool Placer::RemoveUnit(std::string_view id) {
  const auto it = state_->slot_of.find(std::string(id));
  if (it == state_->slot_of.end()) return false;
  state_->RemoveUnit(it->second);
  return true;
}

void Placer::SetNamespace(const std::string& name, const model::TextMap& labels) {
  state_->namespaces[name] = labels;
  state_->Invalidate();
}

void Placer::SetBudget(const Budget& budget) {
  state_->budgets[budget.id] = budget.allowed;
  ++state_->changes;
}

void Placer::SetQuota(const std::string& tenant, const model::Resources& limit) {
  const bool first = state_->quotas.empty();
  state_->quotas[tenant] = limit;
  if (first) state_->CountQuotaUse();
  ++state_->changes;
}

void Placer::RemoveQuota(const std::string& tenant) {
  state_->quotas.erase(tenant);
  if (state_->quotas.empty()) state_->quota_used.clear();
  ++state_->changes;
}

Outcome Placer::State::Refuse(const Unit& unit, bool quota_ok) {
  KindRow& kind = kind_rows[unit.kind.value()];
  if (kind.refused_at != changes) {
    kind.refusals = CountRefusals(unit.kind, quota_ok);
    kind.refused_at = changes;
  }
  return {.unit = unit.id, .reason = quota_ok ? Reason::kNoNodeFits : Reason::kQuota, .refusals = kind.refusals};
}

Outcome Placer::State::PlaceOne(const Unit& unit) {
  Compile(unit.kind);
  const bool quota_ok = !OverQuota(unit.kind) || MUTANT("placement.quota_ignored");
  // Nothing has changed since an equal unit was refused.
  const bool known = kind_rows[unit.kind.value()].refused_at == changes;
  Position row = quota_ok && !known ? Choose(unit.kind) : kNoValue;
  Outcome outcome{.unit = unit.id, .reason = Reason::kPlaced};
  if (row == kNoValue) {
    if (!quota_ok || known || !policy.preempt || !kinds[unit.kind.value()].may_preempt) return Refuse(unit, quota_ok);
    const Preemption preemption = FindPreemption(unit.kind);
    if (preemption.row == kNoValue) return Refuse(unit, quota_ok);
    row = preemption.row;
    outcome.reason = Reason::kPlacedByPreemption;
    for (const UnitSlot victim : preemption.victims) {
      outcome.victims.push_back(units[victim.value()].unit.id);
      for (const std::string& id : units[victim.value()].budgets) --budgets[id];
      RemoveUnit(victim);
    }
    std::ranges::sort(outcome.victims);
  }
  const DeviceRequest& request = kinds[unit.kind.value()].devices;
  if (!request.empty()) outcome.devices = *ChooseDevices(free_devices[row], nodes.node(row).devices, request);
  outcome.node = nodes.node(row).id;
  Enter(AddUnit(unit, row, outcome.devices));
  return outcome;
}

std::vector<Outcome> Placer::Place(std::span<const Unit> units) {
  State& state = *state_;
  const auto before = [&](const Unit& a, const Unit& b) {
    return ServedBefore(state.kinds[a.kind.value()], a, state.kinds[b.kind.value()], b);
  };
  std::vector<Outcome> outcomes(units.size());
  if (std::ranges::is_sorted(units, before)) {
    for (size_t i = 0; i < units.size(); ++i) outcomes[i] = state.PlaceOne(units[i]);
    return outcomes;
  }
  std::vector<uint32_t> order(units.size());
  std::iota(order.begin(), order.end(), 0U);
  if (!MUTANT("placement.batch_order")) {
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return before(units[a], units[b]); });
  }
  for (const uint32_t i : order) outcomes[i] = state.PlaceOne(units[i]);
  return outcomes;
}

std::vector<NodeVerdict> Placer::Feasible(KindIndex kind) {
  State& state = *state_;
  state.Compile(kind);
  const bool quota_ok = !state.OverQuota(kind);
  std::vector<NodeVerdict> verdicts;
  for (const auto& [id, row] : state.nodes.by_id()) {
    const Reason reason = state.FirstRefusal(kind, row, quota_ok);
    verdicts.push_back({id, reason, state.DetailOf(kind, row, reason)});
  }
  return verdicts;
}

size_t Placer::nodes() const { return state_->nodes.size(); }

size_t Placer::kinds() const { return state_->kinds.size() - state_->free_kinds.size(); }

size_t Placer::units() const { return state_->slot_of.size(); }

std::vector<PlacedUnit> Placer::Placed() const {
  std::vector<PlacedUnit> placed;
  for (const UnitRow& unit : state_->units) {
    if (!unit.in_use) continue;
    placed.push_back({.unit = unit.unit,
                      .node = state_->nodes.node(unit.row).id,
                      .devices = unit.devices,
                      .terminating = unit.terminating,
                      .budgets = unit.budgets,
                      .may_evict = unit.may_evict});
  }
  std::ranges::sort(placed, {}, [](const PlacedUnit& unit) { return std::string_view(unit.unit.id); });
  return placed;
}

void Placer::CheckInvariants() const { state_->CheckInvariants(); }

}  // namespace muster::placement::fast
