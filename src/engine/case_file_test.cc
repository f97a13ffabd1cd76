#include "engine/case_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/bind_stamp.h"

namespace muster::engine {
namespace {

using model::MachineState;

// Everything the format has, once.
constexpr std::string_view kWhole = R"(about: everything
rules: [O.order, P1.cover]
now: "2026-02-01T00:00:00Z"
cycleEvery: 10s
cycles: 7
policy:
  surplusHold: 0s
  releaseHold: {onDemand: 5m, spot: 30s}
  victimWeights: {priorityGap: 2, drainSpeed: 0.5, interruption: 0.000001, reclamation: 0}
  parkAfter: 3
  reprobeEvery: 4
dwell: {create: 1, configure: 2, drain: 3, remove: 4, stopAtIdle: true}
types:
  m5: {capacityType: on-demand, price: 0.40, interruptionProbability: 0.5, resources: {cpu: 8}, labels: {rack: r1, tier: gold}}
machines:
  - {id: a, count: 11, type: m5, state: Idle, labels: {rack: r2}, idleFor: 3m, pledgedTo: web}
  - {id: b, type: m5, instanceType: other, state: Configured, boundFor: web, unclaimedFor: 1m, price: 1}
  - {id: c, state: Draining, cluster: prod, boundFor: {fingerprint: f, group: g, priority: 5, interruptionPenalty: 2, reclamationPenalty: pinned}, drainingFor: 2s}
clusters:
  - id: prod
    session: false
    gate: shut
    reclaimsAllowed: 2
    paused: true
    onHold: true
    needs:
      - {name: web, priority: 9, interruptionPenalty: 4, aggregate: {cpu: 4}, group: x}
      - {aggregate: {cpu: 1}}
holds:
  machines: [a-03, b]
  pairs: [{machine: a-04, cluster: prod}]
  classes: [{instanceType: m5, zone: z, capacityType: spot}, {instanceType: m6}]
steps:
  - at: 3
    advance: 1h
    forget: true
    holds: {}
    clusters: [{id: prod, session: true}, {id: new, needs: []}]
    remove: [b]
    change:
      - {ids: [a-00, c], price: 3, interruptionProbability: 0.25, labels: {rack: r9}}
      - {type: m5, failed: fire}
    machines: [{id: b, state: Speculative, resources: {cpu: 1}}]
expect: |
  something
)";

TEST(CaseFile, ReadsEverything) {
  const auto read = ReadCase(kWhole, "case.yaml");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->about, "everything");
  EXPECT_EQ(read->rules, (std::vector<std::string>{"O.order", "P1.cover"}));
  EXPECT_EQ(read->start, WallTime(1'769'904'000s));
  EXPECT_EQ(read->cycle_every, 10s);
  EXPECT_EQ(read->cycles, 7);
  EXPECT_EQ(read->expect, "something\n");
  EXPECT_EQ(read->policy.surplus_hold, 0s);
  EXPECT_EQ(read->policy.release_hold_on_demand, 5min);
  EXPECT_EQ(read->policy.release_hold_spot, 30s);
  EXPECT_EQ(read->policy.victim_weights.priority_gap, 2'000'000);
  EXPECT_EQ(read->policy.victim_weights.drain_speed, 500'000);
  EXPECT_EQ(read->policy.victim_weights.interruption, 1);
  EXPECT_EQ(read->policy.victim_weights.reclamation, 0);
  EXPECT_EQ(read->policy.park_after, 3);
  EXPECT_EQ(read->policy.reprobe_every, 4);
  EXPECT_EQ(read->dwell.create, 1);
  EXPECT_EQ(read->dwell.configure, 2);
  EXPECT_EQ(read->dwell.drain, 3);
  EXPECT_EQ(read->dwell.remove, 4);
  EXPECT_TRUE(read->dwell.stop_at_idle);
  ASSERT_EQ(read->steps.size(), 2u);
  EXPECT_EQ(read->steps[0].at, 1);
}

TEST(CaseFile, MachinesTakeFromTypesNeedsAndCounts) {
  const auto read = ReadCase(kWhole, "case.yaml");
  ASSERT_TRUE(read) << read.error().message();
  const std::vector<CaseMachine>& machines = read->steps[0].add;
  ASSERT_EQ(machines.size(), 13u);
  const CaseMachine& first = machines[0];
  EXPECT_EQ(first.machine.id, "a-00");  // as wide as the last number, so that ids sort as numbers do
  EXPECT_EQ(machines[10].machine.id, "a-10");
  EXPECT_EQ(first.machine.host, (model::HostRef{.provider = "case", .ref = "a-00"}));
  EXPECT_EQ(first.machine.instance_type, "m5");
  EXPECT_EQ(first.machine.price_per_hour.micros, 400'000);
  EXPECT_EQ(first.machine.labels, (std::map<std::string, std::string>{{"rack", "r2"}, {"tier", "gold"}}));
  EXPECT_EQ(first.idle_for, 3min);
  const model::Need& web = read->steps[0].clusters[0].needs->front().need;
  EXPECT_EQ(first.pledge, KeyOf(web));

  const CaseMachine& bound = machines[11];
  EXPECT_EQ(bound.machine.id, "b");
  EXPECT_EQ(bound.machine.instance_type, "other");
  EXPECT_EQ(bound.machine.price_per_hour.micros, 1'000'000);
  EXPECT_EQ(bound.machine.cluster, "prod");
  EXPECT_EQ(bound.unclaimed_for, 1min);
  EXPECT_EQ(DecodeBindStamp(bound.machine.shard_metadata),
            (model::Attribution{.fingerprint = web.profile.fingerprint(),
                                .group = "x",
                                .priority = 9,
                                .interruption = {.finite = {4'000'000}}}));
  const CaseMachine& draining = machines[12];
  EXPECT_EQ(draining.draining_for, 2s);
  EXPECT_EQ(DecodeBindStamp(draining.machine.shard_metadata),
            (model::Attribution{.fingerprint = "f",
                                .group = "g",
                                .priority = 5,
                                .interruption = {.finite = {2'000'000}},
                                .reclamation = model::Penalty::Pinned()}));
}

TEST(CaseFile, ClustersAndSteps) {
  const auto read = ReadCase(kWhole, "case.yaml");
  ASSERT_TRUE(read) << read.error().message();
  const CaseCluster& prod = read->steps[0].clusters[0];
  EXPECT_EQ(prod.session, false);
  EXPECT_EQ(prod.gate_open, false);
  EXPECT_EQ(prod.reclaims_allowed, 2);
  EXPECT_EQ(prod.paused, true);
  EXPECT_EQ(prod.on_hold, true);
  const Holds& holds = *read->steps[0].holds;
  EXPECT_EQ(holds.machines, (std::set<std::string>{"a-03", "b"}));
  EXPECT_EQ(holds.pairs, (std::set<std::pair<std::string, std::string>>{{"a-04", "prod"}}));
  EXPECT_EQ(holds.classes,
            (std::set<StockClass>{{.instance_type = "m5", .zone = "z", .capacity_type = model::CapacityType::kSpot},
                                  {.instance_type = "m6"}}));
  EXPECT_EQ(read->steps[1].holds, Holds{});  // in place of all before
  ASSERT_EQ(prod.needs->size(), 2u);
  EXPECT_EQ(prod.needs->at(0).name, "web");
  EXPECT_EQ(prod.needs->at(1).name, "prod/2");
  const CaseStep& step = read->steps[1];
  EXPECT_EQ(step.at, 3);
  EXPECT_EQ(step.advance, 1h);
  EXPECT_TRUE(step.forget);
  EXPECT_EQ(step.clusters[0].session, true);
  EXPECT_EQ(step.clusters[0].needs, std::nullopt);  // not said: as before
  EXPECT_TRUE(step.clusters[1].needs && step.clusters[1].needs->empty());
  EXPECT_EQ(step.remove, std::vector<std::string>{"b"});
  EXPECT_EQ(step.change[0].ids, (std::vector<std::string>{"a-00", "c"}));
  EXPECT_EQ(step.change[0].price, model::Money{3'000'000});
  EXPECT_EQ(step.change[0].interruption_probability, model::Probability{250'000});
  EXPECT_EQ(step.change[0].labels, (std::map<std::string, std::string>{{"rack", "r9"}}));
  EXPECT_EQ(step.change[1].instance_type, "m5");
  EXPECT_EQ(step.change[1].failed, "fire");
  EXPECT_EQ(step.add.at(0).machine.id, "b");  // removed before, so it may come again
}

TEST(CaseFile, JsonAndDefaults) {
  const auto read = ReadCase(R"({"clusters": [{"id": "c"}], "steps": [{"at": 4}]})", "case.json");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->cycles, 4);  // as far as the last step
  EXPECT_EQ(read->cycle_every, 1s);
  EXPECT_EQ(read->policy.surplus_hold, 120s);
  EXPECT_EQ(read->expect, std::nullopt);
  ASSERT_TRUE(read->steps[0].clusters[0].needs);
  EXPECT_TRUE(read->steps[0].clusters[0].needs->empty());
}

struct BadFile {
  std::string_view text;
  std::string_view error;
};

constexpr BadFile kBadFiles[] = {
    {"machnies: []", "case:1:1: machnies: unknown field; did you mean \"machines\"?"},
    {R"({"machines": [{"id": "a\u001b[2J", "state": "Idle"}]})",
     "case:1:22: machines[0].id: control characters cannot stand here"},
    {"[]", "case:1:1: expected a map but found a list"},
    {"machines:\n  - {id: a, state: Idle, resources: {cpu: 4 cores}}",
     "case:2:43: machines[0].resources.cpu: quantity \"4 cores\": unknown suffix"},
    {"machines:\n  - {id: a, state: Idle}\n  - {id: a, state: Idle}",
     "case:3:10: machines[1].id: there is a machine \"a\" already; ids are unique"},
    {"machines:\n  - {id: a-1, state: Idle}\n  - {id: a, count: 2, state: Idle}",
     "case:3:10: machines[1].id: there is a machine \"a-1\" already; ids are unique"},
    {"clusters:\n  - id: c\n    needs:\n      - {aggregate: {}, requirements: [{key: k, operator: Near}]}",
     "case:4:59: clusters[0].needs[0].requirements[0].operator: unknown operator \"Near\""},
    {"about: &a [*a]", "case:1:8: about: anchors"},
    {"machines: [{id: a, state: Idle, count: 1000001}]", "case:1:40: machines[0].count: too many machines: 1000000"},
    {"machines: [{id: a, state: Idle, count: 0}]", "case:1:40: machines[0].count: write how many"},
    {"machines: [{id: a, state: Idle, type: m5}]",
     "case:1:39: machines[0].type: there is no type \"m5\" in the catalogue `types`"},
    {"types: {m5a: {}}\nmachines: [{id: a, state: Idle, type: m5b}]",
     "case:2:39: machines[0].type: there is no type \"m5b\" in the catalogue `types`; did you mean \"m5a\"?"},
    {"types: {m5: {price: cheap}}", "case:1:21: types.m5.price: "},
    {"types: {m5: {id: a}}", "case:1:14: types.m5.id: unknown field"},
    {"machines: [{id: a, state: Configured, cluster: c}]",
     "case:1:48: machines[0].cluster: there is no cluster \"c\"; list it under clusters"},
    {"machines: [{id: a, state: Configured}]", "case:1:12: machines[0]: "},
    {"machines: [{id: a, state: Idle, idleFor: 1h, weight: 3}]", "case:1:46: machines[0].weight: unknown field"},
    {"machines: [{id: a, state: Speculative, idleFor: 1h}]",
     "case:1:49: machines[0].idleFor: this is for machines that are Idle; this one is Speculative"},
    {"machines: [{id: a, state: Idle, boundFor: w}]", "case:1:43: machines[0].boundFor: a machine that is Idle"},
    {"machines: [{id: a, state: Idle, pledgedTo: wep}]\nclusters: [{id: c, needs: [{name: web, aggregate: {}}]}]",
     "case:1:44: machines[0].pledgedTo: no need is called \"wep\"; did you mean \"web\"?"},
    {"machines: [{id: a, state: Configured, cluster: d, boundFor: web}]\n"
     "clusters: [{id: d}, {id: c, needs: [{name: web, aggregate: {}}]}]",
     "case:1:61: machines[0].boundFor: that need is cluster c's, the machine is bound to \"d\""},
    {"machines: [{id: a, state: Idle, idleFor: 99999d}]", "case:1:42: machines[0].idleFor: ten years"},
    {"clusters: [{id: c}, {id: c}]", "case:1:26: clusters[1].id: this cluster is listed twice"},
    {"clusters: [{id: c, gate: ajar}]", "case:1:26: clusters[0].gate: unknown gate \"ajar\": use one of open, shut"},
    {"clusters: [{id: c, needs: [{name: w, aggregate: {}}, {name: w, aggregate: {}}]}]",
     "case:1:61: clusters[0].needs[1].name: two needs have this name"},
    {"clusters: [{id: c, needs: [{name: w, aggregate: {}}]}, {id: d, needs: [{name: w, aggregate: {}}]}]",
     "case:1:79: clusters[1].needs[0].name: cluster c has a need of this name"},
    {"clusters: [{id: c, needs: [{name: w}]}]", "case:1:28: clusters[0].needs[0].aggregate: this field is required"},
    {"holds: {machines: [x]}", "case:1:20: holds.machines[0]: there is no machine \"x\" at this step"},
    {"machines: [{id: a, state: Idle}]\nholds: {pairs: [{machine: a, cluster: c}]}",
     "case:2:39: holds.pairs[0].cluster: there is no cluster \"c\"; list it under clusters"},
    {"holds: {classes: [{type: m5}]}", "case:1:20: holds.classes[0].type: unknown field"},
    {"cycles: 0", "case:1:9: cycles: write a number from 1 to 10000"},
    {"cycles: 10001", "case:1:9: cycles: write a number from 1 to 10000"},
    {"policy: {reprobeEvery: 0}", "case:1:24: policy.reprobeEvery: write a number from 1 to 1000000"},
    {"policy: {victimWeights: {drainSpeed: -1}}", "case:1:38: policy.victimWeights.drainSpeed: write a weight"},
    {"policy: {surplusHold: 2}", "case:1:23: policy.surplusHold: "},
    {"dwell: {drian: 1}", "case:1:9: dwell.drian: unknown field; did you mean \"drain\"?"},
    {"cycleEvery: 3650d\ncycles: 2", "case:1:1: 2 cycles, one every 87600h, take more than ten years"},
    {"steps: [{at: 2, advance: 3650d}, {at: 3, advance: 1s}]", "case:1:1: the steps advance time by more than"},
    {"steps: [{advance: 1s}]", "case:1:9: steps[0].at: this field is required"},
    {"steps: [{at: 3}, {at: 2}]", "case:1:23: steps[1].at: steps are written in the order of their cycles"},
    {"steps: [{at: 2, remove: [x]}]", "case:1:26: steps[0].remove[0]: there is no machine \"x\" at this step"},
    {"steps: [{at: 2, change: [{price: 1}]}]",
     "case:1:26: steps[0].change[0]: say which machines: either ids or a type"},
    {"steps: [{at: 2, change: [{type: m5}]}]", "case:1:33: steps[0].change[0].type: no machine is of type \"m5\""},
    {"steps: [{at: 2, cycles: 3}]", "case:1:17: steps[0].cycles: unknown field"},
};

TEST(CaseFile, BadFilesAreRefusedWithPlaceAndReason) {
  for (const auto& [text, error] : kBadFiles) {
    const auto read = ReadCase(text, "case");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code(), Code::kInvalidArgument);
    EXPECT_TRUE(read.error().message().starts_with(error))
        << text << "\n got: " << read.error().message() << "\nwant: " << error;
  }
}

TEST(CaseFile, LimitsAreTheCallers) {
  const CaseLimits limits{.max_machines = 3, .max_cycles = 5};
  EXPECT_TRUE(ReadCase("machines: [{id: a, state: Idle, count: 3}]\ncycles: 5", "case", limits));
  EXPECT_FALSE(ReadCase("cycles: 6", "case", limits));
  const auto read = ReadCase(
      "machines: [{id: a, state: Idle, count: 3}]\nsteps: [{at: 2, machines: [{id: b, state: Idle}]}]", "case", limits);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(),
            "case:2:28: steps[0].machines[0].count: too many machines: 0 more fit into one case");
}

TEST(CaseFile, WithExpectKeepsTheRest) {
  const std::string before = "about: x   # a remark\n\n\nclusters: []\n";
  const std::string after = before + "expect: |\n  cycle 1\n    cost\n\n  end\n";
  EXPECT_EQ(WithExpect(before, "case", "cycle 1\n  cost\n\nend\n"), after);
  EXPECT_EQ(WithExpect(before + "expect: |\n  old\n", "case", "cycle 1\n  cost\n\nend\n"), after);
  EXPECT_EQ(WithExpect("about: x", "case", "y\n"), "about: x\nexpect: |\n  y\n");
  const auto read = ReadCase(after, "case");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->expect, "cycle 1\n  cost\n\nend\n");
  EXPECT_EQ(WithExpect("expect: x\nabout: y\n", "case", "y\n").error().message(),
            "case:1:1: expect: write it as the last key, at the start of a line");
}

}  // namespace
}  // namespace muster::engine
