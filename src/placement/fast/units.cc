#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "placement/fast/state.h"

namespace muster::placement::fast {

void Placer::State::Shift(const UnitRow& unit, int sign) {
  const KindRow& row = kind_rows[unit.unit.kind.value()];
  const Kind& kind = kinds[unit.unit.kind.value()];
  for (const Amount& amount : row.request) nodes.Shift(unit.row, amount.dim, sign * amount.milli);
  if (!unit.devices.empty()) {
    TakeDevices(free_devices[unit.row], nodes.node(unit.row).devices, kind.devices, unit.devices, sign);
  }
  for (const CounterIndex i : row.feeds) {
    Counter& counter = counters[i.value()];
    if (!unit.terminating || !counter.spec.skip_terminating) counter.Add(unit.row, sign);
  }
}

UnitSlot Placer::State::AddUnit(Unit unit, Position row, std::vector<int32_t> devices) {
  UnitSlot slot;
  if (free_slots.empty()) {
    slot = UnitSlot::Of(units.size());
    units.emplace_back();
  } else {
    slot = free_slots.back();
    free_slots.pop_back();
  }
  MUSTER_CHECK(slot_of.emplace(unit.id, slot).second, "unit {} is placed already", unit.id);
  UnitRow& added = units[slot.value()];
  added = {.unit = std::move(unit), .row = row, .devices = std::move(devices), .in_use = true};
  units_on[row].push_back(slot);
  return slot;
}

// Its room, its share of the quota and its place in the counters.
void Placer::State::Enter(UnitSlot slot) {
  const UnitRow& unit = units[slot.value()];
  Shift(unit, 1);
  AddQuotaUse(unit.unit.kind, 1);
  nodes.Settle(unit.row);
  Changed(unit.row);
}

void Placer::State::RemoveUnit(UnitSlot slot) {
  UnitRow& unit = units[slot.value()];
  Shift(unit, -1);
  AddQuotaUse(unit.unit.kind, -1);
  nodes.Settle(unit.row);
  Changed(unit.row);
  std::vector<UnitSlot>& there = units_on[unit.row];
  *std::ranges::find(there, slot) = there.back();
  there.pop_back();
  slot_of.erase(unit.unit.id);
  unit = {};
  free_slots.push_back(slot);
}

void Placer::State::AddQuotaUse(KindIndex kind, int64_t sign) {
  const std::string& tenant = kinds[kind.value()].tenant;
  if (quotas.empty() && quota_used.empty()) return;
  std::map<std::string, int64_t>& used = quota_used[tenant];
  for (const auto& [name, milli] : kind_rows[kind.value()].quota_use.entries()) used[name] += sign * milli;
}

// Uses are counted from the first quota on; before there is one, units cost nothing here.
void Placer::State::CountQuotaUse() {
  quota_used.clear();
  if (quotas.empty()) return;
  for (const UnitRow& unit : units) {
    if (unit.in_use) AddQuotaUse(unit.unit.kind, 1);
  }
}

void Placer::State::CheckInvariants() const {
  nodes.CheckInvariants();
  for (const Counter& counter : counters) {
    std::vector<int64_t> recount(counter.count.size());
    const CounterIndex index = counter_index.at(counter.spec);
    for (const UnitRow& unit : units) {
      if (!unit.in_use || (unit.terminating && counter.spec.skip_terminating)) continue;
      const std::vector<CounterIndex>& feeds = kind_rows[unit.unit.kind.value()].feeds;
      if (std::ranges::find(feeds, index) == feeds.end() || !counter.eligible.Test(unit.row)) continue;
      ++recount[counter.column->value[unit.row]];
    }
    MUSTER_CHECK(recount == counter.count, "counts by {} are not those of the units", counter.spec.key);
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < recount.size(); ++i) {
      if (counter.support[i] > 0) least = std::min(least, recount[i]);
    }
    MUSTER_CHECK(counter.values == 0 || least == counter.least, "least count by {}: {} is not {}", counter.spec.key,
                 counter.least, least);
  }
}

}  // namespace muster::placement::fast
