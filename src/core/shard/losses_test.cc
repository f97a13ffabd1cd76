// What the shard does when machines fail or vanish in masses, and when the provider refuses to repair them.
#include "core/shard/losses.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/lab_for_test.h"
#include "core/shard/loss_window.h"

namespace muster::shard {
namespace {

using model::Reason;
using enum model::MachineState;

std::string Name(int number) { return fmt::format("m-{:03}", number); }

// So many machines of cluster a, all of which it needs, and as many that could be bought.
void Serve(Lab& lab, int machines) {
  lab.Add("m", machines, kConfigured, "a");
  lab.Add("s", machines, kSpeculative);
  lab.Start();
  lab.ConnectWith("a", machines);
  lab.Run(2s);
}

void Lose(Lab& lab, int first, int end) {
  for (int i = first; i < end; ++i) lab.Lose(Name(i));
}

void Fail(Lab& lab, int first, int end) {
  for (int i = first; i < end; ++i) lab.SetState(Name(i), kFailed);
}

// As a provider does that leaves out whose they were.
void FailUnnamed(Lab& lab, int first, int end) {
  for (int i = first; i < end; ++i) {
    model::Machine machine = lab.machines.at(Name(i));
    machine.state = kFailed;
    machine.last_error = "broken";
    machine.cluster.clear();
    machine.shard_metadata.clear();
    lab.Put(std::move(machine));
  }
}

const model::Machine& Tracked(Lab& lab, const std::string& id) {
  return *lab.core().machines().tracked().at(id).record;
}

// --- the window

TEST(LossWindow, CountsEachMachineOnceAndByCluster) {
  LossWindow window({});
  window.Add({.at = MonoTime(1s), .machine = "x", .cluster = "a"});
  window.Add({.at = MonoTime(2s), .machine = "y", .cluster = "a"});
  window.Add({.at = MonoTime(3s), .machine = "x", .cluster = "b"});
  EXPECT_EQ(window.total(), 2);
  EXPECT_EQ(window.Of("a"), 1);
  EXPECT_EQ(window.Of("b"), 1);
  std::vector<std::string> gone;
  window.Expire(MonoTime(12s), 10s, [&](const std::string& cluster) { gone.push_back(cluster); });
  EXPECT_EQ(gone, std::vector<std::string>{"a"});
  EXPECT_EQ(window.total(), 1);
  EXPECT_TRUE(window.Remove("x"));
  EXPECT_FALSE(window.Remove("x"));
  EXPECT_EQ(window.Of("b"), 0);
}

// --- lists

TEST(ShardMissing, AFewThatVanishAreReplacedAtOnce) {
  Lab lab;
  Serve(lab, 100);
  Lose(lab, 0, 4);
  lab.Run(65s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 4);
  EXPECT_EQ(lab.core().View()->missing, 0u);
  EXPECT_TRUE(lab.core().View()->losses_vanished.empty());
}

TEST(ShardMissing, ManyThatVanishAreReplacedATenthInTwoMinutes) {
  Lab lab;
  Serve(lab, 100);
  Lose(lab, 0, 60);
  lab.Run(65s);
  EXPECT_EQ(lab.core().View()->losses_vanished, (std::set<std::string, std::less<>>{"", "a"}));
  EXPECT_EQ(lab.Noted(Reason::kLosses), 2);
  std::vector<int> bought{lab.Count<contract::CreateRequest>()};
  EXPECT_EQ(bought.back(), 9) << "four at once, before it was clear; then up to a tenth of those that are left";
  EXPECT_EQ(lab.core().View()->missing, 51u);
  for (int i = 0; i < 16 * 6; ++i) {
    lab.Finish();
    lab.Run(10s);
    bought.push_back(lab.Count<contract::CreateRequest>());
    if (bought.size() <= 12) continue;
    EXPECT_LE(bought.back() - bought[bought.size() - 13], 10) << "within two minutes";
  }
  EXPECT_EQ(bought.back(), 60) << "a lost zone does not wait for a person";
  EXPECT_EQ(lab.core().View()->missing, 0u);
  EXPECT_FALSE(lab.core().View()->losses_vanished.empty()) << "the alert stays until an operator has seen it";
}

TEST(ShardMissing, CountsForItsNeedAndIsNobodysVictim) {
  Lab lab;
  Serve(lab, 40);
  Lose(lab, 0, 20);
  lab.Run(65s);
  const uint64_t missing = lab.core().View()->missing;
  ASSERT_GT(missing, 10u);
  for (int i = 20 - static_cast<int>(missing); i < 20; ++i) {
    ASSERT_EQ(lab.core().machines().AsideOf(Name(i)), SetAside::kMissing) << i;
  }
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 20 - static_cast<int>(missing));
  lab.ConnectWith("b", 80, 1'000'000);  // takes whatever it may
  lab.Rollup("a", 5);
  lab.Run(30s);
  std::set<std::string> drained;
  for (const auto& request : lab.transitions) {
    if (const auto* drain = std::get_if<contract::DrainRequest>(&request)) drained.insert(drain->machine_id);
  }
  EXPECT_GT(drained.size(), 5u);
  for (const std::string& id : drained) EXPECT_TRUE(lab.machines.contains(id)) << id << " is missing";
  const auto views = lab.AskFor<contract::MachinesListed>(contract::ListMachines{.cluster_id = "a"}).machines;
  const auto shown = std::ranges::count_if(views, &contract::MachineView::missing);
  EXPECT_EQ(static_cast<uint64_t>(shown), lab.core().View()->missing);
  EXPECT_EQ(std::ranges::find_if(views, &contract::MachineView::missing)->reason, Reason::kMissing);
}

TEST(ShardMissing, AcceptGivesAllOfThemUp) {
  Lab lab;
  Serve(lab, 100);
  Lose(lab, 0, 60);
  lab.Run(65s);
  const auto accepted = lab.AskFor<contract::LossesAccepted>(contract::AcceptLosses{.reason = "zone is gone"});
  EXPECT_EQ(accepted.missing, 51);
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 60);
  EXPECT_TRUE(lab.core().View()->losses_vanished.empty());
  EXPECT_EQ(lab.Ask(contract::AcceptLosses{.cluster_id = "nobody"}).status.code(), Code::kNotFound);
}

TEST(ShardMissing, WhatComesBackIsAsBefore) {
  faults::ResetProbes();
  Lab lab;
  Serve(lab, 100);
  const auto before = lab.machines;
  Lose(lab, 0, 60);
  lab.Run(65s);
  ASSERT_EQ(lab.core().View()->missing, 51u);
  for (int i = 0; i < 60; ++i) lab.Put(before.at(Name(i)));
  lab.Run(3s);
  EXPECT_EQ(lab.core().View()->missing, 0u);
  EXPECT_EQ(lab.Noted(Reason::kReturned), 51);
  EXPECT_EQ(faults::ProbeHits()["shard.missing_returned"], 51u);
  lab.Run(1h);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 9);
  EXPECT_FALSE(lab.disk.contains(kMissingRows.Put(Name(50), {}).key));
}

TEST(ShardMissing, ARestartCausesNoCallAndKeepsTheLimit) {
  Lab lab;
  Serve(lab, 100);
  Lose(lab, 0, 60);
  lab.Run(65s);
  const size_t calls = lab.transitions.size();
  lab.Restart();
  lab.ConnectWith("a", 100);
  EXPECT_EQ(lab.core().View()->missing, 51u);
  EXPECT_EQ(Tracked(lab, Name(59)).cluster, "a");
  lab.Run(100s);
  EXPECT_EQ(lab.transitions.size(), calls) << "those given up before count as if it had been at the restart";
  EXPECT_FALSE(lab.core().View()->losses_vanished.empty());
  lab.Run(30s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 18) << "then the next tenth";
}

// Sixty of a hundred machines vanish, and the cluster, or the shard if the name is empty, is set so. How many machines
// are bought within ten minutes.
int BoughtWhileKeptBack(Lab& lab, const std::string& cluster, contract::ActuationMode mode) {
  Serve(lab, 100);
  Lose(lab, 0, 60);
  lab.Run(65s);
  EXPECT_EQ(lab.core().View()->missing, 51u);
  lab.Ask(contract::SetActuation{.cluster_id = cluster, .mode = mode});
  const int before = lab.Count<contract::CreateRequest>();
  lab.Run(10min);
  lab.Ask(contract::SetActuation{.cluster_id = cluster, .mode = contract::ActuationMode::kActive});
  lab.Run(1s);
  return lab.Count<contract::CreateRequest>() - before;
}

TEST(ShardMissing, NothingIsGivenUpWhileTheClusterOrTheShardIsPaused) {
  for (const std::string cluster : {"", "a"}) {
    for (const contract::ActuationMode mode : {contract::ActuationMode::kPaused, contract::ActuationMode::kDryRun}) {
      Lab lab;
      EXPECT_LE(BoughtWhileKeptBack(lab, cluster, mode), 10) << "a tenth, once it goes on";
      EXPECT_GE(lab.core().View()->missing, 41u);
    }
  }
  const faults::ScopedMutant on("shard.given_up_while_paused");
  Lab other;
  EXPECT_GT(BoughtWhileKeptBack(other, "a", contract::ActuationMode::kPaused), 25);
}

// --- while the shard is down

// A hundred machines of cluster a, all needed, and forty of b. While the shard is down the provider forgets so many of
// a. How many machines are bought within so much time.
int BoughtAfterLosing(Lab& lab, int machines, Duration within) {
  lab.Add("b", 40, kConfigured, "b");
  Serve(lab, 100);
  lab.ConnectWith("b", 40);
  lab.Run(2s);
  Lose(lab, 0, machines);
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.ConnectWith("b", 40);
  lab.Run(within);
  return lab.Count<contract::CreateRequest>();
}

TEST(ShardLostWhileDown, WhatVanishedInMassesIsReplacedATenthInTwoMinutes) {
  faults::ResetProbes();
  Lab lab;
  EXPECT_EQ(BoughtAfterLosing(lab, 60, 1s), 10);
  EXPECT_GT(faults::ProbeHits()["shard.lacking_since_start"], 0u);
  EXPECT_EQ(lab.core().View()->losses_vanished, (std::set<std::string, std::less<>>{"", "a"}));
  EXPECT_EQ(lab.Noted(Reason::kLosses), 2);
  lab.Rollup("b", 45);
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 15) << "others notice nothing";
  std::vector<int> bought{15};
  for (int i = 0; i < 16 * 6; ++i) {
    lab.Finish();
    lab.Run(10s);
    bought.push_back(lab.Count<contract::CreateRequest>());
    if (bought.size() <= 12) continue;
    EXPECT_LE(bought.back() - bought[bought.size() - 13], 10) << "within two minutes";
  }
  EXPECT_EQ(bought.back(), 65) << "a lost zone does not wait for a person";
  EXPECT_TRUE(lab.core().losses().lacking().empty());
  lab.Rollup("a", 110);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 75) << "nothing lacks any more: there is no limit";
  lab.Finish();
  EXPECT_GE(lab.InState(kConfigured, "a"), 100);
  EXPECT_FALSE(lab.core().View()->losses_vanished.empty()) << "the alert stays until an operator has seen it";
  {
    const faults::ScopedMutant on("shard.missing_for_ever");
    Lab other;
    EXPECT_EQ(BoughtAfterLosing(other, 60, 10min), 0);
  }
  const faults::ScopedMutant on("shard.lost_while_down");
  Lab other;
  EXPECT_EQ(BoughtAfterLosing(other, 60, 1s), 60);
}

TEST(ShardLostWhileDown, IsShownAndExplained) {
  Lab lab;
  Serve(lab, 100);
  Lose(lab, 0, 60);
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.Run(5s);
  const auto listed = lab.AskFor<contract::ClustersListed>(contract::ListClusters{});
  EXPECT_EQ(listed.clusters.at(0).lacking, 50) << "ten are given up";
  EXPECT_TRUE(listed.clusters.at(0).losses_vanished);
  EXPECT_TRUE(listed.losses_vanished) << "of the fleet too";
  EXPECT_EQ(lab.core().View()->lacking, 50);
  const auto need = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = "a"}).needs.at(0);
  const contract::NeedRef ref{.cluster_id = "a", .fingerprint = need.need.profile.fingerprint()};
  const auto lines = lab.AskFor<contract::Explained>(contract::Explain{.subject = ref}).lines;
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) {
    return line.contains("cluster a lost 50 machines while the shard was down");
  })) << fmt::format("{}", fmt::join(lines, "\n"));
}

TEST(ShardLostWhileDown, AnotherRestartKeepsTheLimitAndAcceptLiftsIt) {
  Lab lab;
  EXPECT_EQ(BoughtAfterLosing(lab, 60, 1s), 10);
  for (int i = 0; i < 2; ++i) {
    lab.Finish();
    lab.Run(2s);
  }
  ASSERT_EQ(lab.InState(kConfigured, "a"), 50);
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.ConnectWith("b", 40);
  lab.Run(100s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 10) << "those given up before count as if it had been at the restart";
  lab.Run(30s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 20) << "then the next tenth";
  lab.AskFor<contract::LossesAccepted>(contract::AcceptLosses{.cluster_id = "a", .reason = "they are gone"});
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 60);
}

// Of a hundred machines sixty go while the shard is down. It gives ten up, and the provider hears of no purchase before
// the shard dies once more. How many are bought soon after that.
int64_t BoughtAfterDyingBeforeItBought(Lab& lab) {
  lab.holds = [](const PartnerRequest& request) { return std::holds_alternative<contract::CreateRequest>(request); };
  EXPECT_EQ(BoughtAfterLosing(lab, 60, 1s), 0);
  EXPECT_EQ(lab.core().View()->lacking, 50);
  lab.holds = nullptr;
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.ConnectWith("b", 40);
  lab.Run(2s);
  return lab.Count<contract::CreateRequest>();
}

TEST(ShardLostWhileDown, WhatWasGivenUpAndNotBoughtIsBoughtByTheNextLife) {
  Lab lab;
  EXPECT_EQ(BoughtAfterDyingBeforeItBought(lab), 10);
  EXPECT_EQ(lab.core().View()->lacking, 50);
  lab.Finish();
  lab.Run(90s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 10) << "and no more of them within two minutes";
  const faults::ScopedMutant on("shard.given_up_is_forgotten");
  Lab other;
  EXPECT_EQ(BoughtAfterDyingBeforeItBought(other), 0);
}

TEST(ShardLostWhileDown, AnotherPurchaseIsMadeWhenOneFails) {
  Lab lab;
  lab.Add("t", 100, kSpeculative);  // of a type that is not held when the other is
  for (int i = 0; i < 100; ++i) {
    model::Machine machine = lab.machines.at(fmt::format("t-{:03}", i));
    machine.instance_type = "t";
    machine.price_per_hour = {2'000'000};
    lab.Put(std::move(machine));
  }
  lab.breaks = [](const model::Machine& machine) { return machine.instance_type == "m"; };
  EXPECT_EQ(BoughtAfterLosing(lab, 60, 1s), 10);
  lab.Finish();
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 20) << "ten have failed";
  lab.Finish();
  lab.Run(5s);
  lab.Finish();
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 20);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 50);
}

TEST(ShardLostWhileDown, NothingIsGivenUpWhileTheClusterIsPaused) {
  Lab lab;
  EXPECT_EQ(BoughtAfterLosing(lab, 60, 1s), 10);
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kPaused});
  lab.Run(10min);
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kActive});
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 19) << "a tenth of what it has and lacks";
}

TEST(ShardLostWhileDown, AFewAreReplacedAtOnce) {
  Lab lab;
  EXPECT_EQ(BoughtAfterLosing(lab, 5, 1s), 5) << "a twentieth is no mass";
  EXPECT_TRUE(lab.core().View()->losses_vanished.empty());
}

TEST(ShardLostWhileDown, ItEndsWhenTheMachinesAreBack) {
  Lab lab;
  EXPECT_EQ(BoughtAfterLosing(lab, 60, 1s), 10);
  lab.Add("m", 60, kConfigured, "a");
  lab.Run(5s);
  lab.Rollup("a", 113);
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 13) << "it acquires without a limit again";
}

// What an earlier life gave up or gave back is not missed.
TEST(ShardLostWhileDown, ACountThatFellInTimeIsForgotten) {
  Lab lab;
  Serve(lab, 100);
  lab.config().reclaim_budget = {1'000'000};
  lab.Restart();
  lab.ConnectWith("a", 20);
  for (int i = 0; i < 60; ++i) {
    lab.Run(10s);
    lab.Finish();
  }
  ASSERT_EQ(lab.InState(kConfigured, "a"), 20);
  lab.Restart();
  lab.ConnectWith("a", 25);
  lab.Run(1min);
  EXPECT_TRUE(lab.core().View()->losses_vanished.empty());
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(lab.InState(kConfigured, "a") + lab.InState(kConfiguring, "a"), 25);
}

// Ten machines of a are drained for another cluster when the shard is killed, and free when it is back. How many
// machines a gets then, which asks for ten more than it has.
int GottenAfterADrain() {
  Lab lab;
  Serve(lab, 40);
  lab.ConnectWith("b", 50, 1'000'000);  // forty to buy, and ten of a
  lab.Run(300ms);
  EXPECT_EQ(lab.InState(kDraining), 10);
  lab.Finish();
  lab.Add("t", 20, kIdle);
  lab.Restart();
  lab.ConnectWith("a", 40);
  lab.ConnectWith("b", 50, 1'000'000);
  lab.Run(5s);
  return lab.InState(kConfiguring, "a");
}

TEST(ShardLostWhileDown, WhatTheShardDrainedItselfIsNotLost) {
  EXPECT_EQ(GottenAfterADrain(), 10);
  const faults::ScopedMutant on("shard.drained_is_lost");
  EXPECT_EQ(GottenAfterADrain(), 4) << "a tenth";
}

TEST(ShardMissing, ASmallClusterCountsByItself) {
  Lab lab;
  lab.Add("b", 400, kConfigured, "b");
  lab.Add("m", 10, kConfigured, "a");
  lab.Add("s", 20, kSpeculative);
  lab.Start();
  lab.ConnectWith("b", 400);
  lab.ConnectWith("a", 10);
  lab.Run(2s);
  Lose(lab, 0, 10);
  lab.Run(65s);
  EXPECT_EQ(lab.core().View()->losses_vanished, (std::set<std::string, std::less<>>{"a"}));
  EXPECT_EQ(lab.core().View()->missing, 6u) << "the fifth is one too many";
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 4);
}

TEST(ShardMissing, RowsOfMachinesThatBelongToAnotherShardByNowAreErased) {
  Lab lab;
  Serve(lab, 100);
  Lose(lab, 0, 60);
  lab.Run(65s);
  const auto rows = [&] {
    return std::ranges::count_if(lab.disk, [](const auto& row) { return kMissingRows.KeyOf(row.first).has_value(); });
  };
  ASSERT_EQ(rows(), 51);
  lab.config().own = {{.key = "zone", .value = "b"}};
  lab.Restart();
  lab.Run(1s);
  EXPECT_EQ(lab.core().View()->missing, 0u);
  EXPECT_EQ(rows(), 0);
}

TEST(ShardMissing, MachinesThatServeAreGivenUpBeforeThoseThatServeNobody) {
  Lab lab;
  lab.Add("a", 50, kIdle);
  lab.Add("m", 50, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 50);
  lab.Run(2s);
  for (int i = 0; i < 50; ++i) lab.Lose(fmt::format("a-{:03}", i));
  Lose(lab, 0, 50);
  lab.Run(65s);
  const uint64_t missing = lab.core().View()->missing;
  lab.Run(2min);
  ASSERT_LT(lab.core().View()->missing, missing);
  int serving = 0;
  for (const auto& [id, why] : lab.core().machines().set_aside()) serving += id.starts_with("m-") ? 1 : 0;
  EXPECT_LT(serving, 46) << "a tenth of the cluster";
}

TEST(ShardMissing, MachinesThatCostNothingAreDropped) {
  Lab lab;
  Serve(lab, 40);
  for (int i = 0; i < 40; ++i) lab.Lose(fmt::format("s-{:03}", i));
  lab.Run(65s);
  EXPECT_EQ(lab.core().machines().tracked().size(), 40u);
  EXPECT_TRUE(lab.core().View()->losses_vanished.empty());
}

// --- one budget

// Of a cluster of a hundred machines that wants only sixty from now on: the most that are drained, given up or repaired
// within two minutes of the next twelve.
int MostThatChange(Lab& lab) {
  lab.Rollup("a", 60);
  std::vector<int> changed;
  int most = 0;
  for (int i = 0; i < 12 * 12; ++i) {
    lab.Run(5s);
    if (i % 2 == 0) lab.Finish();
    int so_far = lab.Count<contract::DrainRequest>();
    for (int machine = 0; machine < 100; ++machine) {
      so_far += lab.core().machines().tracked().contains(Name(machine)) ? 0 : 1;
    }
    for (const auto& audit : lab.audits) {
      so_far += audit.action.kind == "Repair" && audit.action.outcome == "pending" ? 1 : 0;
    }
    changed.push_back(so_far);
    most = std::max(most, so_far - (i < 23 ? 0 : changed[static_cast<size_t>(i - 23)]));
  }
  return most;
}

TEST(ShardBudget, WhatIsGivenUpAndWhatIsReclaimedShareATenth) {
  {
    const faults::ScopedMutant on("shard.give_ups_apart");
    Lab lab;
    Serve(lab, 100);
    Lose(lab, 0, 30);
    EXPECT_GT(MostThatChange(lab), 15);
  }
  Lab lab;
  Serve(lab, 100);
  Lose(lab, 0, 30);
  EXPECT_LE(MostThatChange(lab), 10);
  EXPECT_EQ(lab.core().View()->missing, 0u) << "what is lost goes before what is not needed";
  EXPECT_EQ(lab.InState(kConfigured, "a"), 60);
}

TEST(ShardBudget, AFewThatVanishWhenItIsSpentAreMissingForAWhile) {
  Lab lab;
  Serve(lab, 100);
  lab.Rollup("a", 60);
  lab.Run(5s);
  ASSERT_EQ(lab.Count<contract::DrainRequest>(), 10);
  Lose(lab, 90, 94);
  lab.Run(70s);
  EXPECT_EQ(lab.core().View()->missing, 4u);
  EXPECT_TRUE(lab.core().View()->losses_vanished.empty()) << "nothing says that they are not lost indeed";
  lab.Run(1min);
  EXPECT_EQ(lab.core().View()->missing, 0u);
}

TEST(ShardBudget, RepairsAndReclaimsShareATenth) {
  {
    const faults::ScopedMutant on("shard.repairs_beside_the_budget");
    Lab lab;
    Serve(lab, 100);
    Fail(lab, 0, 4);
    EXPECT_GT(MostThatChange(lab), 10);
  }
  Lab lab;
  Serve(lab, 100);
  Fail(lab, 0, 4);
  EXPECT_LE(MostThatChange(lab), 10);
  EXPECT_EQ(lab.InState(kFailed), 0);
}

TEST(ShardBudget, WhatAnOperatorAcceptedIsRepairedWhateverIsLeftOfIt) {
  Lab lab;
  Serve(lab, 100);
  Fail(lab, 0, 30);
  lab.Rollup("a", 60);
  lab.Run(5s);
  ASSERT_GE(lab.core().rails().budget().SpentBy("a"), 7);
  EXPECT_EQ(lab.AskFor<contract::LossesAccepted>(contract::AcceptLosses{}).failed, 30);
  for (int i = 0; i < 20; ++i) {
    lab.Run(4s);
    lab.Finish();
  }
  EXPECT_EQ(lab.InState(kFailed), 0);
}

// --- repairs

TEST(ShardRepairs, OnePercentOfTheFleetAtATime) {
  faults::ResetProbes();
  {
    const faults::ScopedMutant on("shard.repairs_unlimited");
    Lab lab;
    lab.Add("m", 350, kFailed);
    lab.Start();
    lab.Run(70s);
    EXPECT_GT(lab.Count<contract::DeleteRequest>(), 3);
    EXPECT_EQ(faults::ProbeHits()["shard.repair_waits"], 0u);
  }
  Lab lab;
  lab.Add("m", 350, kFailed);
  lab.Start();
  lab.Run(70s);
  EXPECT_GT(faults::ProbeHits()["shard.repair_waits"], 0u);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 3);
  EXPECT_EQ(lab.core().View()->under_repair, 3u);
  faults::ResetProbes();
  const int cycles = lab.cycles;
  lab.Run(10min);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 3) << "the provider has not ended them";
  EXPECT_EQ(faults::ProbeHits()["shard.repair_waits"], static_cast<uint64_t>(lab.cycles - cycles))
      << "a cycle looks at one of those that wait";
  lab.Finish();
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 6);
}

TEST(ShardRepairs, OwnedHardwareIsUnderRepairUntilItIsMadeAgain) {
  Lab lab;
  for (int i = 0; i < 2; ++i) {
    model::Machine machine = Lab::MakeMachine(Name(i), kFailed);
    machine.capacity_type = model::CapacityType::kBareMetal;
    lab.Put(machine);
  }
  lab.Start();
  lab.Run(70s);
  lab.Finish();
  lab.Run(5s);
  ASSERT_EQ(lab.InState(kCreating), 1);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1);
  lab.Finish();
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 2) << "then the next";
}

TEST(ShardRepairs, CountAmongTheActionsOfACycle) {
  Lab lab({.max_actions_per_cycle = 1});
  lab.Add("m", 400, kFailed);
  lab.Start();
  lab.Run(59s + 500ms);
  ASSERT_EQ(lab.Count<contract::DeleteRequest>(), 0);
  for (int i = 1; i <= 3; ++i) {
    const int cycles = lab.cycles;
    while (lab.cycles == cycles) lab.Run(100ms);
    EXPECT_LE(lab.Count<contract::DeleteRequest>(), i);
  }
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 4);
}

TEST(ShardRepairs, NoneOfAPausedClusterAndEachCarriesItsCluster) {
  Lab lab;
  lab.Add("a", 2, kFailed, "a");
  lab.Add("b", 1, kFailed, "b");
  lab.Start();
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kPaused});
  lab.Run(10min);
  ASSERT_EQ(lab.transitions.size(), 1u);
  EXPECT_EQ(std::get<contract::DeleteRequest>(lab.transitions[0]).machine_id, "b-000");
  EXPECT_EQ(lab.audits.back().action.cluster_id, "b");
  EXPECT_EQ(lab.Outcomes("suppressed"), 0);
}

// A machine of a paused cluster fails, and its record no longer names the cluster. How often it is deleted.
int DeletesOfAFailedMachineWithoutItsCluster(Lab& lab) {
  lab.Add("m", 20, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 20);
  lab.Run(2s);
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kPaused});
  model::Machine failed = lab.machines.at(Name(0));
  failed.state = kFailed;
  failed.last_error = "broken";
  failed.cluster.clear();
  failed.shard_metadata.clear();
  lab.Put(failed);
  lab.Run(10min);
  return lab.Count<contract::DeleteRequest>();
}

TEST(ShardRepairs, AFailedMachineIsItsClustersThoughItsRecordDoesNotSaySo) {
  {
    const faults::ScopedMutant on("shard.served_forgotten");
    Lab lab;
    EXPECT_EQ(DeletesOfAFailedMachineWithoutItsCluster(lab), 1);
  }
  Lab lab;
  EXPECT_EQ(DeletesOfAFailedMachineWithoutItsCluster(lab), 0) << "the cluster is paused";
  lab.Restart();
  lab.ConnectWith("a", 20);
  lab.Run(1h);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 0) << "and stays so";
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kActive});
  lab.Run(2h);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1);
  const auto repair = std::ranges::find(lab.audits, "Repair", [](const Audit& audit) { return audit.action.kind; });
  ASSERT_NE(repair, lab.audits.end());
  EXPECT_EQ(repair->action.cluster_id, "a");
  EXPECT_FALSE(lab.disk.contains(kServedRows.RowKey(Name(0)))) << "it is no longer Failed";
}

// A cluster that lacks machines must not wait for a person, and a provider that is wrong must not cost a fleet.
TEST(ShardFailing, WhatIsCalledFailedInMassesIsReplacedATenthInTwoMinutes) {
  faults::ResetProbes();
  Lab lab;
  Serve(lab, 200);
  Fail(lab, 0, 120);
  std::vector<int> bought{0};
  for (int i = 0; i < 16 * 6; ++i) {
    lab.Run(10s);
    lab.Finish();
    bought.push_back(lab.Count<contract::CreateRequest>());
    if (bought.size() <= 12) continue;
    EXPECT_LE(bought.back() - bought[bought.size() - 13], 20) << "within two minutes";
  }
  EXPECT_EQ(faults::ProbeHits()["shard.failed_set_aside"], 120u);
  EXPECT_EQ(bought[1], 20);
  EXPECT_EQ(bought.back(), 120) << "a lost zone does not wait for a person";
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 0);
  EXPECT_EQ(lab.core().View()->missing, 0u);
  EXPECT_FALSE(lab.core().View()->losses_failed.empty()) << "the alert stays until an operator has seen it";
  const faults::ScopedMutant on("shard.failed_believed");
  Lab other;
  Serve(other, 200);
  Fail(other, 0, 120);
  other.Run(10s);
  EXPECT_EQ(other.Count<contract::CreateRequest>(), 120);
}

// Of 200 machines 120 are called Failed for three minutes. How many are bought, and drained later.
TEST(ShardFailing, WhatIsWellAgainIsAsBeforeAndTheSurplusGoesBackWithinTheBudget) {
  Lab lab;
  Serve(lab, 200);
  Fail(lab, 0, 120);
  for (int i = 0; i < 18; ++i) {
    lab.Run(10s);
    lab.Finish();
  }
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 40);
  for (int i = 0; i < 120; ++i) lab.SetState(Name(i), kConfigured);  // they were well all the time
  std::vector<int> drained{0};
  for (int i = 0; i < 6 * 60; ++i) {
    lab.Run(10s);
    lab.Finish();
    drained.push_back(lab.Count<contract::DrainRequest>());
    if (drained.size() <= 12) continue;
    EXPECT_LE(drained.back() - drained[drained.size() - 13], 24) << "a tenth in two minutes";
  }
  EXPECT_EQ(drained.back(), 40);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 40);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 200);
  EXPECT_TRUE(lab.core().machines().set_aside().empty());
}

TEST(ShardFailing, ItIsShownAsFailedCountsForItsNeedAndIsNoVictim) {
  Lab lab;
  Serve(lab, 40);
  Fail(lab, 0, 20);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 4);
  EXPECT_EQ(lab.core().View()->missing, 0u) << "the lists show them";
  EXPECT_EQ(Tracked(lab, Name(19)).state, kFailed);
  EXPECT_EQ(lab.core().machines().AsideOf(Name(19)), SetAside::kFailing);
  const auto views = lab.AskFor<contract::MachinesListed>(contract::ListMachines{.cluster_id = "a"}).machines;
  const auto shown = std::ranges::count(views, Reason::kLosses, &contract::MachineView::reason);
  EXPECT_EQ(shown, 16);
  const auto aside = lab.core().machines().set_aside();
  ASSERT_EQ(aside.size(), 16u);
  lab.ConnectWith("b", 80, 1'000'000);  // takes whatever it may
  lab.Run(30s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 20) << "all that serve";
  for (const auto& request : lab.transitions) {
    const auto* drain = std::get_if<contract::DrainRequest>(&request);
    if (drain == nullptr) continue;
    EXPECT_FALSE(aside.contains(drain->machine_id)) << drain->machine_id;
  }
}

TEST(ShardFailing, ARestartCausesNoCallAndAcceptGivesAllOfThemUp) {
  Lab lab;
  Serve(lab, 200);
  Fail(lab, 0, 120);
  lab.Run(30s);
  const size_t calls = lab.transitions.size();
  EXPECT_EQ(calls, 20u);
  lab.Restart();
  lab.ConnectWith("a", 200);
  lab.Run(100s);
  EXPECT_EQ(lab.transitions.size(), calls) << "those given up before count as if it had been at the restart";
  EXPECT_EQ(lab.core().machines().set_aside().size(), 100u) << "and stay given up";
  EXPECT_EQ(Tracked(lab, Name(119)).state, kFailed);
  const auto accepted = lab.AskFor<contract::LossesAccepted>(contract::AcceptLosses{.reason = "zone is gone"});
  EXPECT_EQ(accepted.missing, 0);
  EXPECT_EQ(accepted.failed, 120);
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 120);
  EXPECT_TRUE(lab.core().machines().set_aside().empty());
}

// Machines of which a cluster has been told that they are Failed: its operator deletes their nodes.
size_t ToldFailed(const Lab& lab) {
  std::set<std::string> told;
  for (const auto& [cluster, message] : lab.sent) {
    const auto* update = std::get_if<contract::NodeStateUpdate>(&message);
    if (update != nullptr && update->state == kFailed) told.insert(update->machine_id);
  }
  return told.size();
}

// Sixty of a hundred machines are shown as Failed; then the shard restarts, and the cluster is there before the first
// list.
std::pair<size_t, size_t> ToldBeforeAndAfterARestart(Lab& lab) {
  Serve(lab, 100);
  Fail(lab, 0, 60);
  lab.Run(5s);
  const size_t before = ToldFailed(lab);
  lab.sent.clear();
  lab.silent = true;
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.silent = false;
  lab.Run(5s);
  return {before, ToldFailed(lab)};
}

TEST(ShardFailing, ItsClusterIsToldWhenItIsGivenUp) {
  Lab lab;
  const auto [before, after] = ToldBeforeAndAfterARestart(lab);
  EXPECT_GE(before, 10u) << "those that are given up";
  EXPECT_LE(before, 16u) << "and those that failed before it was known that they are many";
  EXPECT_GE(after, 10u);
  EXPECT_LE(after, 16u);
  lab.sent.clear();
  lab.Connect("a");
  EXPECT_LE(ToldFailed(lab), 16u) << "a new session";
  lab.sent.clear();
  lab.AskFor<contract::LossesAccepted>(contract::AcceptLosses{.cluster_id = "a", .reason = "they are gone"});
  EXPECT_GE(ToldFailed(lab), 40u);
  const faults::ScopedMutant on("shard.failing_told");
  Lab other;
  EXPECT_EQ(ToldBeforeAndAfterARestart(other), (std::pair<size_t, size_t>{60, 60}));
}

TEST(ShardFailing, AFewAreReplacedAtOnceAndCountWhenTheyTurnOutToBeMany) {
  Lab lab;
  Serve(lab, 100);
  Fail(lab, 0, 4);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 4);
  EXPECT_TRUE(lab.core().machines().set_aside().empty());
  Fail(lab, 4, 50);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 9) << "a tenth of those that are left, with the first four";
}

// What the provider first calls Failed and then forgets. How many are bought within eight minutes: a tenth at once and
// then in every two, for what is given up.
int BoughtForFailedOnesThatVanish(Lab& lab) {
  Serve(lab, 100);
  Fail(lab, 0, 50);
  lab.Run(5s);
  Lose(lab, 0, 50);
  lab.Run(70s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 10);
  for (int i = 0; i < 42; ++i) {
    lab.Finish();
    lab.Run(10s);
  }
  return lab.Count<contract::CreateRequest>();
}

TEST(ShardFailing, OnesThatVanishTooAreBoughtNeitherSoonerNorLater) {
  {
    const faults::ScopedMutant on("shard.given_up_is_charged_twice");
    Lab lab;
    EXPECT_LT(BoughtForFailedOnesThatVanish(lab), 50);
  }
  Lab lab;
  EXPECT_EQ(BoughtForFailedOnesThatVanish(lab), 50);
  EXPECT_EQ(lab.core().View()->missing, 0u);
  EXPECT_TRUE(lab.core().View()->losses_vanished.empty()) << "they were lost when they failed";
}

// Ten of a's hundred machines fail, four of them before that is a mass, and then as many of b's that it is one of the
// fleet too. What a has spent by then.
int64_t SpentWhenASecondAlertLatches() {
  Lab lab;
  lab.Add("b", 400, kConfigured, "b");
  lab.Add("m", 100, kConfigured, "a");
  lab.Add("s", 100, kSpeculative);
  lab.Start();
  lab.ConnectWith("a", 100);
  lab.ConnectWith("b", 400);
  lab.Run(2s);
  Fail(lab, 0, 4);
  lab.Run(5s);
  Fail(lab, 4, 10);
  lab.Run(5s);
  EXPECT_EQ(lab.core().View()->losses_failed, (std::set<std::string, std::less<>>{"a"}));
  EXPECT_EQ(lab.core().rails().budget().SpentBy("a"), 9) << "a tenth of those that are left";
  for (int i = 0; i < 20; ++i) lab.SetState(fmt::format("b-{:03}", i), kFailed);
  lab.Run(5s);
  EXPECT_EQ(lab.core().View()->losses_failed, (std::set<std::string, std::less<>>{"", "a"}));
  return lab.core().rails().budget().SpentBy("a");
}

TEST(ShardFailing, ASecondAlertChargesNothingAgain) {
  EXPECT_EQ(SpentWhenASecondAlertLatches(), 9);
  const faults::ScopedMutant on("shard.given_up_is_charged_twice");
  EXPECT_GT(SpentWhenASecondAlertLatches(), 9);
}

// Of a fleet of a thousand, 45 machines of the cluster with two hundred fail, and the shard restarts. Which alerts are
// latched before and after.
std::vector<std::set<std::string, std::less<>>> AlertsOverARestart(Lab& lab) {
  std::vector<std::set<std::string, std::less<>>> alerts;
  lab.Add("m", 200, kConfigured, "a");
  lab.Add("s", 200, kSpeculative);
  lab.Add("z", 800, kConfigured, "z");
  lab.Start();
  const auto connect = [&] {
    lab.ConnectWith("a", 200);
    lab.ConnectWith("z", 800);
  };
  connect();
  lab.Run(2s);
  Fail(lab, 0, 45);
  lab.Run(5s);
  alerts.push_back(lab.core().View()->losses_failed);
  EXPECT_EQ(lab.core().machines().set_aside().size(), 25u);
  lab.Restart();
  connect();
  lab.Run(20s);
  alerts.push_back(lab.core().View()->losses_failed);
  return alerts;
}

TEST(ShardFailing, ARestartInsideAnAlertOfOneClusterLatchesNoneOfTheFleet) {
  const std::set<std::string, std::less<>> of_a{"a"};
  {
    const faults::ScopedMutant on("shard.failing_counted_twice");
    Lab lab;
    EXPECT_NE(AlertsOverARestart(lab), (std::vector{of_a, of_a}));
  }
  faults::ResetProbes();
  Lab lab({.list_page = 50});  // the failed ones are seen before most of the fleet
  EXPECT_EQ(AlertsOverARestart(lab), (std::vector{of_a, of_a}));
  EXPECT_EQ(faults::ProbeHits()["shard.still_failing"], 25u);
  EXPECT_EQ(lab.core().machines().set_aside().size(), 25u);
  EXPECT_EQ(lab.core().View()->missing, 0u);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 20) << "no call";
  const auto row = codec::FromBytes<LossRow>(lab.disk.at(kLossRows.RowKey("a")));
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->failed, 45u);
  lab.Run(8min);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 45) << "and is given up as before";
}

// Of two hundred machines 120 fail, and their records do not say whose they were; `down`: while the shard is down. How
// many are bought at once.
int BoughtForUnnamed(Lab& lab, bool down) {
  Serve(lab, 200);
  FailUnnamed(lab, 0, 120);
  if (down) {
    lab.Restart();
    lab.ConnectWith("a", 200);
  }
  lab.Run(10s);
  return lab.Count<contract::CreateRequest>();
}

TEST(ShardFailing, OnesWhoseRecordsDoNotNameTheirClusterAreItsAllTheSame) {
  {
    const faults::ScopedMutant on("shard.served_forgotten");
    Lab lab;
    EXPECT_EQ(BoughtForUnnamed(lab, false), 120);
  }
  Lab lab;
  EXPECT_EQ(BoughtForUnnamed(lab, false), 20);
  EXPECT_EQ(lab.core().machines().set_aside().size(), 100u);
  EXPECT_EQ(lab.core().machines().BoundTo("a").machines.size(), 200u);
  EXPECT_EQ(lab.AskFor<contract::MachinesListed>(contract::ListMachines{.cluster_id = "a"}).machines.size(), 200u);
  lab.Restart();
  lab.ConnectWith("a", 200);
  lab.Run(100s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 20) << "the restart changes nothing";
  EXPECT_EQ(lab.core().machines().set_aside().size(), 100u);
  EXPECT_EQ(lab.core().machines().BoundTo("a").machines.size(), 200u);
  for (int i = 0; i < 120; ++i) lab.Put(Lab::MakeMachine(Name(i), kConfigured, "a"));
  lab.Run(5s);
  EXPECT_TRUE(lab.core().machines().set_aside().empty());
  EXPECT_FALSE(lab.disk.contains(kServedRows.RowKey(Name(0))));
}

TEST(ShardFailing, OnesThatFailWhileTheShardIsDownAndNameNoClusterAreReplacedATenthInTwoMinutes) {
  {
    const faults::ScopedMutant on("shard.failed_of_nobody_is_there");
    Lab lab;
    EXPECT_EQ(BoughtForUnnamed(lab, true), 120);
  }
  Lab lab;
  EXPECT_EQ(BoughtForUnnamed(lab, true), 20);
  EXPECT_EQ(lab.core().View()->losses_vanished, (std::set<std::string, std::less<>>{"a"}));
  lab.Run(2min);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 38) << "a tenth of what it has and lacks";
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 0);
}

// Two hundred machines of cluster a turn Failed while the shard is down. How many of them are deleted within an hour.
int DeletedOfThoseThatFailedWhileDown(Lab& lab) {
  lab.Add("m", 200, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 200);
  lab.Run(2s);
  Fail(lab, 0, 200);
  lab.Restart();
  lab.ConnectWith("a", 200);
  lab.Run(1h);
  return lab.Count<contract::DeleteRequest>();
}

TEST(ShardFailing, WhatFailedInMassesWhileTheShardWasDownIsNotRepaired) {
  {
    const faults::ScopedMutant on("shard.failed_while_down");
    Lab lab;
    EXPECT_GT(DeletedOfThoseThatFailedWhileDown(lab), 0);
  }
  faults::ResetProbes();
  Lab lab;
  EXPECT_EQ(DeletedOfThoseThatFailedWhileDown(lab), 0);
  EXPECT_EQ(faults::ProbeHits()["shard.failed_since_start"], 200u);
  EXPECT_EQ(lab.core().View()->losses_failed, (std::set<std::string, std::less<>>{"", "a"}));
  lab.Restart();
  lab.ConnectWith("a", 200);
  lab.Run(1h);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 0) << "another restart changes nothing";
  EXPECT_EQ(faults::ProbeHits()["shard.failed_since_start"], 200u) << "they have been seen";
  EXPECT_EQ(lab.AskFor<contract::LossesAccepted>(contract::AcceptLosses{}).failed, 200);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 2) << "one percent at a time";
}

TEST(ShardFailing, WhatFailedInMassesWhileTheShardWasDownIsReplacedATenthInTwoMinutes) {
  Lab lab;
  Serve(lab, 100);
  Fail(lab, 0, 60);
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 10);
  EXPECT_EQ(lab.core().machines().set_aside().size(), 50u);
}

// They fail while the shard is down, and the next life is killed after the first page of its first sweep. How many are
// bought at once.
int BoughtAfterASecondDeath(Lab& lab) {
  lab.config().list_page = 20;
  lab.head_revisions = true;
  Serve(lab, 100);
  Fail(lab, 0, 60);
  lab.holds = [](const PartnerRequest& request) {
    const auto* list = std::get_if<contract::ListRequest>(&request);
    return list != nullptr && !list->since_revision.empty();
  };
  lab.Restart();
  EXPECT_EQ(lab.core().machines().tracked().size(), 20u);
  lab.holds = nullptr;
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.Run(5s);
  return lab.Count<contract::CreateRequest>();
}

TEST(ShardFailing, ASecondDeathInsideTheFirstSweepPassesNothingByTheRail) {
  {
    const faults::ScopedMutant on("shard.failed_known_at_once");
    Lab lab;
    EXPECT_GT(BoughtAfterASecondDeath(lab), 10);
  }
  Lab lab;
  EXPECT_EQ(BoughtAfterASecondDeath(lab), 10);
  EXPECT_EQ(lab.core().machines().set_aside().size(), 50u);
  EXPECT_TRUE(lab.disk.contains(kRepairRows.RowKey(Name(0))));
}

TEST(ShardFailing, ClustersShowWhatWaitsForAnOperator) {
  Lab lab;
  lab.Add("z", 800, kConfigured, "z");
  Serve(lab, 100);
  lab.ConnectWith("z", 800);
  Fail(lab, 0, 20);
  lab.Run(5s);
  const auto listed = lab.AskFor<contract::ClustersListed>(contract::ListClusters{});
  EXPECT_FALSE(listed.losses_failed) << "of the fleet";
  EXPECT_TRUE(listed.clusters.at(0).losses_failed);
  EXPECT_FALSE(listed.clusters.at(0).losses_vanished);
  EXPECT_EQ(listed.clusters.at(0).failing, 10) << "ten are given up";
  EXPECT_FALSE(listed.clusters.at(1).losses_failed);
  EXPECT_EQ(lab.core().View()->failing, 10u);
  lab.Ask(contract::AcceptLosses{.cluster_id = "a"});
  EXPECT_FALSE(lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters.at(0).losses_failed);
  lab.Run(2s);
  EXPECT_EQ(lab.core().View()->failing, 0u);
}

TEST(ShardFailing, AMissingIdleMachineThatComesBackFailedIsNobodys) {
  Lab lab;
  Serve(lab, 10);
  for (const contract::Write& write : {kMissingRows.Put("i", Lab::MakeMachine("i", kIdle)), kRepairRows.Put("i", {})}) {
    lab.disk[write.key] = *write.value;
  }
  lab.Put(Lab::MakeMachine("i", kFailed));
  lab.Restart();
  EXPECT_TRUE(lab.core().machines().set_aside().empty());
  EXPECT_EQ(lab.core().machines().Find("i")->record->state, kFailed);
}

TEST(ShardLostWhileDown, ARowThatIsDamagedDoesNotHangTheStart) {
  Lab lab;
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  for (const contract::Write& write : {kLossRows.Put("a", {.failed = kHuge}), kChangeRows.Put("a", kHuge)}) {
    lab.disk[write.key] = *write.value;
  }
  Serve(lab, 10);
  EXPECT_EQ(lab.core().losses().state().failed.size(), 100'000u);
}

// Twenty machines serve cluster a, which wants as many more. Its Configures, of twenty at once, end in Failed while the
// shard is down, and so do the calls `served` says for machines that serve it. How many are set aside then.
size_t AsideOfThoseThatFailedOnTheirWay(Lab& lab, int served) {
  lab.config().first_bootstraps = 0;
  lab.config().execute_concurrency = 100;
  lab.Add("m", 20, kConfigured, "a");
  lab.Add("s", 100, kSpeculative);
  lab.Start();
  lab.ConnectWith("a", 20);
  lab.Run(2s);
  lab.ConnectWith("a", 40);
  lab.Run(2s);
  lab.Finish();
  lab.Run(20s);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 20);
  lab.breaks = [](const model::Machine& machine) { return machine.state == kConfiguring; };
  lab.Finish();
  Fail(lab, 0, served);
  lab.Restart();
  lab.ConnectWith("a", 40);
  lab.Run(5s);
  return lab.core().machines().set_aside().size();
}

TEST(ShardFailing, AConfigureThatEndedInFailedWhileTheShardWasDownIsNoLoss) {
  {
    const faults::ScopedMutant on("shard.never_served_is_lost");
    Lab lab;
    EXPECT_GT(AsideOfThoseThatFailedOnTheirWay(lab, 0), 0u);
  }
  faults::ResetProbes();
  Lab lab;
  EXPECT_EQ(AsideOfThoseThatFailedOnTheirWay(lab, 0), 0u);
  EXPECT_EQ(faults::ProbeHits()["shard.failed_since_start"], 20u);
  EXPECT_EQ(faults::ProbeHits()["shard.failed_before_it_served"], 20u);
  EXPECT_TRUE(lab.core().View()->losses_failed.empty());
  EXPECT_FALSE(lab.disk.contains(kLossRows.RowKey("a")));
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 40) << "others for all of them";
}

TEST(ShardFailing, BesideConfiguresThatEndedInFailedAsManyCountAsServeNoLonger) {
  faults::ResetProbes();
  Lab lab;
  EXPECT_EQ(AsideOfThoseThatFailedOnTheirWay(lab, 10), 8u) << "of ten, but for a tenth";
  EXPECT_EQ(faults::ProbeHits()["shard.failed_before_it_served"], 20u);
  EXPECT_EQ(lab.core().View()->losses_failed, (std::set<std::string, std::less<>>{"", "a"}));
}

// Ten Creates end in Failed while the shard is down: their records name no cluster.
TEST(ShardFailing, ACreateThatEndedInFailedWhileTheShardWasDownIsNoLoss) {
  const auto alerts = [](Lab& lab) {
    lab.config().execute_concurrency = 100;
    Serve(lab, 20);
    lab.ConnectWith("a", 30);
    lab.Run(2s);
    EXPECT_EQ(lab.InState(kCreating), 10);
    lab.breaks = [](const model::Machine& machine) { return machine.state == kCreating; };
    lab.Finish();
    lab.Restart();
    lab.ConnectWith("a", 30);
    lab.Run(5s);
    return lab.core().View()->losses_failed;
  };
  {
    const faults::ScopedMutant on("shard.never_served_is_lost");
    Lab lab;
    EXPECT_EQ(alerts(lab), (std::set<std::string, std::less<>>{""}));
  }
  Lab lab;
  EXPECT_TRUE(alerts(lab).empty());
  lab.Run(2min);
  EXPECT_GT(lab.Count<contract::DeleteRequest>(), 0) << "they are repaired";
}

TEST(ShardFailing, AFewThatFailedWhileTheShardWasDownAreRepaired) {
  Lab lab({.list_page = 3});  // the first page shows nothing but them
  Serve(lab, 100);
  Fail(lab, 0, 5);
  lab.Restart();
  lab.ConnectWith("a", 100);
  lab.Run(2min);
  EXPECT_TRUE(lab.core().View()->losses_failed.empty());
  EXPECT_GT(lab.Count<contract::DeleteRequest>(), 0);
}

TEST(ShardRepairs, NoneWhileMachinesFailInMasses) {
  Lab lab;
  lab.Add("m", 200, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 200);
  lab.Run(2s);
  Fail(lab, 0, 200);
  lab.Run(1h);
  EXPECT_TRUE(lab.transitions.empty());
  EXPECT_EQ(lab.core().View()->losses_failed, (std::set<std::string, std::less<>>{"", "a"}));
  lab.Restart();
  lab.ConnectWith("a", 200);
  lab.Run(1h);
  EXPECT_TRUE(lab.transitions.empty());
  EXPECT_EQ(lab.core().View()->losses_failed, (std::set<std::string, std::less<>>{"", "a"}));
  EXPECT_TRUE(lab.Ask(contract::RepairMachine{.machine_id = Name(7)}).status.ok()) << "a person may";
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1);
  const auto accepted = lab.AskFor<contract::LossesAccepted>(contract::AcceptLosses{});
  EXPECT_EQ(accepted.failed, 199);
  lab.Run(5s);
  EXPECT_TRUE(lab.core().View()->losses_failed.empty());
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 2) << "one percent at a time";
}

TEST(ShardRepairs, OtherClustersAreRepairedWhileOneFailsInMasses) {
  Lab lab;
  lab.Add("b", 400, kConfigured, "b");
  lab.Add("m", 20, kConfigured, "a");
  lab.Start();
  lab.Run(2s);
  Fail(lab, 0, 6);
  lab.SetState("b-000", kFailed);
  lab.Run(10min);
  EXPECT_EQ(lab.core().View()->losses_failed, (std::set<std::string, std::less<>>{"a"}));
  ASSERT_EQ(lab.Count<contract::DeleteRequest>(), 1);
  EXPECT_EQ(std::get<contract::DeleteRequest>(lab.transitions[0]).machine_id, "b-000");
}

TEST(ShardRepairs, AFailureNowAndThenIsNoAlert) {
  Lab lab;
  lab.Add("m", 20, kConfigured, "a");
  lab.Start();
  for (int i = 0; i < 20; ++i) {
    lab.SetState(Name(i), kFailed);
    lab.Run(3min);
  }
  EXPECT_TRUE(lab.core().View()->losses_failed.empty());
  EXPECT_GE(lab.Count<contract::DeleteRequest>(), 1);
}

TEST(ShardRepairs, AProviderThatRefusesIsNotAskedForEver) {
  const auto refuse = [](const contract::ProviderRequest& request) {
    return std::holds_alternative<contract::DeleteRequest>(request) ? Status(Code::kAborted, "it is Failed") : Status();
  };
  {
    const faults::ScopedMutant on("shard.refused_for_ever");
    Lab lab;
    lab.Add("m", 1, kFailed);
    lab.refuses = refuse;
    lab.Start();
    lab.Run(24h);
    EXPECT_GT(lab.Count<contract::DeleteRequest>(), 10);
  }
  faults::ResetProbes();
  Lab lab;
  lab.Add("m", 1, kFailed);
  lab.refuses = refuse;
  lab.Start();
  lab.Run(24h);
  EXPECT_EQ(faults::ProbeHits()["shard.repair_given_up"], 1u);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 3);
  EXPECT_EQ(lab.Noted(Reason::kRepairRefused), 1);
  const auto view = lab.AskFor<contract::MachinesListed>(contract::ListMachines{}).machines.at(0);
  EXPECT_EQ(view.reason, Reason::kRepairRefused);
  lab.Restart();
  lab.Run(24h);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 3) << "that is durable";
  lab.Ask(contract::RepairMachine{.machine_id = Name(0)});
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 4);
  lab.SetState(Name(0), kIdle);
  lab.Run(2s);
  lab.SetState(Name(0), kFailed);
  lab.refuses = nullptr;
  lab.Run(2h);
  EXPECT_EQ(lab.InState(kDeleting), 1) << "another state, another attempt";
}

TEST(ShardRepairs, OneThatIsOrderedAndFailsIsNotRepeatedByAPolicyThatIsNotThere) {
  Lab lab({.failed_policy = FailedPolicy::kKeep});
  lab.Put(Lab::MakeMachine("f", kFailed));
  lab.Start();
  lab.refusal = Status(Code::kInternal, "not now");
  EXPECT_TRUE(lab.Ask(contract::RepairMachine{.machine_id = "f"}).status.ok());
  lab.Run(5h);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1);
}

TEST(ShardRepairs, AnOutageOfTheProviderIsNoRefusal) {
  Lab lab;
  lab.Add("m", 1, kFailed);
  lab.refusal = Status(Code::kUnavailable, "try later");
  lab.Start();
  lab.Run(12h);
  EXPECT_GT(lab.Count<contract::DeleteRequest>(), 5);
  EXPECT_EQ(lab.Noted(Reason::kRepairRefused), 0);
}

}  // namespace
}  // namespace muster::shard
