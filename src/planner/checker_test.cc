// A plan that holds, and the same plan corrupted in one thing each time: the checker names the breach.
#include "planner/checker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace muster::planner {
namespace {

constexpr const char* kHost = "kubernetes.io/hostname";

placement::Selector App(const std::string& app) {
  return {.given = true, .all = {{.key = "app", .op = model::Operator::kIn, .values = {app}}}};
}

// Units with one rule each, a node that is kept, and types in two zones and two pools.
class Example {
 public:
  Example() {
    const std::string zone(model::kZoneKey);
    Catalogue catalogue;
    MachineType type{.name = "large", .capacity = {{"cpu", 8000}, {"memory", 8000}}, .devices = {1000, 1000}};
    type.offers = {{.zone = "a", .price = {800}}, {.zone = "b", .price = {800}}};
    catalogue.types.push_back(type);
    request_.candidates = MakeCandidates(
        catalogue, {{.name = "plain"}, {.name = "tainted", .labels = {{"disk", "fast"}}, .taints = {{.key = "only"}}}});
    placement::Node node{.id = "old", .labels = {{zone, "a"}, {kHost, "old"}}};
    node.total = {{"cpu", 4000}, {"memory", 4000}};
    request_.world.nodes.push_back(node);
    request_.nodes["old"] = {.price = model::Money{500}};
    request_.keep = Keep::kNodes;
    request_.exact = true;

    placement::Kind hermit = Plain("hermit");
    hermit.exclude.push_back({.topology_key = kHost, .selector = App("stranger")});
    request_.world.placed.push_back({.unit = {.id = "hermit-0", .kind = kinds_.Add(hermit)}, .node = "old"});
    Add("stranger", 1, Plain("stranger"));
    placement::Kind alone = Plain("alone");
    alone.exclude.push_back({.topology_key = kHost, .selector = App("alone")});
    Add("alone", 2, alone);
    placement::Kind spread = Plain("spread");
    spread.spread.push_back({.topology_key = zone, .selector = App("spread")});
    Add("spread", 2, spread);
    placement::Kind host = Plain("host");
    host.spread.push_back({.topology_key = kHost, .selector = App("host")});
    Add("host", 2, host);
    placement::Kind together = Plain("together");
    together.colocate.push_back({.topology_key = zone, .selector = App("together")});
    Add("together", 2, together);
    placement::Kind port = Plain("port");
    port.ports.push_back({.port = 80});
    Add("port", 2, port);
    placement::Kind fast = Plain("fast");
    fast.requirements.push_back({.key = "disk", .op = model::Operator::kIn, .values = {"fast"}});
    fast.tolerations.push_back({.key = "only", .exists = true});
    Add("fast", 1, fast);
    placement::Kind device = Plain("device");
    device.devices.whole = 1;
    Add("device", 2, device);
    placement::Kind huge = Plain("huge");
    huge.request = {{"cpu", 9000}};
    Add("huge", 1, huge);
    request_.world.kinds = kinds_.Take();
    auto plan = MakePlan(request_);
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
    if (plan) plan_ = *plan;
  }

  static placement::Kind Plain(const std::string& app) {
    placement::Kind kind;
    kind.labels = {{"app", app}};
    kind.request = {{"cpu", 500}, {"memory", 500}};
    return kind;
  }
  void Add(const std::string& app, int count, const placement::Kind& kind) {
    const placement::KindIndex index = kinds_.Add(kind);
    for (int i = 0; i < count; ++i) request_.pending.push_back({.id = fmt::format("{}-{}", app, i), .kind = index});
  }
  Assignment& Of(const std::string& unit) { return *std::ranges::find(plan_.assignments, unit, &Assignment::unit); }
  std::string Zone(const std::string& node) {
    const auto machine = std::ranges::find(plan_.machines, node, &PlannedMachine::id);
    return machine == plan_.machines.end() ? "a" : request_.candidates[machine->candidate].zone;
  }
  // A machine that the predicate accepts, other than the unit's own.
  std::string Other(const std::string& unit, const std::function<bool(const Candidate&)>& accept) {
    for (const PlannedMachine& machine : plan_.machines) {
      if (machine.id != Of(unit).node && accept(request_.candidates[machine.candidate])) return machine.id;
    }
    ADD_FAILURE() << "no other machine for " << unit;
    return "";
  }

  Request request_;
  Plan plan_;
  placement::KindTable kinds_;
};

bool Says(const std::vector<std::string>& findings, const std::string& words) {
  return std::ranges::any_of(findings, [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

struct Corruption {
  const char* name;
  const char* says;
  std::function<void(Example&)> corrupt;
};

std::vector<Corruption> Corruptions() {
  return {
      {"a unit is dropped", "neither assigned nor unplaced", [](Example& e) { e.plan_.assignments.pop_back(); }},
      {"a unit is assigned twice", "it is assigned twice",
       [](Example& e) { e.plan_.assignments.push_back(e.plan_.assignments[0]); }},
      {"a unit nobody asked for", "was not asked for",
       [](Example& e) { e.plan_.assignments.push_back({.unit = "ghost", .node = "old"}); }},
      {"a node that is not there", "there is no node", [](Example& e) { e.Of("alone-0").node = "nowhere"; }},
      {"assigned and unplaced", "both assigned and unplaced",
       [](Example& e) { e.plan_.unplaced.push_back({.unit = "alone-0"}); }},
      {"unplaced but not asked for", "unplaced, but it was not asked for",
       [](Example& e) { e.plan_.unplaced.push_back({.unit = "ghost"}); }},
      {"two machines of one id", "the id is there twice",
       [](Example& e) { e.plan_.machines.push_back(e.plan_.machines[0]); }},
      {"a candidate that is not there", "there is no candidate",
       [](Example& e) { e.plan_.machines[0].candidate = 99; }},
      {"an empty machine", "nothing runs on it",
       [](Example& e) { e.plan_.machines.push_back({.id = "idle", .candidate = 0}); }},
      {"too much on a node", "of cpu is more than its",
       [](Example& e) { e.request_.world.kinds[e.request_.pending[1].kind.value()].request.Set("cpu", 8001); }},
      {"too much memory", "of memory is more than its",
       [](Example& e) { e.request_.world.kinds[e.request_.pending[1].kind.value()].request.Set("memory", 8001); }},
      {"a label that the unit asks for", "does not allow its labels",
       [](Example& e) {
         e.Of("fast-0").node = e.Other("fast-0", [](const Candidate& c) { return c.pool == "plain"; });
       }},
      {"a taint", "does not tolerate its taints", [](Example& e) { e.Of("alone-0").node = e.Of("fast-0").node; }},
      {"a host port", "use host port 80", [](Example& e) { e.Of("port-0").node = e.Of("port-1").node; }},
      {"spread over zones", "breaks its spread over topology",
       [](Example& e) { e.Of("spread-0").node = e.Of("spread-1").node; }},
      {"spread over hosts", "breaks its spread over kubernetes.io/hostname",
       [](Example& e) { e.Of("host-0").node = e.Of("host-1").node; }},
      {"exclusion of its own", "excludes another", [](Example& e) { e.Of("alone-0").node = e.Of("alone-1").node; }},
      {"exclusion by a unit that stays", "excludes another", [](Example& e) { e.Of("stranger-0").node = "old"; }},
      {"co-location", "is not near those it must be near",
       [](Example& e) {
         const std::string zone = e.Zone(e.Of("together-1").node);
         e.Of("together-0").node = e.Other("together-0", [&](const Candidate& c) { return c.zone != zone; });
       }},
      {"a device twice", "is taken twice",
       [](Example& e) {
         e.Of("device-0").node = e.Of("device-1").node;
         e.Of("device-0").devices = e.Of("device-1").devices;
       }},
      {"a device that is not there", "has no device 7", [](Example& e) { e.Of("device-0").devices = {7}; }},
      {"no device", "it has 0 devices and asks for 1", [](Example& e) { e.Of("device-0").devices.clear(); }},
      {"more devices than a node has that is there", "thousandths of devices are more than its 0",
       [](Example& e) {
         e.Of("device-0").node = "old";
         e.Of("device-0").devices.clear();
       }},
      {"a cordoned node", "it is cordoned",
       [](Example& e) {
         e.request_.world.nodes[0].cordoned = true;
         e.Of("alone-0").node = "old";
       }},
      {"a node that is not ready", "it is not ready",
       [](Example& e) {
         e.request_.world.nodes[0].ready = false;
         e.Of("alone-0").node = "old";
       }},
      {"the price of the machines", "the machines cost", [](Example& e) { --e.plan_.cost_machines.micros; }},
      {"the price before", "the nodes cost", [](Example& e) { e.plan_.cost_before = model::Money{1}; }},
      {"the price after", "all nodes together cost", [](Example& e) { e.plan_.cost_after = model::Money{1}; }},
      {"a price in spite of an unpriced node", "needs the price of every node",
       [](Example& e) { e.request_.nodes.clear(); }},
      {"a bound above the cost", "is above the cost",
       [](Example& e) {
         e.plan_.unplaced.clear();
         e.plan_.lower_bound = {1'000'000};
       }},
      {"what the replay added", "the replay added", [](Example& e) { e.plan_.replay.machines_added = 3; }},
      {"utilisation", "is requested", [](Example& e) { ++e.plan_.utilisation[0].requested; }},
  };
}

TEST(Checker, AcceptsThePlan) {
  Example example;
  EXPECT_EQ(CheckPlan(example.request_, example.plan_), std::vector<std::string>());
  ASSERT_EQ(example.plan_.unplaced.size(), 1U);
  EXPECT_EQ(example.plan_.unplaced[0].unit, "huge-0");
  EXPECT_EQ(example.plan_.unplaced[0].reason, placement::Reason::kCpu);
  EXPECT_EQ(example.plan_.unplaced[0].nearest_type, "large");
  EXPECT_EQ(example.plan_.unplaced[0].nearest_needs, "1 more cpu");
}

TEST(Checker, RejectsEveryCorruptedPlan) {
  const std::vector<Corruption> corruptions = Corruptions();
  EXPECT_GE(corruptions.size(), 30U);
  for (const Corruption& corruption : corruptions) {
    Example example;
    corruption.corrupt(example);
    const std::vector<std::string> findings = CheckPlan(example.request_, example.plan_);
    EXPECT_TRUE(Says(findings, corruption.says))
        << corruption.name << ": " << fmt::format("{}", fmt::join(findings, "; "));
  }
}

}  // namespace
}  // namespace muster::planner
