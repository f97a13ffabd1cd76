// Small random worlds for the verbs that say what would happen: a fleet of a few types in two zones, a cluster with
// workloads that have come to rest, and now and then another cluster's demand.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cli/halves.h"
#include "model/requirement.h"
#include "model/workload_decode.h"
#include "sim/loop.h"

namespace muster::live {

inline constexpr const char* kCluster = "home";

// A loop that is asked as a running system is.
class LoopHalves final : public cli::Halves {
 public:
  explicit LoopHalves(sim::Loop& loop) : loop_(loop) {}
  Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) override {
    return loop_.Ask(kCluster, std::move(request));
  }
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override {
    return loop_.AskShard(std::move(request));
  }

 private:
  sim::Loop& loop_;
};

inline std::vector<model::Machine> RandomMachines(Rng& rng) {
  std::vector<model::Machine> machines;
  const int64_t types = rng.Between(2, 4);
  for (int64_t t = 0; t < types; ++t) {
    const int64_t cpu = int64_t{1} << rng.Between(1, 4);
    const bool spot = rng.Chance(1, 4);
    // Dear or cheap for its size, so that the smallest is not always the best.
    const int64_t micros = cpu * 25'000 * rng.Between(80, 120) / 100 / (spot ? 3 : 1);
    for (int64_t i = 0; i < rng.Between(3, 7); ++i) {
      model::Machine machine;
      machine.id = fmt::format("t{}-{}", t, i);
      machine.state = model::MachineState::kSpeculative;
      machine.instance_type = fmt::format("type-{}", t);
      machine.zone = i % 2 == 0 ? "a" : "b";
      machine.capacity_type = spot ? model::CapacityType::kSpot : model::CapacityType::kOnDemand;
      machine.price_per_hour = {micros};
      if (spot) machine.interruption_probability = {50'000};
      machine.resources = {{"cpu", cpu * 1000}, {"memory", (cpu << 30) * 1000}};
      machines.push_back(std::move(machine));
    }
  }
  return machines;
}

inline model::WorkloadSpec RandomSpec(Rng& rng, const std::string& name) {
  model::WorkloadSpec spec;
  spec.kind = rng.Chance(3, 4) ? model::WorkloadKind::kSet : model::WorkloadKind::kWorkload;
  spec.name = name;
  spec.labels = {{"app", name}};
  if (spec.kind == model::WorkloadKind::kSet) spec.replicas = static_cast<int32_t>(rng.Between(1, 7));
  spec.max_unavailable = {1};
  spec.spec.type = model::WorkloadType::kProcess;
  spec.spec.command = {"serve", fmt::to_string(rng.Below(3))};
  spec.spec.resources = {{"cpu", 500 * rng.Between(1, 7)}, {"memory", (int64_t{256} << 20) * 1000 * rng.Between(1, 6)}};
  spec.spec.priority = static_cast<int32_t>(100 * rng.Between(0, 2));
  spec.spec.grace = 2s;
  if (rng.Chance(1, 4)) {
    spec.spec.requirements = {{{std::string(model::kZoneKey), model::Operator::kIn, {rng.Chance(1, 2) ? "a" : "b"}}}};
  }
  if (rng.Chance(1, 12)) spec.spec.resources.Set("cpu", 40'000);  // no machine is so large
  return spec;
}

// What ties workloads to each other: spread, exclusion, co-location, and how many of a set must stay; and jobs.
inline void TieTogether(Rng& rng, model::WorkloadSpec& spec) {
  const auto key = [&] { return std::string(rng.Chance(1, 2) ? model::kZoneKey : "kubernetes.io/hostname"); };
  const bool members = spec.kind == model::WorkloadKind::kSet;
  if (members && rng.Chance(1, 3)) {
    spec.spec.spread = {{.spread = {.topology_key = key(),
                                    .max_skew = static_cast<int32_t>(rng.Between(1, 2)),
                                    .when = rng.Chance(2, 3) ? model::WhenUnsatisfiable::kDoNotSchedule
                                                             : model::WhenUnsatisfiable::kScheduleAnyway}}};
  }
  if (members && rng.Chance(1, 4)) {
    spec.spec.exclude = {{.topology_key = "kubernetes.io/hostname", .weight = rng.Chance(1, 2) ? 0 : 50}};
  } else if (members && rng.Chance(1, 4)) {
    spec.spec.colocate = {{.topology_key = key(), .weight = rng.Chance(1, 2) ? 0 : 50}};
  } else if (rng.Chance(1, 6)) {  // apart from the first of the world
    spec.spec.exclude = {{.topology_key = key(), .selector = {{{"app", model::Operator::kIn, {"app0"}}}}}};
    if (spec.name == "app0") spec.spec.exclude.clear();
  }
  if (members && rng.Chance(1, 3)) spec.min_available = {static_cast<int32_t>(rng.Between(1, spec.replicas))};
  if (members && rng.Chance(1, 6)) {
    spec.kind = model::WorkloadKind::kJob;
    spec.spec.restart = model::RestartPolicy::kOnFailure;
  }
}

inline void ApplyFile(sim::Loop& loop, const model::WorkloadFile& file) {
  for (const model::WorkloadSpec& spec : file.workloads) {
    const auto applied = loop.Ask(kCluster, contract::ApplySpec{.spec = spec});
    ASSERT_TRUE(applied.has_value()) << applied.error().ToString();
  }
}

struct RandomWorld {
  std::unique_ptr<sim::Loop> loop;  // at rest
  model::WorkloadFile change;       // an apply that would do something
};

// The worlds of a seed differ in what ties workloads to each other alone.
enum class Ties : uint8_t { kNone, kDrawn };

// `chance` is what is drawn while it runs: how long each message takes. The world is the same.
inline RandomWorld MakeRandomWorld(uint64_t seed, Ties ties = Ties::kNone, uint64_t chance = 0) {
  Rng rng(seed);
  Rng rng_of_ties(seed + 1'000'003);
  const auto spec_of = [&](const std::string& name) {
    model::WorkloadSpec spec = RandomSpec(rng, name);
    if (ties == Ties::kDrawn) TieTogether(rng_of_ties, spec);
    return spec;
  };
  sim::LoopStart start{
      .machines = RandomMachines(rng), .clusters = {{.id = kCluster}}, .settings = sim::LivelySettings()};
  start.seed = seed + 1'000'000 * chance;
  if (rng.Chance(1, 3)) {
    model::Need need;
    need.profile = model::Profile(model::ProfileParts{.priority = static_cast<int32_t>(100 * rng.Between(0, 2))});
    need.aggregate = {{"cpu", 1000 * rng.Between(2, 12)}};
    need.min_unit = {{"cpu", 1000}};
    start.others.push_back({.cluster = "other", .needs = {need}});
  }
  auto made = sim::Loop::Make(std::move(start));
  if (!made) {
    ADD_FAILURE() << made.error().ToString();
    return {};
  }
  RandomWorld world{.loop = *std::move(made), .change = {}};
  model::WorkloadFile base;
  for (int64_t i = 0; i < rng.Between(1, 3); ++i) base.workloads.push_back(spec_of(fmt::format("app{}", i)));
  ApplyFile(*world.loop, base);
  EXPECT_TRUE(world.loop->RunUntilSettled().settled) << "seed " << seed;
  // Something new, or something else of what is there.
  if (rng.Chance(1, 2)) {
    world.change.workloads.push_back(spec_of("new"));
  } else {
    model::WorkloadSpec spec = base.workloads[rng.Below(base.workloads.size())];
    if (spec.kind != model::WorkloadKind::kWorkload && rng.Chance(1, 2)) {
      spec.replicas = static_cast<int32_t>(rng.Between(0, 12));
    } else {
      spec.spec.resources.Set("cpu", 500 * rng.Between(1, 7));
    }
    world.change.workloads.push_back(std::move(spec));
  }
  return world;
}

}  // namespace muster::live
