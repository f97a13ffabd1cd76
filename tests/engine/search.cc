#include "engine/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/invariants.h"

namespace muster::engine {
namespace {

constexpr int kMaxRounds = 120;
constexpr int kQuietRounds = 12;

bool IsAcquisition(const Action& action) {
  return action.kind == ActionKind::kBootstrap || action.kind == ActionKind::kProvision;
}

int64_t Count(const Decision& decision, ActionKind kind) {
  return std::ranges::count_if(decision.actions, [&](const Action& action) { return action.kind == kind; });
}

std::set<std::pair<NeedKey, size_t>> Folds(const Decision& decision) {
  std::set<std::pair<NeedKey, size_t>> folds;
  for (const NeedVerdict& verdict : decision.needs) {
    if (verdict.need.group.starts_with("fold:")) folds.emplace(KeyOf(verdict.need), verdict.rows.size());
  }
  return folds;
}

bool IsAtRest(const World& world) {
  return std::ranges::all_of(world.machines, [](const model::Machine& machine) {
    return model::IsStable(machine.state) || machine.state == model::MachineState::kFailed;
  });
}

Decision DecideChecked(Scene& scene, const DecideFn& decide, std::optional<std::string>& broken) {
  const Memory before = scene.memory;
  Decision decision = decide(scene.world, scene.memory, scene.now, scene.policy);
  const Status status = CheckDecision(scene.world, before, decision, scene.now - scene.policy.surplus_hold);
  if (!status.ok() && !broken) broken = status.message();
  return decision;
}

}  // namespace

std::optional<std::string> CheckOnce(const Scene& scene, const DecideFn& decide) {
  std::optional<std::string> broken;
  Scene copy = scene;
  (void)DecideChecked(copy, decide, broken);
  return broken;
}

SettleResult Settle(Scene scene, const DecideFn& decide) {
  SettleResult result;
  std::set<int32_t> priorities;
  for (const model::Need& need : scene.world.needs) priorities.insert(need.profile.priority());
  WorldSteps steps(scene.dwell);
  std::set<std::pair<NeedKey, size_t>> folds;
  bool content = false;  // nobody was short in the last round at rest, and nothing has changed since
  int last_change = 1;   // transitions found under way end in round 1
  int last_action = 0;
  for (int round = 1; round <= kMaxRounds && round - last_action <= kQuietRounds; ++round) {
    const bool nothing_moves = IsAtRest(scene.world);
    const Decision decision = DecideChecked(scene, decide, result.broken);
    const auto folds_now = Folds(decision);
    const bool refolded = round > 1 && folds_now != folds;
    folds = folds_now;
    const bool reclaims = Count(decision, ActionKind::kReclaim) > 0;
    const bool acquires = std::ranges::any_of(decision.actions, IsAcquisition);
    const bool takes = acquires || Count(decision, ActionKind::kPreempt) > 0;
    if (content && !refolded && takes) (nothing_moves ? result.buys_again : result.buys_in_flight) = true;
    const bool short_now = std::ranges::any_of(decision.needs, [](const NeedVerdict& v) { return !v.satisfied; });
    content = (nothing_moves ? !short_now : content && !refolded) && !reclaims;
    if (reclaims || refolded) last_change = round;
    if (!decision.actions.empty()) last_action = round;
    result.loops = round == kMaxRounds;
    steps.Advance(scene.world, decision);
    scene.now += 1h;
    if (!steps.idle()) last_change = round + 1;  // a transition that ends is a change of supply
  }
  result.rounds = std::max(0, last_action - last_change);
  result.too_long = result.rounds > 4 + 2 * static_cast<int>(priorities.size());
  result.end = std::move(scene);
  return result;
}

std::optional<std::string> RunHistory(Choices& choices, Scene scene, int changes, const DecideFn& decide) {
  std::optional<std::string> broken;
  const auto between = [&](size_t low, size_t high) {
    return static_cast<int32_t>(low + choices.Below(high - low + 1));
  };
  WorldSteps steps({.create = between(5, 30),
                    .configure = between(0, 5),
                    .drain = between(5, 60),
                    .remove = 1,
                    .stop_at_idle = choices.OneIn(2)});
  for (int change = 0; change < changes && !broken; ++change) {
    RandomChange(choices, scene);
    for (size_t cycle = 1 + choices.Below(8); cycle > 0 && !broken; --cycle) {
      const Decision decision = DecideChecked(scene, decide, broken);
      steps.Advance(scene.world, decision);
      scene.now += 10s;
    }
  }
  return broken;
}

SwayResult Sway(Choices& choices, Swaying swaying, int cycles, const DecideFn& decide) {
  SwayResult result;
  Scene& scene = swaying.scene;
  const NeedKey sways = KeyOf(scene.world.needs[swaying.need]);
  std::set<NeedKey> covered;
  WorldSteps steps(scene.dwell);
  for (int cycle = 0; cycle < cycles; ++cycle) {
    if (choices.OneIn(2))
      SetDemand(swaying, static_cast<int64_t>(choices.Below(static_cast<size_t>(swaying.most) + 1)));
    const Decision decision = DecideChecked(scene, decide, result.broken);
    for (const Action& action : decision.actions) {
      if (IsAcquisition(action) && covered.contains(*action.need)) ++result.bought_again;
    }
    result.preempts += Count(decision, ActionKind::kPreempt);
    for (const NeedVerdict& verdict : decision.needs) {
      if (verdict.satisfied && KeyOf(verdict.need) != sways) covered.insert(KeyOf(verdict.need));
    }
    steps.Advance(scene.world, decision);
    scene.now += 10s;
  }
  return result;
}

FlapResult Flap(uint64_t seed, Duration surplus_hold, int rounds, const DecideFn& decide) {
  Rng rng(seed);
  Scene scene;
  scene.policy.surplus_hold = surplus_hold;
  for (int i = 0; i < 90; ++i) {
    model::Machine machine;
    machine.id = fmt::format("m{:03}", i);
    machine.state = model::MachineState::kIdle;
    machine.host = {.provider = "test", .ref = machine.id};
    machine.instance_type = "small";
    machine.capacity_type = model::CapacityType::kBareMetal;
    machine.resources = {{"cpu", 4000}};
    scene.world.machines.push_back(machine);
  }
  scene.world.clusters["c1"] = {};
  std::vector<int64_t> base;
  for (int i = 0; i < 5; ++i) {
    model::Need need;
    need.cluster = "c1";
    need.group = fmt::format("g{}", i);
    need.min_unit = {{"cpu", 1000}};
    base.push_back(rng.Between(40'000, 60'000));
    scene.world.needs.push_back(need);
  }
  WorldSteps steps({});
  FlapResult result;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < base.size(); ++i) {
      scene.world.needs[i].aggregate.Set("cpu", base[i] * rng.Between(950, 1050) / 1000);
    }
    const Decision decision = decide(scene.world, scene.memory, scene.now, scene.policy);
    steps.Advance(scene.world, decision);
    scene.now += 10s;
    if (round == 0) continue;  // the first buys everything
    result.in_per_round += static_cast<double>(std::ranges::count_if(decision.actions, IsAcquisition)) / (rounds - 1);
    result.out_per_round += static_cast<double>(Count(decision, ActionKind::kReclaim)) / (rounds - 1);
  }
  return result;
}

}  // namespace muster::engine
