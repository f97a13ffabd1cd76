#include "engine/small_worlds.h"

#include <fmt/format.h>

namespace muster::engine {
namespace {

using model::MachineState;

// Machines: Idle, Speculative or bound to either cluster; one or two units; one of two racks.
constexpr size_t kMachineLetters = 4 * 2 * 2;
// Needs: either cluster; one of two priorities; one to three units; plain or gang, and last those that spread.
constexpr size_t kNeedLetters = 2 * 2 * 3 * 3;
constexpr size_t kNeedLettersWithoutSpread = 2 * 2 * 3 * 2;

model::Machine MachineOf(size_t letter, size_t position) {
  model::Machine machine;
  machine.id = fmt::format("m{}", position);
  const size_t state = letter % 4;
  const auto units = static_cast<int64_t>(1 + letter / 4 % 2);
  machine.instance_type = fmt::format("size-{}", units);
  machine.labels["rack"] = letter / 8 == 0 ? "r1" : "r2";
  machine.resources = {{"cpu", units * 1000}};
  machine.price_per_hour.micros = units * 100'000;
  machine.capacity_type = model::CapacityType::kOnDemand;
  machine.state = state == 0   ? MachineState::kIdle
                  : state == 1 ? MachineState::kSpeculative
                               : MachineState::kConfigured;
  if (state != 1) machine.host = {.provider = "test", .ref = machine.id};
  if (state >= 2) machine.cluster = fmt::format("c{}", state - 1);
  return machine;
}

model::Need NeedOf(size_t letter) {
  model::Need need;
  need.cluster = fmt::format("c{}", 1 + letter % 2);
  model::ProfileParts parts;
  const size_t topology = letter / 12;
  if (topology == 1) parts.requirements.push_back({.key = "rack", .op = model::Operator::kSame});
  if (topology == 2) parts.spread.push_back({.topology_key = "rack"});
  parts.priority = letter / 2 % 2 == 0 ? 0 : 100;
  need.profile = model::Profile(std::move(parts));
  need.aggregate = {{"cpu", static_cast<int64_t>(1 + letter / 4 % 3) * 1000}};
  need.min_unit = {{"cpu", 1000}};
  return need;
}

// Calls fn with every multiset of up to `most` letters, as a sorted list.
template <class Fn>
void ForEachMultiset(size_t letters, size_t most, const Fn& fn, std::vector<size_t> chosen = {}) {
  if (!chosen.empty()) fn(chosen);
  if (chosen.size() == most) return;
  for (size_t letter = chosen.empty() ? 0 : chosen.back(); letter < letters; ++letter) {
    std::vector<size_t> longer = chosen;
    longer.push_back(letter);
    ForEachMultiset(letters, most, fn, std::move(longer));
  }
}

}  // namespace

uint64_t ForEachSmallWorld(uint64_t every, const std::function<void(const Scene& scene, uint64_t number)>& look) {
  std::vector<std::vector<model::Need>> demands;
  const auto add_demand = [&](const std::vector<size_t>& letters) {
    std::vector<model::Need>& needs = demands.emplace_back();
    for (const size_t letter : letters) needs.push_back(NeedOf(letter));
  };
  ForEachMultiset(kNeedLetters, 2, add_demand);
  ForEachMultiset(kNeedLettersWithoutSpread, 3, [&](const std::vector<size_t>& letters) {
    if (letters.size() == 3) add_demand(letters);
  });
  uint64_t number = 0;
  ForEachMultiset(kMachineLetters, 3, [&](const std::vector<size_t>& letters) {
    Scene scene;
    scene.policy.surplus_hold = Duration::zero();
    scene.world.clusters = {{"c1", {}}, {"c2", {}}};
    for (const size_t letter : letters) scene.world.machines.push_back(MachineOf(letter, scene.world.machines.size()));
    for (const std::vector<model::Need>& needs : demands) {
      if (number++ % every != 0) continue;
      scene.world.needs = needs;
      look(scene, number);
    }
  });
  return number;
}

}  // namespace muster::engine
