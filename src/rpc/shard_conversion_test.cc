#include "rpc/shard_conversion.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/codec.h"
#include "bigfleet/v1alpha1/shardread.pb.h"
#include "muster/v1/fleet.pb.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using contract::ActuationMode;
using model::Reason;

contract::NeedView FullView() {
  contract::NeedView view{.need = FullNeed(),
                          .satisfied = false,
                          .residual = {{"cpu", 500}},
                          .claimed_machines = 1,
                          .bootstraps = 2,
                          .provisions = 3,
                          .same_domain = "r1",
                          .same_satisfiable = true,
                          .parked = true,
                          .parked_age_cycles = 4,
                          .age_cycles_unmet = 5,
                          .reason = Reason::kPreemptionExhausted,
                          .supply = {.idle = 6, .configured = 7, .speculative = 8},
                          .victims = 9,
                          .capacity_freed = {{"cpu", 1'000}},
                          .same_candidates = {{.domain = "r1", .coverage_per_mille = 999, .satisfiable = true}},
                          .has_session = true,
                          .pending = true,
                          .on_hold = 10};
  view.need.arrival = WallTime(7s);
  return view;
}

contract::MachineView FullMachine() {
  return {.machine = contract::MachineRecord({.id = "m-1",
                                              .state = model::MachineState::kConfigured,
                                              .host = {.provider = "sim", .ref = "h-1"},
                                              .instance_type = "c5.large",
                                              .zone = "z1",
                                              .capacity_type = model::CapacityType::kSpot,
                                              .price_per_hour = {.micros = 123'457},
                                              .interruption_probability = {.millionths = 50'001},
                                              .resources = {{"cpu", 3'900}},
                                              .allocatable = model::Resources{{"cpu", 3'500}},
                                              .labels = {{"rack", "r1"}},
                                              .cluster = "blue",
                                              .shard_metadata = {{"k", "v"}},
                                              .last_error = "none so far"}),
          .need_fingerprint = "f",
          .need_group = "g",
          .reason = Reason::kClaimed,
          .hold = "out of stock",
          .hold_until = WallTime(9s),
          .missing = true,
          .fenced = true};
}

// The types of questions have no equality of their own; their bytes have.
template <class Wire, class Request>
void ExpectSame(const Request& request) {
  Wire wire;
  ToWire(request, wire);
  EXPECT_EQ(UnsetFields(wire), std::vector<std::string>());
  const auto read = FromWire(OverTheWire(wire));
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  EXPECT_EQ(codec::ToBytes(*read), codec::ToBytes(request)) << Request::kTypeName;
}

TEST(ShardConversion, RequestsComeThroughUnchanged) {
  ExpectSame<pb::InspectNeedsRequest>(contract::InspectNeeds{.cluster_id = "blue", .limit = 5});
  ExpectSame<v1::ListMachinesRequest>(contract::ListMachines{
      .states = {model::MachineState::kIdle, model::MachineState::kFailed}, .cluster_id = "blue"});
  ExpectSame<v1::ListActionsRequest>(contract::ListActions{.cluster_id = "blue", .limit = 5});
  ExpectSame<v1::ListClustersRequest>(contract::ListClusters());
  ExpectSame<v1::ExplainRequest>(contract::Explain{.subject = "m-1"});
  ExpectSame<v1::ExplainRequest>(
      contract::Explain{.subject = contract::NeedRef{.cluster_id = "blue", .fingerprint = "f", .group = "g"}});
  for (const auto mode : {ActuationMode::kActive, ActuationMode::kDryRun, ActuationMode::kPaused}) {
    ExpectSame<v1::SetActuationRequest>(contract::SetActuation{.cluster_id = "blue", .mode = mode, .reason = "test"});
  }
  ExpectSame<v1::RepairMachineRequest>(contract::RepairMachine{.machine_id = "m-1", .reason = "test"});
  ExpectSame<v1::ForgetMachineRequest>(contract::ForgetMachine{.machine_id = "m-1", .reason = "test"});
  ExpectSame<v1::RecallMachineRequest>(contract::RecallMachine{.machine_id = "m-1", .reason = "test"});
  ExpectSame<v1::AcceptLossesRequest>(contract::AcceptLosses{.cluster_id = "blue", .reason = "test"});
  ExpectSame<v1::DecommissionClusterRequest>(contract::DecommissionCluster{.cluster_id = "blue", .reason = "test"});
}

template <class Wire>
void ExpectRefused(const std::function<void(Wire&)>& spoil, const std::string& reason) {
  Wire wire;
  spoil(wire);
  const auto read = FromWire(wire);
  ASSERT_FALSE(read.has_value()) << reason;
  EXPECT_EQ(read.error(), Status(Code::kInvalidArgument, reason));
}

TEST(ShardConversion, RequestsThatMeanNothingAreRefusedByField) {
  ExpectRefused<pb::InspectNeedsRequest>([](auto& w) { w.set_limit(-1); }, "limit: -1 is negative; use zero or more");
  ExpectRefused<v1::ListActionsRequest>([](auto& w) { w.set_limit(-1); }, "limit: -1 is negative; use zero or more");
  ExpectRefused<v1::ListMachinesRequest>(
      [](auto& w) {
        w.add_states(pb::MACHINE_STATE_IDLE);
        w.add_states(static_cast<pb::MachineState>(264));
      },
      "states[1]: 264 is not a state; use 1 (Speculative) to 8 (Failed)");
  ExpectRefused<v1::ExplainRequest>([](auto&) {}, "subject: missing; name a machine_id or a need");
  ExpectRefused<v1::ExplainRequest>([](auto& w) { w.set_machine_id(""); }, "machine_id: missing; name the machine");
  ExpectRefused<v1::ExplainRequest>([](auto& w) { w.mutable_need()->set_fingerprint("f"); },
                                    "need.cluster_id: missing; say whose need it is");
  ExpectRefused<v1::ExplainRequest>([](auto& w) { w.mutable_need()->set_cluster_id("c"); },
                                    "need.fingerprint: missing; InspectNeeds tells it");
  ExpectRefused<v1::SetActuationRequest>([](auto&) {},
                                         "mode: 0 is not a mode; use 1 (active), 2 (dry-run) or 3 (paused)");
  ExpectRefused<v1::SetActuationRequest>([](auto& w) { w.set_mode(static_cast<v1::ActuationMode>(4)); },
                                         "mode: 4 is not a mode; use 1 (active), 2 (dry-run) or 3 (paused)");
  ExpectRefused<v1::RepairMachineRequest>([](auto&) {}, "machine_id: missing; name the machine");
  ExpectRefused<v1::ForgetMachineRequest>([](auto&) {}, "machine_id: missing; name the machine");
}

template <class Wire>
Result<contract::NeedView> Trip(const contract::NeedView& view) {
  Wire wire;
  ToWire(view, wire);
  wire = OverTheWire(wire);
  ProfileTable profiles;
  return TakeView(wire, "needs[2]", profiles);
}

TEST(ShardConversion, ANeedComesThroughFleetUnchanged) {
  v1::NeedView wire;
  ToWire(FullView(), wire);
  // `satisfied` and `capped` are false in this one.
  EXPECT_EQ(UnsetFields(wire), (std::vector<std::string>{"view.satisfied", "view.matching_supply.capped"}));
  EXPECT_EQ(Trip<v1::NeedView>(FullView()), FullView());
  contract::NeedView view = FullView();
  view.satisfied = true;
  view.has_session = false;
  EXPECT_EQ(Trip<v1::NeedView>(view), view);
  for (const model::ReasonRow& row : model::ReasonTable()) {
    view.reason = row.reason;
    EXPECT_EQ(Trip<v1::NeedView>(view), view) << row.name;
  }
  EXPECT_EQ(Trip<v1::NeedView>({}), contract::NeedView());
}

TEST(ShardConversion, ShardReadSaysWhatEveryShardSays) {
  contract::NeedView known = FullView();  // others know neither what is pending nor what is on hold
  known.pending = false;
  known.on_hold = 0;
  EXPECT_EQ(Trip<pb::NeedView>(FullView()), known);
  pb::NeedView wire;
  ToWire(FullView(), wire);
  EXPECT_EQ(UnsetFields(wire), (std::vector<std::string>{"satisfied", "matching_supply.capped"}));
  EXPECT_EQ(wire.profile_fingerprint(), FullNeed().profile.fingerprint());

  contract::NeedView covered = FullView();
  covered.satisfied = true;
  wire.Clear();
  ToWire(covered, wire);
  EXPECT_EQ(wire.unmet_reason(), pb::UNMET_REASON_UNSPECIFIED);
  EXPECT_FALSE(wire.has_residual_deficit() || wire.has_matching_supply() || wire.has_preemption());

  contract::NeedView starved = FullView();
  starved.reason = Reason::kPriorityStarved;
  wire.Clear();
  ToWire(starved, wire);
  EXPECT_TRUE(wire.has_residual_deficit() && wire.has_matching_supply());
  EXPECT_FALSE(wire.has_preemption());
}

TEST(ShardConversion, ReasonsBecomeOneOfFour) {
  contract::NeedView plain{.supply = {.idle = 1}};
  const auto said = [](const contract::NeedView& view) {
    pb::NeedView wire;
    ToWire(view, wire);
    return wire.unmet_reason();
  };
  const std::vector<std::pair<Reason, pb::UnmetReason>> direct = {
      {Reason::kPriorityStarved, pb::UNMET_REASON_PRIORITY_STARVED},
      {Reason::kNoMatchingSupply, pb::UNMET_REASON_NO_MATCHING_SUPPLY},
      {Reason::kTopologyUnsatisfiable, pb::UNMET_REASON_TOPOLOGY_UNSATISFIABLE},
      {Reason::kPreemptionExhausted, pb::UNMET_REASON_PREEMPTION_EXHAUSTED}};
  for (const auto& [reason, unmet] : direct) {
    plain.reason = reason;
    EXPECT_EQ(said(plain), unmet);
  }
  // What the protocol does not know is derived as others do.
  for (const Reason reason : {Reason::kNoSession, Reason::kDraining, Reason::kNone}) {
    contract::NeedView view{.reason = reason, .supply = {.speculative = 1}};
    EXPECT_EQ(said(view), pb::UNMET_REASON_PRIORITY_STARVED);
    view.supply = {};
    EXPECT_EQ(said(view), pb::UNMET_REASON_NO_MATCHING_SUPPLY);
    contract::NeedView gang = FullView();
    gang.reason = reason;
    gang.parked = false;
    EXPECT_EQ(said(gang), pb::UNMET_REASON_PRIORITY_STARVED);
    gang.parked = true;
    EXPECT_EQ(said(gang), pb::UNMET_REASON_TOPOLOGY_UNSATISFIABLE);
    gang.parked = false;
    gang.same_satisfiable = false;
    EXPECT_EQ(said(gang), pb::UNMET_REASON_TOPOLOGY_UNSATISFIABLE);
    gang.same_satisfiable = true;
    gang.same_domain.clear();
    EXPECT_EQ(said(gang), pb::UNMET_REASON_TOPOLOGY_UNSATISFIABLE);
  }
}

TEST(ShardConversion, CountsBeyondTheWireAreCutAndSaidToBe) {
  contract::NeedView view = FullView();
  view.supply.speculative = int64_t{1} << 40;
  pb::NeedView wire;
  ToWire(view, wire);
  EXPECT_TRUE(wire.matching_supply().capped());
  EXPECT_EQ(wire.matching_supply().speculative(), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(wire.matching_supply().idle(), 6);
}

TEST(ShardConversion, ABadRowOfNeedsIsNamedByItsPath) {
  const std::vector<std::pair<std::function<void(pb::NeedView&)>, std::string>> bad = {
      {[](pb::NeedView& w) { (*w.mutable_need()->mutable_min_unit())["cpu"] = "x"; }, "needs[2].need.min_unit.cpu: "},
      {[](pb::NeedView& w) { (*w.mutable_residual_deficit()->mutable_resources())["cpu"] = "x"; },
       "needs[2].residual_deficit.cpu: "},
      {[](pb::NeedView& w) { (*w.mutable_preemption()->mutable_capacity_freed()->mutable_resources())["cpu"] = "x"; },
       "needs[2].preemption.capacity_freed.cpu: "},
      {[](pb::NeedView& w) { w.set_claimed_machine_count(-1); }, "needs[2].claimed_machine_count: -1 is negative"},
      {[](pb::NeedView& w) { w.set_bootstrap_count(-1); }, "needs[2].bootstrap_count: -1 is negative"},
      {[](pb::NeedView& w) { w.set_provision_count(-1); }, "needs[2].provision_count: -1 is negative"},
      {[](pb::NeedView& w) { w.set_parked_age_cycles(-1); }, "needs[2].parked_age_cycles: -1 is negative"},
      {[](pb::NeedView& w) { w.set_age_cycles_unmet(-1); }, "needs[2].age_cycles_unmet: -1 is negative"},
      {[](pb::NeedView& w) { w.mutable_preemption()->set_victims_found(-1); },
       "needs[2].preemption.victims_found: -1 is negative"},
      {[](pb::NeedView& w) { w.mutable_matching_supply()->set_idle(-1); }, "needs[2].matching_supply.idle: -1 is"},
      {[](pb::NeedView& w) { w.mutable_matching_supply()->set_configured(-1); },
       "needs[2].matching_supply.configured: -1 is"},
      {[](pb::NeedView& w) { w.mutable_matching_supply()->set_speculative(-1); },
       "needs[2].matching_supply.speculative: -1 is"},
  };
  for (const auto& [spoil, reason] : bad) {
    pb::NeedView wire;
    ToWire(FullView(), wire);
    spoil(wire);
    ProfileTable profiles;
    const auto read = TakeView(wire, "needs[2]", profiles);
    ASSERT_FALSE(read.has_value()) << reason;
    EXPECT_TRUE(read.error().message().starts_with(reason)) << read.error().message();
  }
}

TEST(ShardConversion, MachinesComeThroughUnchanged) {
  v1::MachineView wire;
  ToWire(FullMachine(), wire);
  EXPECT_EQ(UnsetFields(wire), std::vector<std::string>());
  wire = OverTheWire(wire);
  EXPECT_EQ(TakeView(wire, "machines[0]"), FullMachine());
  ToWire(FullMachine(), wire);
  wire.mutable_machine()->clear_host();
  EXPECT_EQ(TakeView(wire, "machines[4]").error(),
            Status(Code::kInvalidArgument, "machines[4].host: a machine that is Configured must have one"));
}

TEST(ShardConversion, AReasonOfANewerShardIsNoneThatCouldBeTold) {
  v1::MachineView wire;
  ToWire(FullMachine(), wire);
  wire.set_reason("phase9.astrology");
  EXPECT_EQ(TakeView(wire, "machines[0]")->reason, Reason::kNone);
}

template <class Wire, class Reply>
void ExpectReplySame(const Reply& reply, const std::vector<std::string>& unset = {}) {
  Wire wire;
  ToWire(reply, wire);
  EXPECT_EQ(UnsetFields(wire), unset);
  wire = OverTheWire(wire);
  const auto read = TakeReply(wire);
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  EXPECT_EQ(codec::ToBytes(*read), codec::ToBytes(reply)) << Reply::kTypeName;
}

TEST(ShardConversion, RepliesComeThroughUnchanged) {
  ExpectReplySame<v1::ListActionsResponse>(contract::ActionsListed{.actions = {{.cycle = 1,
                                                                                .decided = WallTime(2s),
                                                                                .kind = "Reclaim",
                                                                                .machine_id = "m-1",
                                                                                .cluster_id = "blue",
                                                                                .need_fingerprint = "f",
                                                                                .need_group = "g",
                                                                                .reason = Reason::kReclaimSurplus,
                                                                                .grace_seconds = 600,
                                                                                .outcome = "provider_error",
                                                                                .error = "no"},
                                                                               {}}});
  const contract::OrderView order{
      .kind = "pause", .cluster_id = "blue", .machine_id = "m-1", .who = "admin", .reason = "test", .at = WallTime(8s)};
  const contract::CeilingView ceiling{.highest_priority = 1,
                                      .most_machines = 2,
                                      .most_per_hour = model::Money{3'000'000},
                                      .machines = 4,
                                      .per_hour = {5'000'000},
                                      .reached = true};
  ExpectReplySame<v1::ListClustersResponse>(contract::ClustersListed{.clusters = {{.cluster_id = "blue",
                                                                                   .session = true,
                                                                                   .gate_open = true,
                                                                                   .mode = ActuationMode::kPaused,
                                                                                   .needs = 1,
                                                                                   .configured = 2,
                                                                                   .held_rollups = 3,
                                                                                   .last_refusal = "held",
                                                                                   .reclaims_in_window = 4,
                                                                                   .hold_until = WallTime(9s),
                                                                                   .last_order = order,
                                                                                   .missing = 5,
                                                                                   .decommissioned = true,
                                                                                   .ceiling = ceiling,
                                                                                   .losses_failed = true,
                                                                                   .losses_vanished = true,
                                                                                   .failing = 6,
                                                                                   .lacking = 7,
                                                                                   .growth_waits = 8,
                                                                                   .trial_waits = 9},
                                                                                  {}},
                                                                     .shard_mode = ActuationMode::kDryRun,
                                                                     .last_order = order,
                                                                     .losses_failed = true,
                                                                     .losses_vanished = true});
  ExpectReplySame<v1::ExplainResponse>(contract::Explained{.cycle = 3, .lines = {"a", "", "b"}});
  ExpectReplySame<v1::SetActuationResponse>(contract::ActuationSet{.previous = ActuationMode::kDryRun});
  ExpectReplySame<v1::SetActuationResponse>(contract::ActuationSet{}, {"previous"});
  ExpectReplySame<v1::RepairMachineResponse>(contract::OrderTaken());
  ExpectReplySame<v1::ForgetMachineResponse>(contract::OrderTaken());
  const contract::NeedsInspected header{.cycle = 9, .computed_at = WallTime(5s), .total = 3};
  pb::InspectNeedsHeader wire;
  ToWire(header, wire);
  EXPECT_EQ(UnsetFields(wire), std::vector<std::string>());
  EXPECT_EQ(codec::ToBytes(FromWire(OverTheWire(wire)).value()), codec::ToBytes(header));
}

TEST(ShardConversion, AModeThatDoesNotExistIsRefused) {
  v1::ListClustersResponse clusters;
  clusters.add_clusters()->set_mode(v1::ACTUATION_MODE_ACTIVE);
  clusters.add_clusters();
  EXPECT_EQ(TakeReply(clusters).error().message(),
            "clusters[1].mode: 0 is not a mode; use 1 (active), 2 (dry-run) or 3 (paused)");
  v1::SetActuationResponse set;
  set.set_previous(static_cast<v1::ActuationMode>(4));
  EXPECT_EQ(TakeReply(set).error().message(), "previous: 4 is not a mode; use 1 (active), 2 (dry-run) or 3 (paused)");
}

}  // namespace
}  // namespace muster::rpc
