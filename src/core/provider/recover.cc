#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "contract/core.h"
#include "core/provider/provider.h"

namespace muster::provider {
namespace {

// What a slot says of a machine whatever its state.
model::Machine WithTermsOf(model::Machine machine, const model::Machine& slot) {
  machine.instance_type = slot.instance_type;
  machine.zone = slot.zone;
  machine.capacity_type = slot.capacity_type;
  machine.resources = slot.resources;
  machine.allocatable = slot.allocatable;
  machine.labels = slot.labels;
  machine.price_per_hour = slot.price_per_hour;
  machine.interruption_probability = slot.interruption_probability;
  return machine;
}

const std::string& IdOf(const contract::Slot& slot) { return slot.machine.id; }

// `slots` are in id order.
bool HasSlot(const std::vector<contract::Slot>& slots, const std::string& id) {
  return std::ranges::binary_search(slots, id, {}, IdOf);
}

}  // namespace

static_assert(contract::Core<Core>);

struct Core::Saved {
  uint64_t layout = 1;  // raised with each other form of the state, an event or an effect
  Config config;
  std::vector<MachineRow> rows;
  std::map<std::pair<std::string, std::string>, Mark> marks;
  std::vector<contract::MarketMoved> markets;
  Numbering numbering;
  contract::Persist left_over;
  std::map<uint32_t, uint64_t> rotation;
  std::map<contract::CallId, OpenCall> open_calls;
  contract::CallId last_call = 0;
  bool started = false;
  uint64_t fenced = 0;

  MUSTER_FIELDS(Saved, layout, config, rows, marks, markets, numbering, left_over, rotation, open_calls, last_call,
                started, fenced)
};

Result<Core> Core::Recover(Config config, std::vector<contract::Slot> slots, const contract::Recovered& recovered) {
  Core core;
  core.config_ = std::move(config);
  core.numbering_.lineage = core.config_.new_lineage;
  if (Status read = core.ReadRows(recovered); !read.ok()) return std::unexpected(std::move(read));
  if (Status added = core.AddSlots(std::move(slots)); !added.ok()) return std::unexpected(std::move(added));
  core.Reindex();
  return core;
}

Status Core::ReadRows(const contract::Recovered& recovered) {
  contract::RowReader reader("provider", "restore it from a backup");
  reader.Format(kFormat);
  reader.On(kNumbering, [this](const Numbering& numbering) { numbering_ = numbering; });
  reader.On(kMachines, [this](const std::string& id, MachineRow row) {
    if (row.machine->id != id) return false;
    rows_.push_back(std::move(row));
    return true;
  });
  reader.On(kMarks, [this](auto whose, const Mark& mark) { marks_.emplace(std::move(whose), mark); });
  reader.On(kMarkets, [this](const MarketKey& key, contract::MarketMoved moved) {
    if (key != MarketOf(moved)) return false;
    markets_[key].now = std::move(moved);
    return true;
  });
  return reader.Read(recovered);
}

// Rows are in id order, because their keys are. Slots without a row become rows that are not stored: their numbers
// follow from the numbering.
Status Core::AddSlots(std::vector<contract::Slot> slots) {
  std::ranges::sort(slots, {}, IdOf);
  const uint64_t digest = codec::Digest(slots);
  // With a forgotten row go its numbers, which may be the newest: without others above them they would be given again.
  const bool forgets = std::ranges::any_of(rows_, [&](const MachineRow& row) {
    return row.machine->state == model::MachineState::kSpeculative && !HasSlot(slots, row.machine->id);
  });
  const bool same_slots = digest == numbering_.slots_digest && !forgets;
  if (!same_slots) Renumber(digest, slots.size());
  std::vector<bool> has_slot(rows_.size(), false);
  const size_t stored = rows_.size();
  for (size_t i = 0; i < slots.size(); ++i) {
    const contract::Slot& slot = slots[i];
    MUSTER_RETURN_IF_ERROR(model::CheckStructure(slot.machine));
    if (i > 0 && slots[i - 1].machine.id == slot.machine.id) {
      return {Code::kInvalidArgument, fmt::format("two machines have the id {}", codec::Quote(slot.machine.id))};
    }
    const uint64_t number = numbering_.first + i;
    const auto end = rows_.begin() + static_cast<ptrdiff_t>(stored);
    const auto row = std::lower_bound(rows_.begin(), end, slot.machine.id,
                                      [](const MachineRow& a, const std::string& id) { return a.machine->id < id; });
    if (row == end || row->machine->id != slot.machine.id) {
      rows_.push_back(
          {.machine = contract::MachineRecord(slot.machine), .deletable = slot.deletable, .changed = number});
      continue;
    }
    has_slot[static_cast<size_t>(row - rows_.begin())] = true;
    if (same_slots) continue;
    model::Machine machine = WithTermsOf(*row->machine, slot.machine);
    if (row->interrupted) machine.interruption_probability = row->machine->interruption_probability;
    row->machine = contract::MachineRecord(std::move(machine));
    row->deletable = slot.deletable;
    row->changed = number;
    left_over_.writes.push_back(kMachines.Put(slot.machine.id, *row));
  }
  DropVanished(has_slot);
  return {};
}

// The slots are others than before, or a row is forgotten: the slots' numbers lie above all that were, and prices begin
// again at theirs.
void Core::Renumber(uint64_t digest, size_t slots) {
  const bool first_start = numbering_.slots_digest == 0;
  uint64_t newest = numbering_.first + numbering_.slots;
  for (const MachineRow& row : rows_) newest = std::max(newest, row.changed);
  numbering_.slots_digest = digest;
  numbering_.slots = slots;
  if (!first_start) numbering_.first = newest + 1;
  left_over_.writes.push_back(contract::kFormatRow.Put(kFormat));
  left_over_.writes.push_back(kNumbering.Put(numbering_));
  for (const auto& [key, market] : markets_) left_over_.writes.push_back(kMarkets.Erase(key));
  markets_.clear();
}

// What the backend no longer offers is forgotten where it is only a promise; hardware stays until it is given back.
void Core::DropVanished(const std::vector<bool>& has_slot) {
  size_t place = 0;
  std::erase_if(rows_, [&](const MachineRow& row) {
    const size_t at = place++;
    if (at >= has_slot.size() || has_slot[at] || row.machine->state != model::MachineState::kSpeculative) return false;
    PROBE("provider.slot_vanished");
    left_over_.writes.push_back(kMachines.Erase(row.machine->id));
    return true;
  });
}

// Everything derived, from rows_ and the terms of markets_.
void Core::Reindex() {
  std::ranges::sort(rows_, {}, [](const MachineRow& row) -> const std::string& { return row.machine->id; });
  std::vector<MachineIndex> by_number(rows_.size());
  states_.resize(rows_.size());
  for (MachineIndex i = 0; i < rows_.size(); ++i) {
    model::Machine machine = *rows_[i].machine;
    Market& market = markets_[{machine.instance_type, machine.zone, machine.capacity_type}];
    market.machines.push_back(i);
    if (market.now.instance_type.empty()) {
      market.now = {.instance_type = machine.instance_type,
                    .zone = machine.zone,
                    .capacity_type = machine.capacity_type,
                    .price_per_hour = machine.price_per_hour,
                    .interruption_probability = machine.interruption_probability};
    }
    index_.emplace(machine.id, i);
    states_[i] = machine.state;
    ++counts_[static_cast<size_t>(machine.state)];
    by_number[i] = i;
  }
  for (const auto& [whose, mark] : marks_) {
    const auto& [shard, machine] = whose;
    const auto floor = floors_.try_emplace(shard, mark.epoch).first;
    floor->second = std::max(floor->second, mark.epoch);
    if (!index_.contains(machine)) ghosts_[shard].emplace(mark, machine);
  }
  std::ranges::sort(by_number, {}, [this](MachineIndex i) { return rows_[i].changed; });
  for (const MachineIndex i : by_number) log_.Append(i, rows_[i].changed);
}

std::string Core::Save() const {
  Saved saved{.config = config_,
              .rows = rows_,
              .marks = marks_,
              .markets = {},
              .numbering = numbering_,
              .left_over = left_over_,
              .rotation = rotation_,
              .open_calls = open_calls_,
              .last_call = last_call_,
              .started = started_,
              .fenced = fenced_};
  for (const auto& [key, market] : markets_) saved.markets.push_back(market.now);
  return codec::ToBytes(saved);
}

std::optional<Core> Core::Load(std::string_view bytes) {
  auto saved = codec::FromBytes<Saved>(bytes);
  if (!saved || saved->layout != Saved{}.layout) return std::nullopt;
  Core core;
  core.config_ = std::move(saved->config);
  core.rows_ = std::move(saved->rows);
  core.marks_ = std::move(saved->marks);
  core.numbering_ = saved->numbering;
  core.left_over_ = std::move(saved->left_over);
  core.rotation_ = std::move(saved->rotation);
  core.open_calls_ = std::move(saved->open_calls);
  core.last_call_ = saved->last_call;
  core.started_ = saved->started;
  core.fenced_ = saved->fenced;
  for (contract::MarketMoved& market : saved->markets) {
    const MarketKey key = MarketOf(market);
    core.markets_[key].now = std::move(market);
  }
  core.Reindex();
  return core;
}

}  // namespace muster::provider
