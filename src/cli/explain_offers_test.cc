#include "cli/explain_offers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/requirement.h"

namespace muster::cli {
namespace {

contract::MachineView MachineOf(const std::string& type, int64_t cpu, int64_t micros, const std::string& zone = "a") {
  model::Machine machine;
  machine.id = type + "-" + zone;
  machine.instance_type = type;
  machine.zone = zone;
  machine.capacity_type = model::CapacityType::kOnDemand;
  machine.price_per_hour = {micros};
  machine.resources = {{"cpu", cpu * 1000}};
  return {.machine = contract::MachineRecord(machine)};
}

contract::NeedView ShortOf(int64_t cpu, model::ProfileParts parts = {}) {
  contract::NeedView view;
  view.need.cluster = "blue";
  view.need.profile = model::Profile(std::move(parts));
  view.need.aggregate = {{"cpu", 100'000}};
  view.need.min_unit = {{"cpu", 2'000}};
  view.residual = {{"cpu", cpu * 1000}};
  return view;
}

TEST(ResidualCost, IsThatOfTheCheapestKindThatCoversIt) {
  const std::vector<contract::MachineView> machines = {MachineOf("tiny", 1, 1'000), MachineOf("small", 2, 50'000),
                                                       MachineOf("large", 8, 190'000)};
  // A unit of two cpu does not fit on a tiny one. Three small ones are cheaper than a large one, four are not.
  const auto three = CheapestFor(ShortOf(5), machines);
  ASSERT_TRUE(three.has_value());
  EXPECT_EQ(ResidualText(*three), "3 more small (on-demand) would cover that for $0.15/h");
  const auto one = CheapestFor(ShortOf(8), machines);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(ResidualText(*one), "1 more large (on-demand) would cover that for $0.19/h");
  EXPECT_EQ(one->price.micros, 190'000);
}

TEST(ResidualCost, IsUnknownWhereNoMachineCouldServe) {
  const std::vector<contract::MachineView> machines = {MachineOf("small", 2, 50'000, "a")};
  const model::ProfileParts in_b{.requirements = {{std::string(model::kZoneKey), model::Operator::kIn, {"b"}}}};
  EXPECT_FALSE(CheapestFor(ShortOf(5, in_b), machines).has_value());
  EXPECT_FALSE(CheapestFor(ShortOf(5), {}).has_value());
  contract::NeedView satisfied = ShortOf(5);
  satisfied.satisfied = true;
  EXPECT_FALSE(CheapestFor(satisfied, machines).has_value());
  contract::NeedView of_gpus = ShortOf(0);
  of_gpus.residual = {{"nvidia.com/gpu", 1000}};
  EXPECT_FALSE(CheapestFor(of_gpus, machines).has_value()) << "however many";
}

TEST(ResidualCost, OneMachineOfEachKindGivesTheSameAnswers) {
  std::vector<contract::MachineView> machines;
  for (int i = 0; i < 100; ++i) {
    model::Machine machine = *MachineOf("small", 2, 50'000, i % 2 == 0 ? "a" : "b").machine;
    machine.id = fmt::format("m-{}", i);
    machine.labels = {{"kubernetes.io/hostname", machine.id}};
    if (i == 99) machine.price_per_hour = {40'000};
    machines.push_back({.machine = contract::MachineRecord(machine)});
  }
  const model::ProfileParts in_b{.requirements = {{std::string(model::kZoneKey), model::Operator::kIn, {"b"}}}};
  const std::vector<contract::NeedView> needs = {ShortOf(5), ShortOf(5, in_b)};
  EXPECT_EQ(OneOfEachKind(machines, {ShortOf(5)}).size(), 2U) << "two prices";
  const std::vector<contract::MachineView> kinds = OneOfEachKind(machines, needs);
  EXPECT_EQ(kinds.size(), 3U) << "and two zones";
  for (const contract::NeedView& need : needs) {
    ASSERT_TRUE(CheapestFor(need, kinds).has_value());
    EXPECT_EQ(ResidualText(*CheapestFor(need, kinds)), ResidualText(*CheapestFor(need, machines)));
    EXPECT_EQ(CheapestFor(need, kinds)->price.micros, 120'000);
  }
}

}  // namespace
}  // namespace muster::cli
