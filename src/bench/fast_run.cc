#include "bench/fast_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/hash.h"
#include "bench/cycle_digest.h"
#include "bench/light_provider.h"
#include "bench/process.h"
#include "engine/fast/engine.h"
#include "engine/fast/internals.h"

namespace muster::bench {
namespace {

namespace fast = engine::fast;

constexpr size_t kLeastSamples = 3;
constexpr size_t kMostSamples = 1000;
constexpr size_t kLeastWarmSamples = 300;
constexpr size_t kMostWarmSamples = 100'000;
constexpr int64_t kDigestedCycles = 64;
// Until what the cold cycle began has come, the surplus hold has passed and what it let go has drained.
constexpr int64_t kSettlingCycles = 180;

std::unique_ptr<fast::Engine> NewEngine(const Setup& setup) {
  return std::make_unique<fast::Engine>(setup.policy, &setup.parallel);
}

void OpenSessions(const Setup& setup, fast::Engine& engine) {
  for (const auto& [name, state] : setup.world.clusters) engine.SetCluster(name, state);
}

void List(const Setup& setup, fast::Engine& engine) { engine.Upsert(setup.world.machines, setup.digests); }

void Send(const Setup& setup, fast::Engine& engine, WallTime now) {
  for (const Rollup& rollup : setup.rollups.all()) {
    engine.ReplaceNeeds(rollup.cluster, {.rows = rollup.rows, .digests = rollup.digests}, now);
  }
}

double Dollars(int64_t micros) { return static_cast<double>(micros) / 1e6; }

// What the machines cost an hour once the actions are carried out.
int64_t CostAfter(const Setup& setup, const fast::Engine& engine) {
  int64_t micros = LightProvider::CostMicros(setup.world.machines);
  for (const fast::FastAction& action : fast::Internals(engine).cycle.actions()) {
    const int64_t price = setup.world.machines[action.machine.value()].price_per_hour.micros;
    if (action.kind == engine::ActionKind::kProvision) micros += price;
    if (action.kind == engine::ActionKind::kDelete) micros -= price;
  }
  return micros;
}

Outcomes OutcomesOf(const fast::Engine& engine) {
  Outcomes outcomes{.unsatisfied = static_cast<int64_t>(engine.unsatisfied())};
  for (const fast::FastAction& action : fast::Internals(engine).cycle.actions()) outcomes.Count(action.kind);
  return outcomes;
}

void CountBroker(const fast::Engine& engine, Line& line) {
  const fast::BrokerStats& broker = engine.broker();
  const fast::ModeStats total = broker.total();
  line.conflict_fraction = std::max(line.conflict_fraction, total.conflict_fraction());
  line.retries += total.retries;
  const auto mean_us = [](uint64_t nanos, uint64_t plans) {
    return plans == 0 ? 0.0 : static_cast<double>(nanos) / static_cast<double>(plans) / 1000;
  };
  line.proposal_us_basic = mean_us(broker.incremental.nanos, broker.incremental.proposals);
  line.proposal_us_gang = mean_us(broker.all_or_nothing.nanos, broker.all_or_nothing.proposals);
  line.displacements += total.displacements;
}

void TellEngine(const Setup& setup, const fast::Engine& engine, Line& line) {
  const fast::Internals internals(engine);
  line.decided = internals.demand.order().size();
  line.hot_bytes_per_machine =
      static_cast<double>(internals.inventory.hot_bytes()) / static_cast<double>(internals.inventory.machines());
  line.rss_mb = static_cast<double>(ResidentBytes() - setup.resident_before) / (1 << 20);
}

// A cycle that is decided again and again by engines that know nothing of each other. `prepare` is not timed.
Status MeasureOnce(const Setup& setup, std::string_view temp, const std::function<void(fast::Engine&)>& prepare,
                   const std::function<void(fast::Engine&)>& timed, const std::function<void(const Line&)>& see) {
  Line line = setup.NewLine(temp);
  Meter meter;
  const Status status = SampleFor(setup.options.seconds, kLeastSamples, kMostSamples, [&]() -> Status {
    const std::unique_ptr<fast::Engine> engine = NewEngine(setup);
    prepare(*engine);
    meter.Start();
    timed(*engine);
    meter.Stop();
    CountBroker(*engine, line);
    const uint64_t digest = CycleDigest(*engine);
    if (line.decided == 0 && line.digest == 0) {
      line.digest = digest;
      line.outcomes = OutcomesOf(*engine);
      line.cost_per_hour = Dollars(CostAfter(setup, *engine));
      TellEngine(setup, *engine, line);
    }
    if (digest == line.digest) return {};
    return {Code::kInternal, fmt::format("{} {}: two engines gave different answers, {:016x} and {:016x}", line.shape,
                                         temp, line.digest, digest)};
  });
  MUSTER_RETURN_IF_ERROR(status);
  meter.Tell(line);
  see(line);
  return {};
}

Status MeasureCold(const Setup& setup, const std::function<void(const Line&)>& see) {
  return MeasureOnce(
      setup, "cold", [](fast::Engine&) {},
      [&](fast::Engine& engine) {
        OpenSessions(setup, engine);
        List(setup, engine);
        Send(setup, engine, kStart.wall);
        engine.Decide(kStart.mono);
      },
      see);
}

// Until their first roll-up clusters have no session: the inventory is loaded and nothing is decided.
Status MeasureFull(const Setup& setup, const std::function<void(const Line&)>& see) {
  return MeasureOnce(
      setup, "full",
      [&](fast::Engine& engine) {
        List(setup, engine);
        engine.Decide(kStart.mono);
        OpenSessions(setup, engine);
      },
      [&](fast::Engine& engine) {
        Send(setup, engine, kStart.wall);
        engine.Decide(kStart.mono + 1s);
      },
      see);
}

Status MeasureWarm(Setup& setup, const std::function<void(const Line&)>& see) {
  Line line = setup.NewLine("warm");
  Rng rng(1);
  Hasher digest;
  Meter meter;
  LightProvider provider(setup.world.machines);
  const std::unique_ptr<fast::Engine> engine = NewEngine(setup);
  OpenSessions(setup, *engine);
  List(setup, *engine);
  Send(setup, *engine, kStart.wall);
  engine->Decide(kStart.mono);
  digest.Add(CycleDigest(*engine));
  int64_t cycle = 0;
  const auto step = [&] {
    provider.CarryOut(*engine);
    provider.Tick(rng);
    setup.rollups.Breathe(rng);
    for (const uint32_t m : provider.changed()) setup.digests[m] = fast::DigestOf(setup.world.machines[m]);
    const Duration passed = std::chrono::seconds(++cycle);
    meter.Start();
    for (const uint32_t m : provider.changed()) engine->Upsert(setup.world.machines[m], setup.digests[m]);
    Send(setup, *engine, kStart.wall + passed);
    engine->Decide(kStart.mono + passed);
    meter.Stop();
    provider.Forget();
  };
  double settle_max = 0;
  while (cycle < kSettlingCycles) {
    step();
    settle_max = std::max(settle_max, meter.last_us());
    meter.DropLast();
    if (cycle <= kDigestedCycles) digest.Add(CycleDigest(*engine));
  }
  const Status status = SampleFor(setup.options.seconds, kLeastWarmSamples, kMostWarmSamples, [&]() -> Status {
    step();
    CountBroker(*engine, line);
    const int64_t most_short =
        std::max<int64_t>(line.outcomes.unsatisfied, static_cast<int64_t>(engine->unsatisfied()));
    for (const fast::FastAction& action : fast::Internals(*engine).cycle.actions()) line.outcomes.Count(action.kind);
    line.outcomes.unsatisfied = most_short;
    return {};
  });
  MUSTER_RETURN_IF_ERROR(status);
  meter.Tell(line);
  line.settle_max_us = settle_max;
  line.digest = digest.value();
  line.cost_per_hour = Dollars(CostAfter(setup, *engine));
  TellEngine(setup, *engine, line);
  see(line);
  return {};
}

// Every other batch brings back what the one before it changed.
void ChangeBatch(Setup& setup, size_t first, size_t count, bool back) {
  for (size_t k = 0; k < count; ++k) {
    const size_t at = (first + k * 7) % setup.world.machines.size();
    model::Machine& machine = setup.world.machines[at];
    if (machine.state == model::MachineState::kConfigured || machine.state == model::MachineState::kDraining) {
      machine.state = back ? model::MachineState::kConfigured : model::MachineState::kDraining;
    } else {
      machine.price_per_hour.micros += back ? -50'000 : 50'000;
    }
    setup.digests[at] = fast::DigestOf(machine);
  }
}

// The list as it comes, then batches of changes to it: a bound machine drains, an Idle one has another price. The time
// of a change is that of its Upsert and its part of what Decide takes longer than without changes.
Status MeasureInventory(Setup& setup, const std::function<void(const Line&)>& see) {
  constexpr size_t kBatch = 1000;
  MUSTER_RETURN_IF_ERROR(MeasureOnce(
      setup, "cold", [](fast::Engine&) {},
      [&](fast::Engine& engine) {
        List(setup, engine);
        engine.Decide(kStart.mono);
      },
      see));
  std::vector<model::Machine>& machines = setup.world.machines;
  const size_t batch = std::min(kBatch, machines.size() / 7 + 1);
  Line line = setup.NewLine("change");
  const std::unique_ptr<fast::Engine> engine = NewEngine(setup);
  List(setup, *engine);
  engine->Decide(kStart.mono);
  int64_t cycle = 0;
  Meter quiet;
  Meter changes;
  const auto decide = [&] { engine->Decide(kStart.mono + std::chrono::seconds(++cycle)); };
  const Status status = SampleFor(setup.options.seconds, 20, kMostSamples, [&]() -> Status {
    const auto number = static_cast<size_t>(cycle / 2);
    const size_t first = number / 2 * 7919;
    ChangeBatch(setup, first, batch, number % 2 == 1);
    changes.Start();
    for (size_t k = 0; k < batch; ++k) {
      const size_t at = (first + k * 7) % machines.size();
      engine->Upsert(machines[at], setup.digests[at]);
    }
    decide();
    changes.Stop();
    quiet.Start();
    decide();
    quiet.Stop();
    return {};
  });
  MUSTER_RETURN_IF_ERROR(status);
  Line idle = line;
  quiet.Tell(idle);
  changes.Tell(line);
  const double without = Percentile(idle.micros, 50);
  const auto share = [&](double& us) { us = std::max(us - without, 0.0) / static_cast<double>(batch); };
  std::ranges::for_each(line.micros, share);
  line.cpu_micros.clear();
  if (line.allocs) line.allocs = *line.allocs / static_cast<double>(batch);
  if (line.allocs_p50) line.allocs_p50 = *line.allocs_p50 / static_cast<double>(batch);
  line.quiet_us = without;
  TellEngine(setup, *engine, line);
  see(line);
  return {};
}

}  // namespace

Status RunFast(Setup& setup, const std::function<void(const Line&)>& see) {
  if (setup.plan.inventory) return MeasureInventory(setup, see);
  MUSTER_RETURN_IF_ERROR(MeasureCold(setup, see));
  MUSTER_RETURN_IF_ERROR(MeasureFull(setup, see));
  return setup.plan.warm ? MeasureWarm(setup, see) : Status();
}

}  // namespace muster::bench
