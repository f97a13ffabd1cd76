#include "provider/sim_backend.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::provider {
namespace {

using contract::OperationKind;
using model::MachineState;

constexpr std::string_view kSmall = R"(
zones: [a, b]
racks: 2
notice: 10s
types:
  - name: owned
    capacity: bare-metal
    resources: {cpu: 8}
    price: 1
    share: 1
    starts: idle
    deletable: false
  - name: spot
    capacity: spot
    resources: {cpu: 4}
    price: 0.5
    interruption: 0.9
    share: 3
    create: {median: 10s, p99: 40s}
    drain: {median: 1h, p99: 2h}
    priceMoves: {every: 1m, by: 0.1, leastPercent: 90, mostPercent: 110}
)";

Catalogue Small() {
  auto catalogue = ReadCatalogue(kSmall, "small.yaml");
  EXPECT_TRUE(catalogue.has_value()) << catalogue.error().ToString();
  return *std::move(catalogue);
}

Now At(Duration since) { return {.mono = MonoTime(since), .wall = WallTime(1000h + since)}; }

contract::Operation Op(const std::string& id, OperationKind kind, const contract::Slot& slot, Duration grace = {}) {
  return {
      .id = id, .kind = kind, .machine = contract::MachineRecord(slot.machine), .bootstrap_blob = {}, .grace = grace};
}

std::vector<Report> RunUntil(SimBackend& backend, Duration until) {
  std::vector<Report> reports;
  while (backend.NextPoll() && *backend.NextPoll() <= MonoTime(until)) {
    backend.Poll(At(backend.NextPoll()->time_since_epoch()), reports);
  }
  return reports;
}

TEST(Catalogue, TheBuiltInOneHasEveryKindOfCapacity) {
  const auto slots = MakeSlots(DefaultCatalogue(), "sim", 1000);
  ASSERT_EQ(slots.size(), 1000u);
  std::map<model::CapacityType, int> kinds;
  for (const contract::Slot& slot : slots) {
    ++kinds[slot.machine.capacity_type];
    EXPECT_TRUE(model::CheckStructure(slot.machine).ok());
    EXPECT_TRUE(slot.machine.labels.contains("topology.bigfleet/rack"));
  }
  EXPECT_EQ(kinds[model::CapacityType::kBareMetal], 130);
  EXPECT_EQ(kinds[model::CapacityType::kReserved], 170);
  EXPECT_EQ(kinds[model::CapacityType::kOnDemand], 400);
  EXPECT_EQ(kinds[model::CapacityType::kSpot], 300);
  const auto fewer = MakeSlots(DefaultCatalogue(), "sim", 100);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), slots.begin(),
                         [](const auto& a, const auto& b) { return a.machine == b.machine; }));
}

TEST(Catalogue, SaysWhereItIsWrong) {
  const auto error = [](std::string_view text) {
    const auto read = ReadCatalogue(text, "c.yaml");
    return read ? std::string("accepted") : read.error().message();
  };
  EXPECT_EQ(error("zones: [a]"), "c.yaml:1:1: types: this field is required");
  EXPECT_EQ(error("zones: []\ntypes: []"), "c.yaml:1:8: zones: name at least one zone");
  EXPECT_EQ(error("zones: [a, b, a]\ntypes: []"), "c.yaml:1:8: zones: a zone is named twice");
  EXPECT_EQ(error("zones: [\"\"]\ntypes: []"), "c.yaml:1:8: zones: a zone's name must not be empty");
  const std::string head = "zones: [a]\ntypes:\n  - {name: t, capacity: spot, resources: {cpu: 1}, price: 1";
  EXPECT_EQ(error(head + "}"), "accepted");
  EXPECT_EQ(error("zones: [a]\ntypes:\n  - {name: '', capacity: spot, resources: {cpu: 1}, price: 1}"),
            "c.yaml:3:12: types[0].name: must not be empty");
  EXPECT_NE(error(head + ", zones: [b]}").find("b is not among the zones"), std::string::npos);
  EXPECT_NE(error(head + ", create: {median: 5s, p99: 1s}}").find("median must not be above p99"), std::string::npos);
  EXPECT_NE(error(head + ", shares: 3}").find("share"), std::string::npos);
  EXPECT_NE(error(head + ", share: 0}").find("no type has a share"), std::string::npos);
}

TEST(SimBackend, AnOperationTakesItsTimeAndEndsOnce) {
  SimBackend backend(Small(), {.machines = 8});
  const auto slots = backend.Slots();
  const auto spot = std::ranges::find_if(slots, [](const auto& s) { return s.machine.instance_type == "spot"; });
  backend.Start(1, Op("op-1", OperationKind::kCreate, *spot), At(0s));
  backend.Start(2, Op("op-1", OperationKind::kCreate, *spot), At(1s));
  EXPECT_GE(*backend.NextPoll(), MonoTime(5s)) << "half the median at least";
  const auto reports = RunUntil(backend, 90s);
  ASSERT_GE(reports.size(), 1u);
  const auto& ended = std::get<OperationEnded>(reports[0]);
  EXPECT_EQ(ended.call, 2u) << "whoever asked last";
  EXPECT_TRUE(ended.status.ok());
  EXPECT_EQ(ended.done.host.ref, "host-op-1");
  EXPECT_FALSE(ended.repeated);
  backend.Start(3, Op("op-1", OperationKind::kCreate, *spot), At(90s));
  const auto again = RunUntil(backend, 90s);
  ASSERT_GE(again.size(), 1u);
  EXPECT_TRUE(std::get<OperationEnded>(again[0]).repeated);
  EXPECT_EQ(std::get<OperationEnded>(again[0]).done.host.ref, "host-op-1");
}

TEST(SimBackend, ADrainEndsWithItsGrace) {
  SimBackend backend(Small(), {.machines = 8});
  const auto slots = backend.Slots();
  const auto spot = std::ranges::find_if(slots, [](const auto& s) { return s.machine.instance_type == "spot"; });
  backend.Start(1, Op("op-1", OperationKind::kDrain, *spot, 30s), At(0s));
  EXPECT_EQ(backend.NextPoll(), MonoTime(30s));
}

TEST(SimBackend, SpotMachinesAreTakenAwayAfterANotice) {
  SimBackend backend(Small(), {.machines = 8});
  const auto slots = backend.Slots();
  const auto spot = std::ranges::find_if(slots, [](const auto& s) { return s.machine.instance_type == "spot"; });
  backend.Start(1, Op("op-1", OperationKind::kCreate, *spot), At(0s));
  const auto reports = RunUntil(backend, 48h);
  ASSERT_EQ(reports.size(), 3u);
  const auto& noticed = std::get<contract::InterruptionNoticed>(std::get<contract::Observation>(reports[1]));
  const auto& lost = std::get<contract::MachineLost>(std::get<contract::Observation>(reports[2]));
  EXPECT_EQ(noticed.machine_id, spot->machine.id);
  EXPECT_EQ(lost.host_ref, "host-op-1");
}

TEST(SimBackend, ANoticeOutlivesARestart) {
  SimBackend backend(Small(), {.machines = 8});
  const auto slots = backend.Slots();
  model::Machine spot =
      std::ranges::find_if(slots, [](const auto& s) { return s.machine.instance_type == "spot"; })->machine;
  spot.state = MachineState::kIdle;
  spot.host = {.provider = "sim", .ref = "host-op-1"};
  spot.interruption_probability = {1'000'000};
  const std::vector<contract::MachineRecord> machines = {contract::MachineRecord(spot)};
  backend.Adopt(machines, At(0s));
  std::vector<contract::MachineLost> lost;
  for (const Report& report : RunUntil(backend, Small().notice)) {
    const auto& observed = std::get<contract::Observation>(report);
    if (const auto* gone = std::get_if<contract::MachineLost>(&observed)) lost.push_back(*gone);
  }
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].host_ref, "host-op-1");
}

TEST(SimBackend, PricesMoveWithinTheirBounds) {
  SimBackend backend(Small(), {.machines = 8});
  backend.Adopt({}, At(0s));
  int moves = 0;
  for (const Report& report : RunUntil(backend, 10h)) {
    const auto& moved = std::get<contract::MarketMoved>(std::get<contract::Observation>(report));
    EXPECT_GE(moved.price_per_hour.micros, 450'000);
    EXPECT_LE(moved.price_per_hour.micros, 550'000);
    ++moves;
  }
  EXPECT_EQ(moves, 2 * 600) << "every minute in two zones";
}

TEST(SimBackend, TheSeedDecidesEverything) {
  const auto run = [](uint64_t seed, bool reversed) {
    SimBackend backend(DefaultCatalogue(), {.machines = 200, .seed = seed});
    auto slots = backend.Slots();
    if (reversed) std::ranges::reverse(slots);
    contract::CallId call = 0;
    for (const contract::Slot& slot : slots) {
      if (slot.machine.state == MachineState::kSpeculative) {
        backend.Start(++call, Op("op-" + slot.machine.id, OperationKind::kCreate, slot), At(0s));
      }
    }
    std::map<std::string, std::string> ends;
    for (const Report& report : RunUntil(backend, 30min)) {
      if (const auto* ended = std::get_if<OperationEnded>(&report)) ends[ended->machine_id] = ended->status.ToString();
    }
    return ends;
  };
  EXPECT_EQ(run(1, false), run(1, true)) << "not the order of calls";
  EXPECT_NE(run(1, false), run(2, false));
}

}  // namespace
}  // namespace muster::provider
