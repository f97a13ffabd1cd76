#include "cli/explain_offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/codec.h"
#include "engine/arithmetic.h"
#include "engine/case_explain.h"

namespace muster::cli {
namespace {

// How many machines with so much would cover what is wanted alone; 0: however many would not.
int64_t CountFor(const model::Resources& wanted, const model::Resources& offered) {
  int64_t count = 1;
  for (const auto& [name, amount] : wanted.entries()) {
    const int64_t each = offered.Get(name);
    if (amount > 0 && each == 0) return 0;
    if (amount > 0) count = std::max(count, (amount - 1) / each + 1);
  }
  return count;
}

bool Serves(const contract::MachineView& view, const model::Need& need) {
  const bool bound = view.machine->cluster.empty() || view.machine->cluster == need.cluster;
  return bound && view.need_fingerprint == need.profile.fingerprint() && view.need_group == need.group;
}

void Count(const contract::MachineView& view, const model::Need& need, Offer& offer) {
  const model::Machine& machine = *view.machine;
  if (const auto obstacle = engine::Obstacle(machine, need)) {
    if (offer.unfit++ == 0) offer.obstacle = *obstacle;
  } else if (Serves(view, need)) {
    ++offer.serving;
  } else if (!view.hold.empty()) {
    if (offer.on_hold++ == 0) offer.hold = view.hold;
  } else if (!view.need_fingerprint.empty() || view.missing || view.fenced || !view.machine->cluster.empty()) {
    ++offer.taken;
  } else if (machine.state == model::MachineState::kIdle) {
    ++offer.idle;
  } else if (machine.state == model::MachineState::kSpeculative) {
    ++offer.free;
  } else {
    ++offer.taken;
  }
}

model::Money Times(int64_t count, model::Money each) { return {.micros = count * each.micros}; }

}  // namespace

std::vector<Offer> OffersFor(const model::Need& need, const std::vector<contract::MachineView>& machines) {
  using Key = std::tuple<bool, int64_t, std::string, model::CapacityType, int64_t>;
  std::map<Key, Offer> offers;
  for (const contract::MachineView& view : machines) {
    const model::Machine& machine = *view.machine;
    const engine::Cost cost = engine::EffectiveCost(machine, need.profile.interruption());
    Offer& offer =
        offers[{cost.pinned, cost.micros, machine.instance_type, machine.capacity_type, machine.price_per_hour.micros}];
    if (offer.type.empty()) {
      offer.type = machine.instance_type;
      offer.capacity = machine.capacity_type;
      offer.price = machine.price_per_hour;
      offer.pinned = cost.pinned;
      offer.cost = {.micros = cost.micros};
      offer.for_all = CountFor(need.aggregate, machine.EffectiveAllocatable());
    }
    Count(view, need, offer);
  }
  std::vector<Offer> sorted;
  sorted.reserve(offers.size());
  for (auto& [key, offer] : offers) sorted.push_back(std::move(offer));
  return sorted;
}

std::optional<ResidualCost> CheapestFor(const contract::NeedView& need,
                                        const std::vector<contract::MachineView>& machines) {
  if (need.satisfied || need.residual.empty()) return std::nullopt;
  std::optional<ResidualCost> cheapest;
  model::Money least;  // in the eyes of the need
  for (const contract::MachineView& view : machines) {
    const model::Machine& machine = *view.machine;
    const engine::Cost cost = engine::EffectiveCost(machine, need.need.profile.interruption());
    const int64_t count = CountFor(need.residual, machine.EffectiveAllocatable());
    const model::Money total = Times(count, {.micros = cost.micros});
    if (cost.pinned || count == 0 || (cheapest && total >= least) || engine::Obstacle(machine, need.need)) continue;
    least = total;
    cheapest = {.type = machine.instance_type,
                .capacity = machine.capacity_type,
                .count = count,
                .price = Times(count, machine.price_per_hour)};
  }
  return cheapest;
}

std::vector<contract::MachineView> OneOfEachKind(const std::vector<contract::MachineView>& machines,
                                                 const std::vector<contract::NeedView>& needs) {
  // Labels may differ from machine to machine; those that no need asks for are no difference.
  std::set<std::string> keys;
  for (const contract::NeedView& need : needs) {
    for (const model::Requirement& requirement : need.need.profile.requirements()) keys.insert(requirement.key);
    for (const model::Spread& spread : need.need.profile.spread()) keys.insert(spread.topology_key);
  }
  using Attribute = std::optional<std::string>;
  using Kind = std::tuple<std::string, model::CapacityType, int64_t, int32_t, std::string, std::vector<Attribute>>;
  std::set<Kind> seen;
  std::vector<contract::MachineView> kinds;
  for (const contract::MachineView& view : machines) {
    const model::Machine& machine = *view.machine;
    std::vector<Attribute> attributes;
    for (const std::string& key : keys) {
      const auto value = machine.Attribute(key);
      attributes.push_back(value ? Attribute(*value) : std::nullopt);
    }
    const bool fresh = seen.emplace(machine.instance_type, machine.capacity_type, machine.price_per_hour.micros,
                                    machine.interruption_probability.millionths,
                                    codec::ToBytes(machine.EffectiveAllocatable()), std::move(attributes))
                           .second;
    if (fresh) kinds.push_back(view);
  }
  return kinds;
}

std::string ResidualText(const ResidualCost& cost) {
  return fmt::format("{} more {} ({}) would cover that for {}/h", cost.count, cost.type,
                     model::CapacityTypeName(cost.capacity), model::FormatMoney(cost.price));
}

std::string OfferName(const Offer& offer) {
  std::string name = fmt::format("{} ({}) at {}/h", offer.type, model::CapacityTypeName(offer.capacity),
                                 model::FormatMoney(offer.price));
  if (offer.pinned) {
    name += ", may be interrupted, which the need can never bear";
  } else if (offer.cost != offer.price) {
    name += fmt::format(", {}/h with the risk of an interruption", model::FormatMoney(offer.cost));
  }
  return name;
}

std::string OfferVerdict(const Offer& offer) {
  std::vector<std::string> parts;
  if (offer.serving > 0) parts.push_back(fmt::format("{} serve it", offer.serving));
  if (offer.idle > 0) parts.push_back(fmt::format("{} idle", offer.idle));
  if (offer.free > 0) parts.push_back(fmt::format("{} could be bought", offer.free));
  if (offer.taken > 0) parts.push_back(fmt::format("{} taken", offer.taken));
  if (offer.on_hold > 0) parts.push_back(fmt::format("{} on hold: {}", offer.on_hold, offer.hold));
  if (offer.unfit > 0) parts.push_back(fmt::format("{} refused: {}", offer.unfit, offer.obstacle));
  if (offer.for_all == 0) {
    parts.emplace_back("no number of them covers the need: it lacks a resource");
  } else if (const int64_t usable = offer.serving + offer.idle + offer.free; usable > 0 && usable < offer.for_all) {
    parts.push_back(fmt::format("the whole need takes {} of them, and it can have {}", offer.for_all, usable));
  } else if (usable > 0) {
    parts.push_back(fmt::format("{} would cover the whole need for {}/h", offer.for_all,
                                model::FormatMoney(Times(offer.for_all, offer.price))));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace muster::cli
