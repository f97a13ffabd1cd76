// The benchmark shapes have the numbers they are known by, and what the reference engine makes of them.
#include "engine/shapes/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/reference/decide.h"
#include "engine/shapes/parts.h"

namespace muster::engine {
namespace {

using model::MachineState;
using shapes::kRackKey;

template <class Key, class Items, class KeyOf>
std::map<Key, int64_t> CountBy(const Items& items, KeyOf key_of) {
  std::map<Key, int64_t> counts;
  for (const auto& item : items) ++counts[key_of(item)];
  return counts;
}

std::string RackOf(const model::Machine& machine) { return std::string(machine.Attribute(kRackKey).value_or("")); }

bool IsGang(const model::Need& need) {
  return std::ranges::count(need.profile.requirements(), model::Operator::kSame, &model::Requirement::op) > 0;
}

// Bare-metal fleets that are given back at once, so that a single cycle shows everything.
Decision DecideOnce(const World& world) {
  Memory memory;
  return reference::Decide(world, memory, MonoTime(std::chrono::hours(1)), {.surplus_hold = 0s});
}

std::map<ActionKind, int64_t> Actions(const Decision& decision) {
  return CountBy<ActionKind>(decision.actions, [](const Action& action) { return action.kind; });
}

int64_t CountShort(const Decision& decision) {
  return std::ranges::count(decision.needs, false, &NeedVerdict::satisfied);
}

TEST(Shapes, AreFoundByName) {
  EXPECT_TRUE(std::ranges::is_sorted(Shapes(), {}, &Shape::name));
  for (const Shape& shape : Shapes()) {
    EXPECT_EQ(FindShape(shape.name), &shape);
    EXPECT_FALSE(shape.summary.empty());
  }
  EXPECT_EQ(FindShape("realistic"), nullptr);
}

TEST(Shapes, AreSoundWorlds) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape.name);
    const World world = shape.build({.times = 1, .parts = 10});
    std::set<std::string_view> ids;
    for (const model::Machine& machine : world.machines) {
      ASSERT_TRUE(CheckStructure(machine).ok()) << CheckStructure(machine).message();
      ASSERT_TRUE(ids.insert(machine.id).second) << machine.id;
    }
    for (const model::Need& need : world.needs) {
      ASSERT_TRUE(world.clusters.contains(need.cluster));
      ASSERT_TRUE(need.aggregate.Covers(need.min_unit));
    }
  }
}

TEST(Shapes, ScaleMultipliesMachinesAndClusters) {
  struct Row {
    std::string_view name;
    size_t machines, clusters, needs;
  };
  for (const Row& row : {Row{"cold-mixed", 5000, 100, 1000}, Row{"colocated-5k", 18'000, 20, 2580},
                         Row{"gangs-100k", 100'000, 20'000, 20'000}, Row{"realistic-50k", 60'000, 50, 50'000},
                         Row{"realistic-50k-same", 60'000, 50, 50'000}}) {
    SCOPED_TRACE(row.name);
    const World tenth = FindShape(row.name)->build({.times = 1, .parts = 10});
    EXPECT_EQ(tenth.machines.size(), row.machines / 10);
    EXPECT_EQ(tenth.clusters.size(), row.clusters / 10);
    EXPECT_EQ(tenth.needs.size(), row.needs / 10);
    const World whole = FindShape(row.name)->build({});
    EXPECT_EQ(whole.machines.size(), row.machines);
    EXPECT_EQ(whole.clusters.size(), row.clusters);
    EXPECT_EQ(whole.needs.size(), row.needs);
  }
  EXPECT_EQ((Scale{.times = 1, .parts = 1000}.Of(20)), 1);
}

TEST(Shapes, BigFleetsAtATenth) {
  struct Row {
    std::string_view name;
    size_t machines, clusters, needs;
  };
  for (const Row& row :
       {Row{"aggregated-500k", 50'000, 5, 80}, Row{"degenerate-100k", 10'000, 5, 500},
        Row{"inventory-500k", 50'000, 5, 0}, Row{"inventory-60k", 6000, 5, 0}, Row{"inversions-500k", 50'000, 11, 10},
        Row{"keep-450k", 45'000, 5, 5}, Row{"no-victims-450k", 45'000, 15, 10}, Row{"one-to-one-500k", 50'000, 5, 80},
        Row{"one-to-one-500k-single", 50'000, 5, 50'000}, Row{"reclaim-500k", 50'000, 5, 15},
        Row{"uber-500k", 225'200, 200, 46'347}}) {
    SCOPED_TRACE(row.name);
    const World tenth = FindShape(row.name)->build({.times = 1, .parts = 10});
    EXPECT_EQ(tenth.machines.size(), row.machines);
    EXPECT_EQ(tenth.clusters.size(), row.clusters);
    EXPECT_EQ(tenth.needs.size(), row.needs);
  }
}

TEST(Shapes, DegenerateHasNothingTwice) {
  const World world = Degenerate100k({.times = 1, .parts = 100});
  EXPECT_EQ(CountBy<std::string>(world.machines, RackOf).size(), world.machines.size());
  EXPECT_EQ(CountBy<int64_t>(world.machines, [](const auto& m) { return m.price_per_hour.micros; }).size(),
            world.machines.size());
  EXPECT_EQ(CountBy<std::string>(world.needs, [](const auto& n) { return n.profile.fingerprint(); }).size(),
            world.needs.size());
}

// Which archetype has how many machines in each tier, and how demand is mixed.
TEST(Shapes, UberHasItsTiers) {
  const World world = Uber5k({});
  const auto state_of = [](const model::Machine& m) { return m.state; };
  const std::map<MachineState, int64_t> tiers{
      {MachineState::kSpeculative, 15'000}, {MachineState::kIdle, 1006}, {MachineState::kConfigured, 6520}};
  EXPECT_EQ(CountBy<MachineState>(world.machines, state_of), tiers);
  EXPECT_EQ(CountBy<std::string>(world.machines, RackOf).size(), 12U);
  EXPECT_EQ(world.needs.size(), 4636U);
  EXPECT_EQ(std::ranges::count_if(world.needs, IsGang), 4456);
  int64_t pods = 0;  // of tiny-stateless: three quarters of 25,000 a cluster
  for (const model::Need& need : world.needs) {
    if (need.profile.interruption() == shapes::BucketOf(32)) pods += need.aggregate.Get("cpu") / 360;
  }
  EXPECT_NEAR(static_cast<double>(pods), 20 * 18'853, 20 * 1000);
}

TEST(Shapes, RealisticHasItsMix) {
  const World world = Realistic50k({});
  const std::map<std::string, int64_t> types{{"c6i.4xlarge", 8500},    {"m6i.2xlarge", 7500},   {"c6i.8xlarge", 7000},
                                             {"n2-standard-32", 7000}, {"m6i.large", 6000},     {"m6i.xlarge", 6000},
                                             {"a3-highgpu-1g", 4500},  {"a2-highgpu-1g", 4500}, {"a3-highgpu-8g", 3000},
                                             {"r6i.xlarge", 3000},     {"r6i.2xlarge", 3000}};
  EXPECT_EQ(CountBy<std::string>(world.machines, [](const auto& m) { return m.instance_type; }), types);
  EXPECT_EQ(CountBy<std::string>(world.machines, RackOf).size(), 48U);
  const auto class_of = [](const model::Machine& m) {
    return std::tuple(m.instance_type, m.zone, RackOf(m), m.resources.ToString());
  };
  EXPECT_EQ((CountBy<std::tuple<std::string, std::string, std::string, std::string>>(world.machines, class_of).size()),
            144U);

  EXPECT_EQ(std::ranges::count_if(world.needs, IsGang), 7500);
  const std::map<int32_t, int64_t> priorities{{100, 21'000}, {1000, 26'500}, {1'000'000, 2500}};
  EXPECT_EQ(CountBy<int32_t>(world.needs, [](const auto& n) { return n.profile.priority(); }), priorities);
  EXPECT_EQ(CountBy<std::string>(world.needs, [](const auto& n) { return n.profile.fingerprint(); }).size(), 13U);
  const auto shape_of = [](const model::Need& n) { return n.profile.fingerprint() + n.aggregate.ToString(); };
  EXPECT_EQ(CountBy<std::string>(world.needs, shape_of).size(), 36U);

  const World same = Realistic50kSame({});
  EXPECT_EQ(std::ranges::count_if(same.needs, IsGang), 50'000);
  EXPECT_EQ(CountBy<std::string>(same.needs, [](const auto& n) { return n.profile.fingerprint(); }).size(), 13U);
  EXPECT_EQ(same.machines, world.machines);
}

// [P1.pool-order] [P1.best-cover] The smaller first: a machine that is as cheap and larger is left for those who can
// use no other, so every need gets a machine of its own size.
TEST(Shapes, RealisticLeavesNoNeedShort) {
  const Decision plain = DecideOnce(Realistic50k({.times = 1, .parts = 10}));
  EXPECT_EQ(plain.needs.size(), 4290U);  // 750 gangs in 40 folded needs
  EXPECT_EQ(CountShort(plain), 0);
  EXPECT_EQ(Actions(plain), (std::map<ActionKind, int64_t>{{ActionKind::kBootstrap, 5000}}));

  const Decision same = DecideOnce(Realistic50kSame({.times = 1, .parts = 10}));
  EXPECT_EQ(same.needs.size(), 180U);
  EXPECT_EQ(CountShort(same), 0);
  EXPECT_EQ(Actions(same), (std::map<ActionKind, int64_t>{{ActionKind::kBootstrap, 5000}}));
}

// The same fleet priced so that the pool is in the order of running numbers: big machines go to whoever comes first.
TEST(Shapes, RealisticTellsSmallerFirstFromOtherOrders) {
  World world = Realistic50k({.times = 1, .parts = 10});
  for (size_t i = 0; i < world.machines.size(); ++i) world.machines[i].price_per_hour.micros = static_cast<int64_t>(i);
  EXPECT_GT(CountShort(DecideOnce(world)), 100);
}

TEST(Shapes, GangsOfOneMachineAreAllServed) {
  const World whole = Gangs100k({});
  for (const auto& [rack, count] : CountBy<std::string>(whole.machines, RackOf)) EXPECT_EQ(count, 12'500) << rack;
  EXPECT_EQ(std::ranges::count_if(whole.needs, IsGang), 20'000);

  const Decision decision = DecideOnce(Gangs100k({.times = 1, .parts = 100}));
  EXPECT_EQ(decision.needs.size(), 200U);  // all folded, one a cluster
  EXPECT_EQ(CountShort(decision), 0);
  EXPECT_EQ(Actions(decision), (std::map<ActionKind, int64_t>{{ActionKind::kBootstrap, 200}}));
}

TEST(Shapes, ColocatedHasItsRacks) {
  const World world = Colocated5k({});
  EXPECT_EQ(std::ranges::count_if(world.needs, IsGang), 2540);
  std::map<std::pair<MachineState, std::string>, int64_t> types;
  std::map<std::pair<MachineState, std::string>, int64_t> racks;  // of bound machines, those of one cluster
  for (const model::Machine& machine : world.machines) {
    if (machine.state == MachineState::kConfigured && machine.cluster != "c-0") continue;
    ++types[{machine.state, machine.instance_type}];
    if (!RackOf(machine).empty()) ++racks[{machine.state, RackOf(machine)}];
  }
  const auto count = [&](MachineState state, const char* type) { return types[{state, type}]; };
  EXPECT_EQ(count(MachineState::kConfigured, "m6i.large"), 175);
  EXPECT_EQ(count(MachineState::kConfigured, "m6i.xlarge"), 30);
  EXPECT_EQ(count(MachineState::kConfigured, "r6i.2xlarge"), 30);
  EXPECT_EQ(count(MachineState::kConfigured, "a3-highgpu-8g"), 15);
  EXPECT_EQ(count(MachineState::kIdle, "m6i.large"), 334);
  EXPECT_EQ(count(MachineState::kIdle, "r6i.2xlarge"), 333);
  EXPECT_EQ(count(MachineState::kIdle, "a3-highgpu-8g"), 333);
  for (const char* type : {"m6i.large", "r6i.2xlarge", "a3-highgpu-8g"}) {
    EXPECT_EQ(count(MachineState::kSpeculative, type), 4000);
  }
  const auto in_rack = [&](const char* rack) { return racks[{MachineState::kConfigured, rack}]; };
  EXPECT_EQ(in_rack("zone-a-cache-rack-0"), 8);
  EXPECT_EQ(in_rack("zone-a-cache-rack-3"), 6);
  EXPECT_EQ(in_rack("zone-a-gpu-rack-0"), 8);
  EXPECT_EQ(in_rack("zone-a-gpu-rack-1"), 7);
  for (const auto& [rack, machines] : racks) {
    if (rack.first == MachineState::kConfigured) continue;
    const bool idle = rack.first == MachineState::kIdle;
    EXPECT_GE(machines, idle ? 20 : 250) << rack.second;
    EXPECT_LE(machines, idle ? 33 : 375) << rack.second;
  }
}

TEST(Shapes, ColocatedIsShortOfOneTypeOnly) {
  const Decision decision = DecideOnce(Colocated5k({.times = 1, .parts = 10}));
  EXPECT_EQ(decision.needs.size(), 70U);  // per cluster: tiny, service, the cache gangs in one, 32 GPU gangs
  for (const NeedVerdict& verdict : decision.needs) {
    const bool service = verdict.need.profile.fingerprint().find(":m6i.xlarge|") != std::string::npos;
    EXPECT_EQ(verdict.satisfied, !service) << verdict.need.profile.fingerprint();
  }
}

TEST(Shapes, ColdMixedServesEveryPriority) {
  const World whole = ColdMixed({});
  const auto bucket_of = [](const model::Machine& m) { return m.instance_type + m.zone; };
  const auto buckets = CountBy<std::string>(whole.machines, bucket_of);
  EXPECT_EQ(buckets.size(), 4U);
  for (const auto& [bucket, count] : buckets) EXPECT_EQ(count, 1250) << bucket;
  const std::map<int32_t, int64_t> priorities{{100, 334}, {1000, 333}, {10'000, 333}};
  EXPECT_EQ(CountBy<int32_t>(whole.needs, [](const auto& n) { return n.profile.priority(); }), priorities);

  const Decision decision = DecideOnce(ColdMixed({.times = 1, .parts = 10}));
  EXPECT_EQ(CountShort(decision), 0);
  EXPECT_EQ(Actions(decision), (std::map<ActionKind, int64_t>{{ActionKind::kBootstrap, 400}}));
}

}  // namespace
}  // namespace muster::engine
