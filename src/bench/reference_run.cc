#include "bench/reference_run.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string_view>

#include "bench/cycle_digest.h"
#include "bench/light_provider.h"
#include "bench/process.h"
#include "engine/reference/decide.h"

namespace muster::bench {

Status RunReference(const Setup& setup, const std::function<void(const Line&)>& see) {
  constexpr uint64_t kMostPairs = 200'000'000;
  const uint64_t pairs = uint64_t{setup.world.machines.size()} * setup.world.needs.size();
  if (pairs > kMostPairs) {
    return {Code::kInvalidArgument,
            fmt::format("{}: the reference engine looks at every machine for every need, and {} x {} would take it "
                        "minutes or hours; give a --scale below {:.2g}",
                        setup.plan.shape, setup.world.machines.size(), setup.world.needs.size(),
                        std::floor(100 * setup.options.scale *
                                   std::sqrt(static_cast<double>(kMostPairs) / static_cast<double>(pairs))) /
                            100)};
  }
  std::map<std::string_view, int64_t> price;
  for (const model::Machine& machine : setup.world.machines) price[machine.id] = machine.price_per_hour.micros;
  Line line = setup.NewLine("cold");
  Meter meter;
  MUSTER_RETURN_IF_ERROR(SampleFor(setup.options.seconds, 1, 1000, [&]() -> Status {
    engine::Memory memory;
    meter.Start();
    const engine::Decision decision = engine::reference::Decide(setup.world, memory, kStart.mono, setup.policy);
    meter.Stop();
    line.digest = CycleDigest(decision);
    line.decided = decision.needs.size();
    line.outcomes = {};
    int64_t cost = LightProvider::CostMicros(setup.world.machines);
    for (const engine::Action& action : decision.actions) {
      line.outcomes.Count(action.kind);
      if (action.kind == engine::ActionKind::kProvision) cost += price.at(action.machine);
      if (action.kind == engine::ActionKind::kDelete) cost -= price.at(action.machine);
    }
    for (const engine::NeedVerdict& need : decision.needs) line.outcomes.unsatisfied += need.satisfied ? 0 : 1;
    line.cost_per_hour = static_cast<double>(cost) / 1e6;
    return {};
  }));
  meter.Tell(line);
  line.rss_mb = static_cast<double>(ResidentBytes() - setup.resident_before) / (1 << 20);
  see(line);
  return {};
}

}  // namespace muster::bench
