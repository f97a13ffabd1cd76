#include "engine/compare.h"

#include <fmt/format.h>

#include <utility>

#include "base/codec.h"
#include "engine/fast/cycle.h"
#include "engine/reference/decide.h"

namespace muster::engine {
namespace {

std::string Text(const Action& action) { return codec::Describe(action); }
std::string Text(const Claim& claim) { return codec::Describe(claim); }
std::string Text(const NeedVerdict& v) {
  std::string text = fmt::format(
      "{}/{} group '{}' rows {} satisfied {} residual {} c{} cr{} b{} p{} domain {} supply {}/{}/{} victims {} pledged "
      "{} "
      "lost {} parked {} age {} reason {}",
      v.need.cluster, v.need.profile.fingerprint(), v.need.group, v.rows.size(), v.satisfied, v.residual.ToString(),
      v.credited, v.creating, v.bootstraps, v.provisions, v.domain.value_or("-"), v.supply.idle, v.supply.speculative,
      v.supply.configured, v.victims, v.pledged, v.lost, v.parked, v.age, model::ReasonName(v.reason));
  for (const DomainScore& d : v.domains)
    text += fmt::format(" {}:{}:{}", d.domain, d.coverage_per_mille, d.satisfiable);
  return text;
}
std::string Text(const MachineVerdict& v) {
  return fmt::format("{} need {} {}", v.machine, v.need ? static_cast<int64_t>(*v.need) : -1,
                     model::ReasonName(v.reason));
}

template <class T>
std::string FirstDifference(const char* what, const std::vector<T>& expected, const std::vector<T>& got) {
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    if (i < expected.size() && i < got.size() && expected[i] == got[i]) continue;
    return fmt::format("{} {}\n  reference: {}\n  fast:      {}", what, i,
                       i < expected.size() ? Text(expected[i]) : "none", i < got.size() ? Text(got[i]) : "none");
  }
  return "";
}

template <class K, class V>
std::string FirstDifference(const char* what, const std::map<K, V>& expected, const std::map<K, V>& got) {
  for (const auto& [key, value] : expected) {
    const auto it = got.find(key);
    if (it == got.end())
      return fmt::format("{}: fast lacks {} = {}", what, codec::Describe(key), codec::Describe(value));
    if (it->second != value) {
      return fmt::format("{} {}\n  reference: {}\n  fast:      {}", what, codec::Describe(key), codec::Describe(value),
                         codec::Describe(it->second));
    }
  }
  for (const auto& [key, value] : got) {
    if (!expected.contains(key))
      return fmt::format("{}: fast has {} = {}", what, codec::Describe(key), codec::Describe(value));
  }
  return "";
}

}  // namespace

void Comparison::Note(const std::string& who, const Decision& expected, const Memory& expected_memory,
                      const Decision& got, const Memory& got_memory) {
  if (!difference_.empty()) return;
  for (const std::string& difference :
       {FirstDifference("action", expected.actions, got.actions), FirstDifference("claim", expected.claims, got.claims),
        FirstDifference("need", expected.needs, got.needs), FirstDifference("machine", expected.machines, got.machines),
        FirstDifference("memory of machine", expected_memory.machines, got_memory.machines),
        FirstDifference("memory of need", expected_memory.needs, got_memory.needs),
        FirstDifference("drains", expected_memory.drains, got_memory.drains)}) {
    if (difference.empty()) continue;
    difference_ = fmt::format("cycle {}, {}: {}", cycle_, who, difference);
    return;
  }
}

DecideFn UnderNewNames(DecideFn decide) {
  return [decide = std::move(decide), calls = 0](const World& world, Memory& memory, MonoTime now,
                                                 const Policy& policy) mutable {
    World renamed = world;
    for (model::Need& need : renamed.needs) {
      if (!need.group.empty()) need.group += fmt::format("-{}", calls / 2);
    }
    ++calls;
    return decide(renamed, memory, now, policy);
  };
}

DecideFn AskingForTheUnknown(DecideFn decide) {
  return [decide = std::move(decide), calls = 0](const World& world, Memory& memory, MonoTime now,
                                                 const Policy& policy) mutable {
    World odd = world;
    for (size_t i = 0; i < odd.needs.size(); ++i) {
      model::Need& need = odd.needs[i];
      const auto name = [&](size_t n) { return fmt::format("example.com/odd-{}", n); };
      const size_t kind = (i + static_cast<size_t>(calls / 4)) % 5;
      if (kind < 3) need.aggregate.Set(name(kind), 1000 + static_cast<int64_t>(i % 2));
      if (kind == 1) need.aggregate.Set(name(100 + static_cast<size_t>(calls)), 1);
      if (kind == 2) need.min_unit.Set(name(2), 1000);
    }
    // From the middle on some machines offer what until then none had.
    for (size_t i = 0; calls >= 12 && i < odd.machines.size(); i += 3) {
      model::Resources more = odd.machines[i].EffectiveAllocatable();
      more.Set("example.com/odd-0", 2000);
      odd.machines[i].resources = more;
      odd.machines[i].allocatable = more;
    }
    ++calls;
    return decide(odd, memory, now, policy);
  };
}

DecideFn WithNamesThatPass(DecideFn decide) {
  return [decide = std::move(decide), calls = 0](const World& world, Memory& memory, MonoTime now,
                                                 const Policy& policy) mutable {
    constexpr int kNames = 7;
    World passing = world;
    const auto name = [](int call, int n) { return fmt::format("example.com/passes-{}-{}", call, n); };
    if (calls % 2 == 0) {
      model::Machine machine{.id = fmt::format("passes-{}", calls),
                             .state = model::MachineState::kSpeculative,
                             .instance_type = "passes",
                             .price_per_hour = {1'000'000},
                             .resources = {{"cpu", 1000}}};
      for (int n = 0; n < kNames; ++n) machine.resources.Set(name(calls, n), 1000);
      passing.machines.push_back(std::move(machine));
    }
    for (size_t i = 0; i < passing.needs.size(); i += 3) {
      passing.needs[i].aggregate.Set(name(static_cast<int>(i) % 2 * 4, static_cast<int>(i) % kNames), 1000);
    }
    ++calls;
    return decide(passing, memory, now, policy);
  };
}

DecideFn WithPricesThatMove(DecideFn decide) {
  return [decide = std::move(decide), calls = 0](const World& world, Memory& memory, MonoTime now,
                                                 const Policy& policy) mutable {
    constexpr int kFailed = 60;
    World moving = world;
    ++calls;
    // Most sweeps find all but the Failed ones as it was, so that nothing else has the engine look at it anew. Those
    // come first: the classes of all others get new numbers.
    for (model::Machine& machine : moving.machines) machine.price_per_hour.micros += calls / 8;
    std::vector<model::Machine> failed;
    for (int i = 0; i < kFailed; ++i) {
      failed.push_back({.id = fmt::format("failed-{}", i),
                        .state = model::MachineState::kFailed,
                        .instance_type = "fails",
                        .price_per_hour = {calls * kFailed + i},
                        .resources = {{"cpu", 1000 + calls}}});
    }
    moving.machines.insert(moving.machines.begin(), failed.begin(), failed.end());
    return decide(moving, memory, now, policy);
  };
}

Decision Comparison::Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy) {
  const Memory before = memory;
  const Decision expected = reference::Decide(world, memory, now, policy);
  if (!difference_.empty()) return expected;
  ++cycle_;

  Memory fresh_memory = before;
  const Decision fresh = fast::Decide(world, fresh_memory, now, policy);
  Note("afresh", expected, memory, fresh, fresh_memory);

  if (!long_lived_ || before != left_behind_) {
    for (auto* engine : {&long_lived_, &unexplained_}) engine->emplace(policy).engine().Restore(before);
    for (auto* engine : {&side_by_side_, &unexplained_side_by_side_}) {
      engine->emplace(policy, &shuffled_).engine().Restore(before);
    }
  }
  left_behind_ = memory;
  long_lived_->Update(world);
  const Decision lasting = long_lived_->Decide(now);
  Note("long-lived", expected, memory, lasting, long_lived_->engine().ExportMemory());

  const auto decide_unexplained = [&](const char* who, fast::Follower& engine) {
    engine.Update(world);
    engine.engine().Decide(now);
    Decision named = engine.engine().Explain();
    named.needs = expected.needs;  // verdicts are made on demand only
    named.machines = expected.machines;
    Note(who, expected, memory, named, engine.engine().ExportMemory());
  };
  decide_unexplained("without verdicts", *unexplained_);
  decide_unexplained("eight workers without verdicts", *unexplained_side_by_side_);

  side_by_side_->Update(world);
  const Decision parallel = side_by_side_->Decide(now);
  Note("eight workers", expected, memory, parallel, side_by_side_->engine().ExportMemory());
  return expected;
}

}  // namespace muster::engine
