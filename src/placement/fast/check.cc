#include <algorithm>
#include <array>

#include "base/probe.h"
#include "placement/detail.h"
#include "placement/fast/state.h"

namespace muster::placement::fast {
namespace {

std::string_view ValueAt(const LabelColumn& column, Position row) {
  return column.texts.Text(Index<struct ValueTag>(column.value[row]));
}

int64_t Least(const SpreadRow& spread, const Counter& counter) {
  if (MUTANT("placement.min_domains")) return counter.least;
  return counter.values >= spread.min_domains && counter.values > 0 ? counter.least : 0;
}

bool SkewAllows(const SpreadRow& spread, const Counter& counter, Position row) {
  const int64_t self = MUTANT("placement.self_match") ? 1 : spread.self;
  return counter.At(row) + self - Least(spread, counter) <= spread.max_skew;
}

}  // namespace

bool Placer::State::Fits(const KindRow& kind, Position row) const {
  return std::ranges::all_of(kind.request,
                             [&](const Amount& amount) { return amount.milli <= nodes.left(row, amount.dim); });
}

bool Placer::State::PortsFree(const Kind& kind, Position row) const {
  if (kind.ports.empty()) return true;
  return std::ranges::none_of(units_on[row], [&](UnitSlot slot) {
    const UnitRow& unit = units[slot.value()];
    if (unit.lifted) return false;
    return std::ranges::any_of(kinds[unit.unit.kind.value()].ports, [&](const HostPort& held) {
      return std::ranges::any_of(kind.ports, [&](const HostPort& port) { return Conflicts(port, held); });
    });
  });
}

bool Placer::State::HardSpreadAllows(const KindRow& kind, Position row) const {
  for (const LabelColumn* column : kind.hard_keys) {
    if (column->value[row] == kNoValue) return false;
  }
  return std::ranges::all_of(
      kind.spread, [&](const SpreadRow& spread) { return SkewAllows(spread, counters[spread.counter.value()], row); });
}

Reason Placer::State::CheckRest(KindIndex index, Position row) const {
  const Kind& kind = kinds[index.value()];
  const KindRow& compiled = kind_rows[index.value()];
  if (!kind.devices.empty() && !DevicesFit(free_devices[row], nodes.node(row).devices, kind.devices)) {
    return Reason::kDevice;
  }
  if (!PortsFree(kind, row)) return Reason::kPort;
  return CheckUnits(compiled, row);
}

Reason Placer::State::CheckUnits(const KindRow& kind, Position row) const {
  for (const LabelColumn* column : kind.hard_keys) {
    if (column->value[row] == kNoValue) return Reason::kSpreadKey;
  }
  if (!HardSpreadAllows(kind, row)) return Reason::kSpreadSkew;
  bool here = true;
  int64_t anywhere = 0;
  for (const CounterIndex i : kind.colocate) {
    const Counter& counter = counters[i.value()];
    if (counter.column->value[row] == kNoValue) return Reason::kColocateKey;
    here = here && counter.At(row) > 0;
    anywhere += counter.total;
  }
  if (!here && !(anywhere == 0 && kind.colocates_itself && !MUTANT("placement.first_of_group"))) {
    return Reason::kColocateNone;
  }
  for (const CounterIndex i : kind.exclude) {
    if (counters[i.value()].At(row) > 0) return Reason::kExcludes;
  }
  for (const CounterIndex i : kind.excluded_by) {
    if (counters[i.value()].At(row) > 0 && !MUTANT("placement.not_symmetric")) return Reason::kExcluded;
  }
  return Reason::kNone;
}

std::optional<std::pair<std::string, int64_t>> Placer::State::OverQuota(KindIndex index) const {
  const Kind& kind = kinds[index.value()];
  const auto quota = quotas.find(kind.tenant);
  if (quota == quotas.end()) return std::nullopt;
  const auto used = quota_used.find(kind.tenant);
  for (const auto& [name, limit] : quota->second.entries()) {
    const int64_t asked = kind_rows[index.value()].quota_use.Get(name);
    if (asked == 0) continue;
    int64_t sum = asked;
    if (used != quota_used.end()) {
      if (const auto it = used->second.find(name); it != used->second.end()) sum += it->second;
    }
    if (sum > limit) return std::pair(name, sum - limit);
  }
  return std::nullopt;
}

Reason Placer::State::FirstRefusal(KindIndex index, Position row, bool quota_ok) const {
  const Kind& kind = kinds[index.value()];
  const KindRow& compiled = kind_rows[index.value()];
  const StaticMask& mask = masks[compiled.mask.value()];
  const Node& facts = nodes.classes()[nodes.class_of(row)];
  if (!facts.ready) return Reason::kNotReady;
  if (!facts.fresh) return Reason::kStale;
  if (!mask.affinity.Test(row)) return Reason::kLabels;
  if (!SupportsType(facts, kind.type)) return Reason::kType;
  for (const Amount& amount : compiled.request) {
    if (amount.milli > nodes.left(row, amount.dim)) return amount.reason;
  }
  const Reason rest = CheckRest(index, row);
  if (rest == Reason::kDevice || rest == Reason::kPort) return rest;
  if (!PassesCordon(kind, facts)) return Reason::kCordoned;
  if (!mask.tolerated.Test(row)) return Reason::kTaint;
  if (rest != Reason::kNone) return rest;
  return quota_ok ? Reason::kNone : Reason::kQuota;
}

std::vector<RefusalCount> Placer::State::CountRefusals(KindIndex kind, bool quota_ok) const {
  std::array<int64_t, static_cast<size_t>(Reason::kNoNodeFits) + 1> counts{};
  nodes.in_use().ForEach(
      [&](size_t row) { ++counts[static_cast<size_t>(FirstRefusal(kind, static_cast<Position>(row), quota_ok))]; });
  std::vector<RefusalCount> rows;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) rows.push_back({static_cast<Reason>(i), counts[i]});
  }
  return rows;
}

std::string Placer::State::DetailOf(KindIndex index, Position row, Reason reason) const {
  const Kind& kind = kinds[index.value()];
  const KindRow& compiled = kind_rows[index.value()];
  const Node& node = nodes.node(row);
  switch (reason) {
    case Reason::kLabels: return LabelsDetail(kind, node);
    case Reason::kType: return TypeDetail(kind.type);
    case Reason::kCpu:
    case Reason::kMemory:
    case Reason::kDisk:
    case Reason::kResource: return FitDetail(index, row);
    case Reason::kDevice: return DeviceDetail(kind.devices, free_devices[row], node.devices);
    case Reason::kPort: return HeldPortDetail(kind, row);
    case Reason::kTaint: return TaintDetail(*UntoleratedTaint(kind, node));
    case Reason::kSpreadKey:
    case Reason::kSpreadSkew: return SpreadDetail(kind, compiled, row);
    case Reason::kColocateKey:
    case Reason::kColocateNone: return ColocateDetailAt(kind, compiled, row, reason);
    case Reason::kExcludes:
      for (size_t i = 0; i < compiled.exclude.size(); ++i) {
        const Counter& counter = counters[compiled.exclude[i].value()];
        if (counter.At(row) > 0) return ExcludeDetail(kind.exclude[i], ValueAt(*counter.column, row));
      }
      return {};
    case Reason::kQuota: {
      const auto over = OverQuota(index);
      return over ? QuotaDetail(kind.tenant, over->first, over->second) : std::string();
    }
    default: return {};
  }
}

std::string Placer::State::FitDetail(KindIndex index, Position row) const {
  const std::vector<Amount>& request = kind_rows[index.value()].request;
  for (const Amount& amount : request) {
    const int64_t left = nodes.left(row, amount.dim);
    if (amount.milli > left) return ShortDetail(nodes.DimName(amount.dim), amount.milli, left);
  }
  return {};
}

std::string Placer::State::HeldPortDetail(const Kind& kind, Position row) const {
  for (const HostPort& port : kind.ports) {
    const std::string* holder = nullptr;
    for (const UnitSlot slot : units_on[row]) {
      const UnitRow& unit = units[slot.value()];
      const bool held = std::ranges::any_of(kinds[unit.unit.kind.value()].ports,
                                            [&](const HostPort& other) { return Conflicts(port, other); });
      if (held && (holder == nullptr || unit.unit.id < *holder)) holder = &unit.unit.id;
    }
    if (holder != nullptr) return PortDetail(port, *holder);
  }
  return {};
}

std::string Placer::State::SpreadDetail(const Kind& kind, const KindRow& compiled, Position row) const {
  size_t hard = 0;
  for (const SpreadConstraint& constraint : kind.spread) {
    if (constraint.when != model::WhenUnsatisfiable::kDoNotSchedule) continue;
    if (compiled.hard_keys[hard++]->value[row] == kNoValue) return MissingKeyDetail(constraint.topology_key);
  }
  for (const SpreadRow& spread : compiled.spread) {
    const Counter& counter = counters[spread.counter.value()];
    if (SkewAllows(spread, counter, row)) continue;
    return SkewDetail(spread.constraint->topology_key, ValueAt(*counter.column, row), counter.At(row),
                      Least(spread, counter), static_cast<int32_t>(spread.max_skew));
  }
  return {};
}

std::string Placer::State::ColocateDetailAt(const Kind& kind, const KindRow& compiled, Position row,
                                            Reason reason) const {
  for (size_t i = 0; i < compiled.colocate.size(); ++i) {
    const Counter& counter = counters[compiled.colocate[i].value()];
    const bool lacks_key = counter.column->value[row] == kNoValue;
    if (reason == Reason::kColocateKey && lacks_key) return MissingKeyDetail(kind.colocate[i].topology_key);
    if (reason == Reason::kColocateNone && counter.At(row) == 0) {
      return ColocateDetail(kind.colocate[i], ValueAt(*counter.column, row));
    }
  }
  return {};
}

}  // namespace muster::placement::fast
