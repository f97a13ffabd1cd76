// What `muster decide` shows of a case: the table, JSON and explanations, to the letter.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/case_explain.h"
#include "engine/case_file.h"
#include "engine/case_print.h"
#include "engine/case_run.h"
#include "engine/reference/decide.h"
#include "model/json_reader.h"

namespace muster::engine {
namespace {

constexpr std::string_view kCase = R"(
types:
  m5: {capacityType: on-demand, price: 0.40, resources: {cpu: 8, memory: 32Gi}}
machines:
  - {id: idle, count: 2, type: m5, state: Idle, labels: {rack: r1}}
  - {id: spec, count: 3, type: m5, state: Speculative, labels: {rack: r1}}
  - {id: old, type: m5, state: Configured, boundFor: batch, labels: {rack: r2}, zone: a}
clusters:
  - id: prod
    needs:
      - {name: web, priority: 1000, aggregate: {cpu: 24}, minUnit: {cpu: 4}}
      - {name: train, priority: 500, aggregate: {cpu: 32}, minUnit: {cpu: 8}, requirements: [{key: rack, operator: Same}]}
  - id: dev
    needs: [{name: batch, priority: 1, aggregate: {cpu: 8}}]
cycles: 3
)";

void Play(std::string_view text, const std::function<void(const CaseCycle&)>& see) {
  const auto input = ReadCase(text, "case");
  ASSERT_TRUE(input) << input.error().message();
  RunCase(*input, reference::Decide, input->cycles, see);
}

TEST(CaseOutput, Table) {
  CaseText text(CaseText::Form::kTable);
  Play(kCase, [&](const CaseCycle& cycle) { text.Add(cycle); });
  EXPECT_EQ(text.Take(), R"(cycle 1, at 0s
  Bootstrap  idle-0, idle-1  to prod for web  an idle machine is bound to cover a need
  Provision  spec-0          to prod for web  a machine is bought to cover a need that no idle one can

  NEED   CLUSTER  PRIORITY  VERDICT  MISSING  DOMAIN  CLAIMS
  web    prod     1000      ok       -        -       bootstrap idle-0, idle-1; provision spec-0
  train  prod     500       short    cpu=32   r1
  batch  dev      1         ok       -        -       credit old
  train: no single domain can hold all of the need

  machines: 3 Speculative, 2 Idle, 1 Configured
  spec-1, spec-2  could be bought, but no need asks for it
  cost: $1.20/h -> $1.60/h

cycles 2 to 3, at 1s to 2s
  no action

  NEED   CLUSTER  PRIORITY  VERDICT  MISSING  DOMAIN  CLAIMS
  web    prod     1000      ok       -        -       credit idle-0, idle-1, spec-0
  train  prod     500       short    cpu=32   r1
  batch  dev      1         ok       -        -       credit old
  train: no single domain can hold all of the need

  machines: 2 Speculative, 4 Configured
  spec-1, spec-2  could be bought, but no need asks for it
  cost: $1.60/h
)");
  EXPECT_EQ(text.Take(), "");
}

TEST(CaseOutput, Json) {
  std::vector<std::string> lines;
  Play(kCase, [&](const CaseCycle& cycle) { lines.push_back(CycleJson(cycle, cycle.number == 1)); });
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_TRUE(model::ReadJson(line, "json")) << line;
  EXPECT_NE(lines[0].find(R"("actions":[{"kind":"Bootstrap","machine":"idle-0","cluster":"prod","need":"web",)"
                          R"("reason":"phase1.bootstrap","grace_seconds":0},)"),
            std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(R"("claims":[{"machine":"idle-0","need":"web","kind":"bootstrap"},)"), std::string::npos);
  EXPECT_NE(lines[0].find(R"({"name":"train","cluster":"prod","fingerprint":"p=500|ipb=1|rpb=1|reqs=rack:5:|spr=",)"
                          R"("group":"","priority":500,"aggregate":{"cpu":"32"},"satisfied":false,"pending":false,)"
                          R"("residual":{"cpu":"32"},"reason":"short.topology","age":1,"credited":0,"creating":0,)"
                          R"("bootstraps":0,"provisions":0,"domain":"r1",)"
                          R"("domains":[{"domain":"r1","coverage_per_mille":500,"satisfiable":false}],)"
                          R"("supply":{"idle":2,"speculative":3,"configured":1,"on_hold":0},"victims":0,"pledged":0,)"
                          R"("lost":0,"parked":false,"has_session":true,"paused":false})"),
            std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(R"("machines":[{"machine":"idle-0","need":"web","reason":"hold.claimed"},)"),
            std::string::npos);
  EXPECT_NE(lines[0].find(R"("cost_per_hour":1.600000,"cost_per_hour_before":1.200000,"digest":")"), std::string::npos);
  EXPECT_TRUE(lines[1].starts_with(R"({"cycle":2,"actions":[],)")) << lines[1];
  EXPECT_EQ(lines[1].find("\"machines\":["), std::string::npos);
}

TEST(CaseOutput, JsonQuotesNames) {
  std::string line;
  Play(R"({"clusters":[{"id":"c","needs":[{"name":"a\"b\\c","aggregate":{"cpu":1}}]}]})",
       [&](const CaseCycle& cycle) { line = CycleJson(cycle, true); });
  EXPECT_NE(line.find(R"("name":"a\"b\\c")"), std::string::npos) << line;
  EXPECT_TRUE(model::ReadJson(line, "json"));
}

std::string Explained(std::string_view text, const std::function<Result<std::string>(const CaseCycle&)>& explain) {
  Result<std::string> answer;
  Play(text, [&](const CaseCycle& cycle) { answer = explain(cycle); });
  return answer ? *answer : "error: " + answer.error().message();
}

TEST(CaseOutput, ExplainsNeeds) {
  EXPECT_EQ(Explained(kCase, [](const CaseCycle& cycle) { return ExplainNeed(cycle, "train"); }),
            R"(need train of cluster prod, cycle 3
  asks for  cpu=32 in units of up to cpu=8, priority 500, interruption penalty 0, reclamation penalty 0
  requires  rack Same
  verdict   short of cpu=32 for 3 cycles: no single domain can hold all of the need
  supply    machines that can serve it: 0 idle, 2 speculative, 4 configured
  to buy    m5: $0.40/h
  domain    r1: holds 50.0 % of the gang
  not used  old: Configured, batch (priority 1, cluster dev): a need claims this machine
  not used  idle-0, idle-1, spec-0: Configured, web (priority 1000, cluster prod): a need claims this machine
  not used  spec-1, spec-2: Speculative, could be bought, but no need asks for it
)");
  EXPECT_EQ(Explained(kCase, [](const CaseCycle& cycle) { return ExplainNeed(cycle, "trian"); }),
            "error: no need is called \"trian\" in cycle 3; did you mean \"train\"?");
}

TEST(CaseOutput, ExplainsMachines) {
  EXPECT_EQ(Explained(kCase, [](const CaseCycle& cycle) { return ExplainMachine(cycle, "old"); }),
            R"(machine old, cycle 3
  is         Configured, bound to dev, m5, zone a, on-demand, $0.40/h, cpu=8 memory=32Gi
  no action  a need claims this machine
  needs, in the order they were served
    web    priority 1000  bound to another cluster, and not needed: the need is covered
    train  priority 500   bound to another cluster, and not to be had: no single domain can hold all of the need
    batch  priority 1     claims it (credit)
)");
  EXPECT_EQ(Explained(kCase, [](const CaseCycle& cycle) { return ExplainMachine(cycle, "oldd"); }),
            "error: there is no machine \"oldd\" in cycle 3; did you mean \"old\"?");
}

// A gang that takes victims, folded gangs, pledges, obstacles of every kind.
constexpr std::string_view kTaking = R"(
dwell: {drain: 5}
types:
  small: {capacityType: reserved, price: 1, resources: {cpu: 4}}
machines:
  - {id: low, count: 2, type: small, state: Configured, boundFor: batch, labels: {rack: r1}}
  - {id: r1, type: small, state: Idle, labels: {rack: r1}}
  - {id: r2, type: small, state: Idle, labels: {rack: r2}}
  - {id: bad, type: small, state: Failed, lastError: disk, labels: {rack: r2}}
clusters:
  - id: dev
    needs: [{name: batch, priority: 1, aggregate: {cpu: 8}}]
  - id: prod
    needs:
      - {name: gang, priority: 900, aggregate: {cpu: 12}, minUnit: {cpu: 4}, requirements: [{key: rack, operator: Same}]}
      - {name: g1, group: g1, priority: 800, aggregate: {cpu: 1}, requirements: [{key: rack, operator: Same, values: [r2]}]}
      - {name: g2, group: g2, priority: 800, aggregate: {cpu: 1}, requirements: [{key: rack, operator: Same, values: [r2]}]}
      - {name: gpu, aggregate: {gpu: 1}, minUnit: {gpu: 1}}
      - {name: zoned, aggregate: {cpu: 1}, spread: [{topologyKey: topology.kubernetes.io/zone}]}
)";

TEST(CaseOutput, ExplainsWhatBuyingCosts) {
  constexpr std::string_view kBuying = R"(
machines:
  - {id: a, state: Speculative, instanceType: spot, price: 0.15, interruptionProbability: 0.2, resources: {cpu: 4}}
  - {id: b, state: Speculative, instanceType: od, price: 0.40, resources: {cpu: 4}}
clusters:
  - id: c
    needs:
      - {name: bears, interruptionPenalty: 1, aggregate: {cpu: 4}}
      - {name: never, interruptionPenalty: pinned, aggregate: {cpu: 4}}
)";
  const std::string bears = Explained(kBuying, [](const CaseCycle& cycle) { return ExplainNeed(cycle, "bears"); });
  EXPECT_NE(bears.find("  to buy     spot: $0.35/h, the risk of losing it included\n  to buy     od: $0.40/h\n"),
            std::string::npos)
      << bears;
  const std::string never = Explained(kBuying, [](const CaseCycle& cycle) { return ExplainNeed(cycle, "never"); });
  EXPECT_NE(never.find("  to buy     od: $0.40/h\n"
                       "  to buy     spot: $0.15/h, but it may be interrupted: the last choice\n"),
            std::string::npos)
      << never;
  const std::string machine = Explained(kBuying, [](const CaseCycle& cycle) { return ExplainMachine(cycle, "a"); });
  EXPECT_NE(machine.find("claims it (provision), which costs it $0.35/h, the risk of losing it included\n"),
            std::string::npos)
      << machine;
}

TEST(CaseOutput, ExplainsTakingAndPledges) {
  EXPECT_EQ(Explained(kTaking, [](const CaseCycle& cycle) { return ExplainNeed(cycle, "gang"); }),
            R"(need gang of cluster prod, cycle 1
  asks for   cpu=12 in units of up to cpu=4, priority 900, interruption penalty 0, reclamation penalty 0
  requires   rack Same
  verdict    waits for cpu=12: covered once the machines taken for it have drained
  supply     machines that can serve it: 2 idle, 0 speculative, 2 configured
  domain     r1: holds 33.3 % of the gang
  runner-up  r2: holds 33.3 % of the gang
  takes      low-0 of dev with 10m of grace: a need of higher priority takes this machine
  takes      low-1 of dev with 10m of grace: a need of higher priority takes this machine
  not used   bad: Failed, the machine failed; repair it or forget it
  not used   r2: Idle, g1+g2 (priority 800, cluster prod): a need claims this machine
  not used   r1: Idle, idle, and of a capacity type that is never released
)");
  EXPECT_EQ(Explained(std::string(kTaking) + "cycles: 2\n",
                      [](const CaseCycle& cycle) { return ExplainNeed(cycle, "gang"); }),
            R"(need gang of cluster prod, cycle 2
  asks for   cpu=12 in units of up to cpu=4, priority 900, interruption penalty 0, reclamation penalty 0
  requires   rack Same
  verdict    waits for cpu=8: covered once the machines taken for it have drained
  bootstrap  r1
  supply     machines that can serve it: 1 idle, 0 speculative, 1 configured
  runner-up  r2: holds 33.3 % of the gang
  domain     r1: holds 33.3 % of the gang
  promised   low-0: comes to it, or waits for it, from an earlier cycle
  promised   low-1: comes to it, or waits for it, from an earlier cycle
  not used   r2: Configured, g1+g2 (priority 800, cluster prod): a need claims this machine
  not used   bad: Failed, the machine failed; repair it or forget it
)");
}

TEST(CaseOutput, ExplainsAFoldedGangByAnyOfItsNames) {
  EXPECT_EQ(Explained(kTaking, [](const CaseCycle& cycle) { return ExplainNeed(cycle, "g2"); }),
            R"(need g1+g2 of cluster prod, cycle 1
  asks for   cpu=2 in units of up to cpu=1, priority 800, interruption penalty 0, reclamation penalty 0
  requires   rack In [r2]
  folded     2 gangs that fit one machine each: g1+g2
  verdict    covered
  bootstrap  r2
  supply     machines that can serve it: 1 idle, 0 speculative, 0 configured
)");
}

TEST(CaseOutput, ExplainsObstacles) {
  EXPECT_EQ(Explained(kTaking, [](const CaseCycle& cycle) { return ExplainMachine(cycle, "bad"); }),
            R"(machine bad, cycle 1
  is         Failed, small, reserved, $1.00/h, cpu=4
  no action  the machine failed; repair it or forget it
  needs, in the order they were served
    gang   priority 900  a machine that is Failed serves nobody
    g1+g2  priority 800  a machine that is Failed serves nobody
    batch  priority 1    a machine that is Failed serves nobody
    gpu    priority 0    one unit does not fit: gpu=1 too little
    zoned  priority 0    it spreads over topology.kubernetes.io/zone, which the machine lacks
)");
  EXPECT_EQ(Explained(kTaking, [](const CaseCycle& cycle) { return ExplainMachine(cycle, "low-0"); }),
            R"(machine low-0, cycle 1
  is      Configured, bound to dev, small, reserved, $1.00/h, cpu=4
  action  Preempt: a need of higher priority takes this machine
  needs, in the order they were served
    gang   priority 900  a need of higher priority takes this machine
    g1+g2  priority 800  it requires rack In [r2], the machine has "r1"
    batch  priority 1    claims it (credit)
    gpu    priority 0    one unit does not fit: gpu=1 too little
    zoned  priority 0    it spreads over topology.kubernetes.io/zone, which the machine lacks
)");
}

}  // namespace
}  // namespace muster::engine
