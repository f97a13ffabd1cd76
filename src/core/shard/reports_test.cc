// What clusters are told of free capacity, the coordinator of the shard, and operators of both.
#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using enum model::MachineState;
using contract::Confidence;
using contract::InstructOutcome;

TEST(ShardHints, SayWhatIsFreeAndOnlyWhenItChanges) {
  Lab lab;
  lab.Add("m", 2, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 2);
  lab.Run(6s);
  auto hints = lab.SentTo<contract::AvailableCapacity>("a");
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(hints[0].supersedes_key, "available:" + model::Profile({.priority = 10}).fingerprint());
  EXPECT_EQ(hints[0].confidence, Confidence::kLow);
  lab.Run(1min);
  EXPECT_EQ(lab.SentTo<contract::AvailableCapacity>("a").size(), 1u);
  lab.Add("s", 3, kSpeculative);
  lab.Run(6s);
  hints = lab.SentTo<contract::AvailableCapacity>("a");
  ASSERT_EQ(hints.size(), 2u);
  EXPECT_EQ(hints[1].confidence, Confidence::kMedium);
  EXPECT_EQ(hints[1].available_count, 3);
  EXPECT_EQ(hints[1].cost_per_hour.micros, 1'000'000);
  EXPECT_EQ(hints[1].resources, (model::Resources{{"cpu", 1000}}));
  lab.Add("i", 1, kIdle);
  lab.Run(6s);
  hints = lab.SentTo<contract::AvailableCapacity>("a");
  ASSERT_EQ(hints.size(), 3u);
  EXPECT_EQ(hints[2].confidence, Confidence::kHigh);
  lab.Connect("a");
  lab.Run(6s);
  EXPECT_EQ(lab.SentTo<contract::AvailableCapacity>("a").size(), 4u) << "a new session is told again";
}

TEST(ShardReport, FreeMachinesAreIdleOrCanBeBought) {
  Lab lab({.coordinator = "c"});
  lab.Add("i", 3, kIdle);
  lab.Add("s", 4, kSpeculative);
  lab.Add("c", 5, kConfigured, "a");
  lab.Start();
  lab.Run(11s);
  ASSERT_GE(lab.reports.size(), 1u);
  EXPECT_EQ(lab.reports.back().summary.free_machines, 7);
}

TEST(ShardReport, TopShortfallsSummaryAndAcknowledgements) {
  Lab lab({.empty_rollup_guard = false, .coordinator = "c", .address = "here:7780", .provider_address = "there:9100"});
  lab.Add("m", 3, kIdle);
  lab.Start();
  lab.Connect("a");
  lab.Rollup("a", 120 * 4, 10, 120);
  lab.Run(15s);
  ASSERT_GE(lab.reports.size(), 1u);
  const contract::ShardReport& report = lab.reports.back();
  EXPECT_EQ(report.shard_id, "shard-0");
  EXPECT_EQ(report.shard_epoch, 1);
  EXPECT_EQ(report.shard_address, "here:7780");
  EXPECT_EQ(report.summary.total_machines, 3);
  EXPECT_EQ(report.summary.per_zone_counts.at("a"), 3);
  EXPECT_EQ(report.summary.provider_address, "there:9100");
  ASSERT_EQ(report.shortfalls.size(), 100u);
  EXPECT_EQ(report.shortfalls[0].priority, 129);
  EXPECT_EQ(report.shortfalls[99].priority, 30);
  EXPECT_GT(report.shortfalls[0].age_cycles, 1);
  lab.Rollup("a", 0);
  lab.Run(15s);
  EXPECT_TRUE(lab.reports.back().shortfalls.empty()) << "what is solved is no longer listed";
}

TEST(ShardReport, DomainsAreAssignedByTheCoordinatorAndStick) {
  faults::ResetProbes();
  Lab lab({.coordinator = "c"});
  for (const char* zone : {"a", "b"}) {
    model::Machine machine = Lab::MakeMachine(std::string("m-") + zone, kIdle);
    machine.zone = zone;
    lab.Put(machine);
  }
  lab.Start();
  EXPECT_EQ(lab.core().machines().tracked().size(), 2u) << "alone it owns everything";
  const contract::Domain zone_a{.key = "topology.kubernetes.io/zone", .value = "a"};
  lab.report_ack = {
      .coordinator_term = 3,
      .acknowledged = true,
      .instructions = {
          {.coordinator_term = 3,
           .sequence_number = 1,
           .instruction_id = "i1",
           .payload = contract::AssignDomain{zone_a}},
          {.coordinator_term = 3,
           .sequence_number = 2,
           .instruction_id = "i2",
           .payload = contract::TransferOwnership{.machine_ids = {"m-a"}}},
          {.coordinator_term = 2, .sequence_number = 3, .instruction_id = "i3", .payload = contract::AssignDomain{}}}};
  lab.Run(25s);
  EXPECT_EQ(lab.core().machines().tracked().size(), 1u);
  const auto& acks = lab.reports.back().instruction_acks;
  ASSERT_EQ(acks.size(), 3u);
  EXPECT_EQ(acks[0].outcome, InstructOutcome::kAccepted);
  EXPECT_EQ(acks[1].outcome, InstructOutcome::kFailed) << "nothing is accepted that is not done";
  EXPECT_EQ(acks[2].outcome, InstructOutcome::kRejectedStale);
  EXPECT_EQ(faults::ProbeHits()["shard.instruction_repeated"], 3u) << "once for each";
  lab.Restart();
  EXPECT_EQ(lab.core().machines().tracked().size(), 1u);
  lab.report_ack = {.coordinator_term = 4,
                    .acknowledged = true,
                    .instructions = {{.coordinator_term = 4,
                                      .sequence_number = 1,
                                      .instruction_id = "i4",
                                      .payload = contract::UnassignDomain{zone_a}}}};
  lab.Run(25s);
  EXPECT_TRUE(lab.core().machines().tracked().empty()) << "with the last domain gone it owns nothing, not everything";
}

TEST(ShardReport, TakingADomainThatWasNeverAssignedChangesNothing) {
  Lab lab({.coordinator = "c"});
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.report_ack = {.coordinator_term = 1,
                    .acknowledged = true,
                    .instructions = {{.coordinator_term = 1,
                                      .sequence_number = 1,
                                      .instruction_id = "i1",
                                      .payload = contract::UnassignDomain{{.key = "zone", .value = "x"}}}}};
  lab.Run(25s);
  EXPECT_EQ(lab.core().machines().tracked().size(), 1u) << "alone it owns everything";
  lab.Restart();
  EXPECT_EQ(lab.core().machines().tracked().size(), 1u);
}

contract::ReportAck Assigns(int64_t term, const std::string& zone) {
  return {.coordinator_term = term,
          .acknowledged = true,
          .instructions = {{.coordinator_term = term,
                            .sequence_number = 1,
                            .instruction_id = fmt::format("i{}", term),
                            .payload = contract::AssignDomain{{.key = "topology.kubernetes.io/zone", .value = zone}}}}};
}

TEST(ShardReport, OfAFailedReportAndAnOldCoordinatorNothingCounts) {
  faults::ResetProbes();
  Lab lab({.coordinator = "c"});
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.report_ack = Assigns(3, "a");
  lab.Run(15s);
  lab.report_refusal = Status(Code::kUnavailable, "no coordinator");
  lab.report_ack = Assigns(4, "b");
  lab.Run(10s);
  EXPECT_EQ(faults::ProbeHits()["shard.report_failed"], 1u);
  lab.report_refusal = {};
  lab.report_ack = Assigns(2, "b");
  lab.Run(10s);
  EXPECT_EQ(faults::ProbeHits()["shard.old_coordinator"], 1u);
  EXPECT_EQ(lab.core().machines().tracked().size(), 1u) << "it owns zone a and no other";
  ASSERT_EQ(lab.reports.back().instruction_acks.size(), 1u);
  EXPECT_EQ(lab.reports.back().instruction_acks[0].instruction_id, "i3");
}

TEST(ShardReport, AnOldCoordinatorIsIgnoredAfterARestartToo) {
  const auto remembers = [] {
    Lab lab({.coordinator = "c"});
    lab.Add("m", 1, kIdle);
    lab.Start();
    lab.report_ack = Assigns(3, "a");
    lab.Run(15s);
    lab.report_ack = {};
    lab.Restart();
    lab.report_ack = Assigns(2, "b");
    lab.report_ack.instructions.push_back(
        {.coordinator_term = 2,
         .sequence_number = 2,
         .instruction_id = "u2",
         .payload = contract::UnassignDomain{{.key = "topology.kubernetes.io/zone", .value = "a"}}});
    lab.Run(25s);
    return lab.core().machines().tracked().size() == 1 && lab.core().lifecycle().coordinator_term() == 3;
  };
  EXPECT_TRUE(remembers());
  const faults::ScopedMutant on("shard.term_forgotten");
  EXPECT_FALSE(remembers());
}

TEST(ShardReport, AShardWhoseLastDomainWasTakenOwnsAgainWhatItIsAssignedLater) {
  Lab lab({.coordinator = "c"});
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.report_ack = Assigns(1, "a");
  lab.Run(15s);
  lab.report_ack = {
      .coordinator_term = 1,
      .acknowledged = true,
      .instructions = {{.coordinator_term = 1,
                        .sequence_number = 2,
                        .instruction_id = "u1",
                        .payload = contract::UnassignDomain{{.key = "topology.kubernetes.io/zone", .value = "a"}}}}};
  lab.Run(15s);
  ASSERT_TRUE(lab.core().machines().tracked().empty());
  lab.Restart();
  lab.report_ack = Assigns(2, "a");
  lab.Run(25s);
  EXPECT_EQ(lab.core().machines().tracked().size(), 1u);
}

TEST(ShardReport, AMachineGivenAwayDuringItsTransitionIsForgotten) {
  faults::ResetProbes();
  Lab lab({.coordinator = "c"});
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.ConnectWith("a", 0);
  lab.silent = true;
  lab.Run(15s);  // a report waits for its answer
  lab.Rollup("a", 1);
  lab.Run(1s);  // and, behind it, the transition
  ASSERT_EQ(lab.core().View()->calls, 1u);
  lab.report_ack = Assigns(1, "b");
  lab.silent = false;
  lab.Run(1s);
  EXPECT_EQ(faults::ProbeHits()["shard.late_transition"], 1u);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 1);
  EXPECT_TRUE(lab.core().machines().tracked().empty());
  EXPECT_EQ(lab.core().View()->calls, 0u);
}

TEST(ShardReport, CallsThatAreFencedForMachinesGivenAwayCountToo) {
  Lab lab({.coordinator = "c"});
  lab.Add("m", 2, kIdle);
  lab.Start();
  lab.ConnectWith("a", 0);
  lab.silent = true;
  lab.Run(15s);
  lab.Rollup("a", 2);
  lab.Run(1s);
  ASSERT_EQ(lab.core().View()->calls, 2u);
  lab.report_ack = Assigns(1, "b");
  lab.refusal = Status(Code::kFailedPrecondition, "fenced: epoch 9");
  lab.silent = false;
  lab.Run(1s);
  ASSERT_TRUE(lab.core().machines().tracked().empty());
  EXPECT_TRUE(lab.core().View()->halted);
}

TEST(ShardInspect, NeedsMachinesAndReasons) {
  Lab lab;
  lab.Add("m", 3, kIdle);
  lab.Start();
  lab.ConnectWith("a", 2, 20);
  lab.ConnectWith("b", 5, 10);
  lab.Run(5s);
  const auto needs = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.limit = 1});
  EXPECT_EQ(needs.total, 2);
  ASSERT_EQ(needs.needs.size(), 1u);
  EXPECT_GT(needs.cycle, 0);
  EXPECT_TRUE(needs.needs[0].satisfied);
  const auto short_one = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = "b"}).needs.at(0);
  EXPECT_FALSE(short_one.satisfied);
  EXPECT_EQ(short_one.residual, (model::Resources{{"cpu", 4000}}));
  EXPECT_EQ(short_one.claimed_machines, 1);
  const auto machines = lab.AskFor<contract::MachinesListed>(contract::ListMachines{.cluster_id = "b"}).machines;
  ASSERT_EQ(machines.size(), 1u);
  EXPECT_EQ(machines[0].reason, model::Reason::kClaimed);
  EXPECT_EQ(machines[0].need_fingerprint, model::Profile({.priority = 10}).fingerprint());
  const auto why = lab.AskFor<contract::Explained>(contract::Explain{machines[0].machine->id});
  ASSERT_GE(why.lines.size(), 3u);
  EXPECT_EQ(why.lines[0], fmt::format("machine {} is Configuring for cluster b", machines[0].machine->id));
  EXPECT_EQ(lab.Ask(contract::Explain{"nobody"}).status.code(), Code::kNotFound);
  EXPECT_EQ(lab.Ask(contract::Explain{contract::NeedRef{.cluster_id = "z"}}).status.code(), Code::kNotFound);
}

TEST(ShardInspect, BeforeTheFirstCycle) {
  Lab lab;
  lab.silent = true;
  lab.Start();
  EXPECT_EQ(lab.Ask(contract::ListMachines{}).status.code(), Code::kUnavailable);
  EXPECT_TRUE(lab.Ask(contract::SetActuation{.mode = contract::ActuationMode::kPaused}).status.ok())
      << "a shard can be paused while its provider is away";
  EXPECT_FALSE(lab.core().View()->ready);
}

TEST(ShardLedger, MachinesAndDemandAreCountedByInterruptionPenalty) {
  using model::PenaltyBucket;
  Lab lab;
  lab.Add("m", 4, kIdle);
  lab.Start();
  lab.Connect("a");
  lab.Say("a", contract::Rollup{
                   .cluster_id = "a",
                   .timestamp = lab.now.wall,
                   .rows = contract::NeedRows({{.profile = model::Profile({.interruption = PenaltyBucket::kOneDollar}),
                                                .aggregate = {{"cpu", 3000}},
                                                .min_unit = {{"cpu", 1000}}}})});
  lab.Run(2s);
  lab.Finish();
  lab.Run(6s);
  const auto view = lab.core().View();
  const auto machines = [&](model::MachineState state, PenaltyBucket bucket) {
    const auto found =
        view->machines.find({.state = state, .capacity_type = model::CapacityType::kOnDemand, .interruption = bucket});
    return found == view->machines.end() ? 0 : found->second;
  };
  EXPECT_EQ(machines(kConfigured, PenaltyBucket::kOneDollar), 3u);
  EXPECT_EQ(machines(kIdle, PenaltyBucket::kZero), 1u);
  EXPECT_EQ(machines(kIdle, PenaltyBucket::kOneDollar), 0u);
  EXPECT_EQ(view->demand, (std::map<PenaltyBucket, uint64_t>{{PenaltyBucket::kOneDollar, 1}})) << "rows";
  EXPECT_EQ(view->claimed, (std::map<PenaltyBucket, uint64_t>{{PenaltyBucket::kOneDollar, 3}}));
}

TEST(ShardLedger, ProvisioningIsTimedFromTheDemandToTheNode) {
  Lab lab;
  lab.Add("m", 4, kIdle);
  lab.Start();
  lab.ConnectWith("a", 2);
  lab.Run(7s);
  lab.Finish();
  lab.Run(2s);
  const auto provisioned = [&] {
    std::vector<Duration> took;
    for (const Lasted& lasted : lab.lasted) {
      if (lasted.leg == Leg::kProvision) took.push_back(lasted.took);
    }
    return took;
  };
  ASSERT_EQ(provisioned().size(), 1u) << "once for a profile";
  EXPECT_GE(provisioned()[0], 7s);
  EXPECT_LT(provisioned()[0], 9s);
  lab.Rollup("a", 1);
  lab.Run(1s);
  lab.Rollup("a", 3);
  lab.Run(3s);
  lab.Finish();
  lab.Run(2s);
  ASSERT_EQ(provisioned().size(), 2u) << "less demand starts no clock, more does";
  EXPECT_LT(provisioned()[1], 5s);
}

TEST(ShardLedger, AgesAreCountedInClasses) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(5s);
  EXPECT_EQ(lab.core().View()->shortfalls, 1u);
  EXPECT_EQ(lab.core().View()->shortfalls_aged[0], 1u);
  lab.Run(30s);
  EXPECT_EQ(lab.core().View()->shortfalls_aged[1], 1u);
  lab.Add("m", 1, kIdle);
  lab.Run(2s);
  EXPECT_EQ(lab.core().View()->shortfalls, 0u);
}

}  // namespace
}  // namespace muster::shard
