// The shard's picture of the provider's machines, and when it decides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using enum model::MachineState;
using model::Reason;

TEST(ShardCycle, RunsByTheClock) {
  Lab lab;
  lab.Add("m", 2, kIdle);
  lab.Start();
  const int first = lab.cycles;
  EXPECT_EQ(first, 1);
  lab.Run(10s);
  EXPECT_EQ(lab.cycles, first + 10);
}

TEST(ShardCycle, RunsSoonAfterARollupAndOnceForSeveral) {
  Lab lab({.cycle_interval = 60s});
  lab.Add("m", 5, kIdle);
  lab.Start();
  lab.Run(1s);
  const int before = lab.cycles;
  lab.Connect("a");
  lab.Connect("b");
  lab.Rollup("a", 1);
  lab.Rollup("b", 1);
  lab.Run(10ms);
  EXPECT_EQ(lab.cycles, before + 1);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 2);
}

TEST(ShardCycle, RunsWhenTheProvidersMachinesChanged) {
  Lab lab({.cycle_interval = 1s, .cycle_gap = 1ms});
  lab.Add("m", 1, kSpeculative);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(100ms);
  ASSERT_EQ(lab.InState(kCreating), 1);
  lab.Run(900ms);  // a list, without news
  lab.Finish();
  lab.Run(1s);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 1) << "bound right after it was seen Idle";
}

TEST(ShardCycle, NeverWaitsForTheProvider) {
  Lab lab;
  lab.Add("m", 5, kIdle);
  lab.Start();
  lab.silent = true;
  lab.ConnectWith("a", 1);
  const int before = lab.cycles;
  lab.Run(20s);
  EXPECT_GE(lab.cycles, before + 20);
  EXPECT_EQ(lab.core().executor().operations().size(), 1u);
}

TEST(ShardReconcile, SeesAPriceThatChangedWithoutATransition) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  model::Machine machine = lab.machines.at("m-000");
  machine.price_per_hour = {7};
  machine.labels["rack"] = "r9";
  lab.Put(machine);
  lab.Run(2s);
  EXPECT_EQ(*lab.core().machines().tracked().at("m-000").record, machine);
}

TEST(ShardReconcile, AFullSweepSeesWhatIsGone) {
  Lab lab;
  lab.Add("m", 3, kIdle);
  lab.Start();
  lab.machines.erase("m-001");
  lab.Run(30s);
  EXPECT_EQ(lab.core().machines().tracked().size(), 3u) << "lists of changes do not show it";
  lab.Run(40s);
  EXPECT_EQ(lab.core().machines().tracked().size(), 2u);
  EXPECT_EQ(lab.Noted(Reason::kVanished), 1);
}

TEST(ShardReconcile, WhatComesBackIsAdoptedFromItsMetadata) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  lab.Finish();
  lab.Run(1s);
  const model::Machine bound = lab.machines.at("m-000");
  ASSERT_EQ(bound.state, kConfigured);
  lab.machines.clear();
  lab.Run(2min);
  ASSERT_TRUE(lab.core().machines().tracked().empty());
  lab.Put(bound);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 1) << "it serves the need as before";
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
}

TEST(ShardReconcile, RefusesGarbageByNameAndKeepsTheLastGoodRecord) {
  Lab lab;
  lab.Add("m", 2, kIdle);
  lab.Start();
  model::Machine bad = lab.machines.at("m-000");
  bad.price_per_hour = {-1};
  lab.Put(bad);
  const model::Machine unknown = Lab::MakeMachine("x", kUnspecified);
  lab.Put(unknown);
  lab.rejected = {{.id = "y", .reason = "interruption_probability: 2 is not from 0 to 1"}};
  lab.Run(1500ms);
  EXPECT_EQ(lab.core().machines().tracked().at("m-000").record->price_per_hour.micros, 1'000'000);
  EXPECT_FALSE(lab.core().machines().tracked().contains("x"));
  const auto rejected = lab.core().View()->counters.machines_rejected;
  EXPECT_EQ(rejected.at("price_per_hour"), 1u);
  EXPECT_EQ(rejected.at("state"), 1u);
  EXPECT_GE(rejected.at("interruption_probability"), 1u);
  ASSERT_FALSE(lab.notices.empty());
  EXPECT_EQ(lab.notices.front().subject, "m-000");
  EXPECT_EQ(lab.notices.front().detail, "price_per_hour: -$0.000001 is negative");
  lab.rejected = {{.id = "m-001", .reason = "price_per_hour: not a number"}};
  lab.machines.erase("m-001");
  lab.Run(2min);
  EXPECT_TRUE(lab.core().machines().tracked().contains("m-001")) << "a refused record counts as seen";
}

// One record with as many names as there is room for must not keep others out for ever.
TEST(ShardReconcile, NamesOfResourcesThatNoMachineHasAnyMoreMakeRoom) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  model::Machine junk = Lab::MakeMachine("junk", kIdle);
  junk.resources = {};
  for (int i = 0; i < 14; ++i) junk.resources.Set(fmt::format("example.com/junk-{}", i), 1000);
  lab.Put(junk);
  lab.Start();
  lab.Run(2s);
  model::Machine gpus = Lab::MakeMachine("gpus", kIdle);
  gpus.resources.Set("example.com/gpu", 8000);
  lab.Put(gpus);
  lab.Run(2s);
  EXPECT_FALSE(lab.core().machines().tracked().contains("gpus"));
  EXPECT_EQ(lab.Noted(model::Reason::kRecordRefused), 1);
  lab.Lose("junk");
  lab.Run(130s);
  EXPECT_FALSE(lab.core().machines().tracked().contains("junk"));
  EXPECT_TRUE(lab.core().machines().tracked().contains("gpus")) << "the next sweep shows it again";
  lab.Put(junk);
  lab.Run(2s);
  EXPECT_FALSE(lab.core().machines().tracked().contains("junk"));
}

// A machine has as many kinds of resources as there is room for, and others from now on.
TEST(ShardReconcile, AMachinesOwnNamesOfResourcesMakeRoomForItsNewOnes) {
  const auto names_it = [](const std::string& as) {
    model::Machine machine = Lab::MakeMachine("many", kIdle);
    machine.resources = {};
    for (int i = 0; i < 14; ++i) machine.resources.Set(fmt::format("example.com/{}-{}", as, i), 1000);
    return machine;
  };
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Put(names_it("old"));
  lab.Start();
  lab.Run(2s);
  ASSERT_TRUE(lab.core().machines().tracked().contains("many"));
  lab.Put(names_it("new"));
  lab.Run(2s);
  EXPECT_EQ(lab.Noted(model::Reason::kRecordRefused), 0);
  EXPECT_EQ(lab.core().machines().tracked().at("many").record->resources.Get("example.com/new-13"), 1000);
}

TEST(ShardReconcile, TakesAnyStateTheProviderReportsAndSaysSo) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.SetState("m-000", kSpeculative);
  model::Machine machine = lab.machines.at("m-000");
  machine.host = {};
  lab.Put(machine);
  lab.Run(2s);
  EXPECT_EQ(lab.core().machines().tracked().at("m-000").record->state, kSpeculative);
  ASSERT_EQ(lab.Noted(Reason::kOddEdge), 1);
  EXPECT_EQ(lab.notices.back().detail, "Idle to Speculative");
}

TEST(ShardReconcile, AListAskedForBeforeATransitionSaysNothingAboutIt) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.Connect("a");
  lab.silent = true;
  lab.Run(1s);
  ASSERT_EQ(lab.waiting(), 1u) << "a list is under way";
  lab.Rollup("a", 1);
  lab.Run(500ms);
  ASSERT_EQ(lab.waiting(), 2u) << "and a Configure";
  lab.silent = false;
  lab.Run(100ms);
  EXPECT_EQ(lab.core().machines().tracked().at("m-000").record->state, kConfiguring);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 1);
}

template <class Request>
bool Is(const PartnerRequest& request) {
  return std::holds_alternative<Request>(request);
}

TEST(ShardReconcile, WhatAnOldListShowsIsAskedForByName) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.Connect("a");
  lab.holds = Is<contract::ListRequest>;
  lab.Run(1s);
  lab.Rollup("a", 1);
  lab.Run(500ms);
  ASSERT_EQ(lab.InState(kConfiguring, "a"), 1);
  lab.Finish();
  lab.Release();  // begun before the Configure, the list shows the machine Configured; the next one will not show it
  lab.Run(100ms);
  EXPECT_EQ(lab.core().machines().tracked().at("m-000").record->state, kConfigured);
}

TEST(ShardReconcile, AMachineThatCameBackWhileAListWasMadeIsAdopted) {
  Lab lab;
  lab.Add("m", 2, kSpeculative);
  lab.Start();
  const model::Machine lost = lab.machines.at("m-001");
  lab.Run(50s);
  lab.Lose("m-001");
  lab.holds = Is<contract::GetRequest>;
  lab.Run(10s + 500ms);  // the sweep does not show it, and it is asked for by name
  lab.silent = true;
  lab.Run(1s);  // a list is asked for
  lab.silent = false;
  lab.Release(Is<contract::ListRequest>);
  lab.Run(10ms);
  ASSERT_FALSE(lab.core().machines().tracked().contains("m-001"));
  lab.Put(lost);
  lab.Release();
  lab.Run(100ms);
  EXPECT_TRUE(lab.core().machines().tracked().contains("m-001"));
}

TEST(ShardReconcile, AskByNameWhenItIsNotKnownHowATransitionEnded) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.refusal = Status(Code::kUnavailable, "try later");
  lab.ConnectWith("a", 1);
  lab.Run(500ms);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 1);
  EXPECT_EQ(lab.Outcomes("provider_error"), 1);
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 1) << "it rests before the next attempt";
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 2);
  lab.refusal = {};
  lab.Run(10s);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 1);
}

TEST(ShardOwnership, TwoShardsOnOneProviderNeverOwnOneMachine) {
  const auto provider = std::make_shared<LabProvider>();
  Lab left({.id = "left", .own = {{.key = "topology.kubernetes.io/zone", .value = "a"}}}, provider);
  Lab right({.id = "right", .own = {{.key = "topology.kubernetes.io/zone", .value = "b"}}}, provider);
  for (int i = 0; i < 6; ++i) {
    model::Machine machine = Lab::MakeMachine(fmt::format("m-{}", i), kIdle);
    machine.zone = i % 2 == 0 ? "a" : "b";
    left.Put(machine);
  }
  for (Lab* lab : {&left, &right}) {
    lab->Start();
    lab->ConnectWith("c", 6);
    lab->Run(5s);
    EXPECT_EQ(lab->core().machines().tracked().size(), 3u);
    EXPECT_EQ(lab->Count<contract::ConfigureRequest>(), 3);
  }
  left.Run(2min);
  for (const auto& [id, tracked] : left.core().machines().tracked())
    EXPECT_FALSE(right.core().machines().tracked().contains(id));
  EXPECT_EQ(left.transitions.size() + right.transitions.size(), 6u) << "each its own half, once";
}

TEST(ShardOwnership, AMachineThatLeavesItsDomainLeavesTheShard) {
  Lab lab({.own = {{.key = "rack", .value = "r1"}}});
  model::Machine machine = Lab::MakeMachine("m", kIdle);
  machine.labels["rack"] = "r1";
  lab.Put(machine);
  lab.Start();
  EXPECT_EQ(lab.core().machines().tracked().size(), 1u);
  machine.labels["rack"] = "r2";
  lab.Put(machine);
  lab.Run(2s);
  EXPECT_TRUE(lab.core().machines().tracked().empty());
  EXPECT_EQ(lab.Noted(Reason::kNotOwned), 1);
}

TEST(ShardFailed, IsRepairedAfterAPauseThatGrows) {
  Lab lab;
  lab.Put(Lab::MakeMachine("m", kFailed));
  lab.Start();
  lab.Run(59s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 0);
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1);
  lab.SetState("m", kFailed);
  lab.Run(110s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1);
  lab.Run(15s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 2);
  lab.Finish();
  lab.Run(5s);
  EXPECT_EQ(lab.InState(kSpeculative), 1);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 0) << "nobody needs it";
}

TEST(ShardFailed, OwnedHardwareIsMadeAgain) {
  Lab lab;
  model::Machine machine = Lab::MakeMachine("m", kFailed);
  machine.capacity_type = model::CapacityType::kBareMetal;
  lab.Put(machine);
  lab.Start();
  lab.Run(65s);
  lab.Finish();
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 1);
  lab.Finish();
  lab.Run(5s);
  EXPECT_EQ(lab.InState(kIdle), 1);
}

TEST(ShardFailed, IsKeptIfThePolicySaysSo) {
  Lab lab({.failed_policy = FailedPolicy::kKeep});
  lab.Put(Lab::MakeMachine("m", kFailed));
  lab.Start();
  lab.Run(10min);
  EXPECT_TRUE(lab.transitions.empty());
  EXPECT_TRUE(lab.Ask(contract::RepairMachine{.machine_id = "m"}).status.ok());
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1) << "by hand, at once";
  EXPECT_EQ(lab.Ask(contract::RepairMachine{.machine_id = "m"}).status.code(), Code::kAborted);
  EXPECT_EQ(lab.Ask(contract::RepairMachine{.machine_id = "n"}).status.code(), Code::kNotFound);
}

TEST(ShardFailed, IsForgottenUntilTheProviderReportsAnotherState) {
  Lab lab({.failed_policy = FailedPolicy::kKeep});
  lab.Add("i", 1, kIdle);
  lab.Put(Lab::MakeMachine("m", kFailed));
  lab.Start();
  EXPECT_EQ(lab.Ask(contract::ForgetMachine{.machine_id = "i-000"}).status.code(), Code::kAborted);
  EXPECT_TRUE(lab.Ask(contract::ForgetMachine{.machine_id = "m"}).status.ok());
  lab.Run(2min);
  lab.Restart();
  lab.Run(2min);
  EXPECT_FALSE(lab.core().machines().tracked().contains("m"));
  lab.SetState("m", kIdle);
  lab.Run(2s);
  EXPECT_TRUE(lab.core().machines().tracked().contains("m"));
}

// A list of machines m-000 on, from `first`, round and round.
contract::ListReply PageFrom(const Lab& lab, size_t first, size_t size) {
  contract::ListReply reply;
  for (size_t i = 0; i < size; ++i) {
    reply.machines.emplace_back(lab.machines.at(fmt::format("m-{:03}", (first + i) % lab.machines.size())));
  }
  return reply;
}

TEST(ShardSweep, GoesOnPageByPageAndOneIsReadWhileTheNextIsMade) {
  Lab lab({.list_page = 3});
  lab.Add("m", 8, kIdle);
  int waited = 0;
  lab.lists_as = [&](const contract::ListRequest& request) {
    waited += lab.core().reconcile().page_waits() ? 1 : 0;
    const size_t first = request.since_revision.empty() ? 0 : std::stoul(request.since_revision);
    const size_t most = request.max_results > 0 ? 3 : 8;
    contract::ListReply reply = PageFrom(lab, first, std::min<size_t>(most, 8 - first));
    reply.revision = std::to_string(first + reply.machines.size());
    return reply;
  };
  lab.Start();
  EXPECT_EQ(lab.core().machines().tracked().size(), 8u);
  EXPECT_EQ(lab.lists, 4) << "three pages, and one list that checks them";
  EXPECT_EQ(waited, 2) << "the next page was asked for first";
  lab.Run(61s);
  EXPECT_EQ(lab.core().reconcile().state().pages, Pages::kGoOn) << "they are not checked again";
  EXPECT_EQ(lab.Noted(model::Reason::kProviderSilent), 0);
}

// Some providers answer a capped page with their newest revision: what follows it is nothing.
TEST(ShardSweep, SeesAllMachinesOfAProviderThatAnswersPagesWithItsNewestRevision) {
  Lab lab;
  lab.head_revisions = true;
  lab.Add("m", 12'000, kSpeculative);
  lab.Start();
  EXPECT_EQ(lab.core().machines().tracked().size(), 12'000u);
  EXPECT_EQ(lab.core().reconcile().state().pages, Pages::kDoNotGoOn);
  EXPECT_EQ(lab.Noted(model::Reason::kProviderSilent), 1);
  for (auto& [id, machine] : std::map(lab.machines)) {
    machine.price_per_hour = {2'000'000};
    lab.Put(machine);
  }
  lab.Run(2s);
  for (const auto& [id, tracked] : lab.core().machines().tracked()) {
    ASSERT_EQ(tracked.record->price_per_hour.micros, 2'000'000) << id;
  }
}

struct Listed {
  int32_t cap;
  std::string since;
  bool operator==(const Listed&) const = default;
};

// A list of 12,000 machines costs a provider and a shard as much as the sweep: a part of them tells as much.
TEST(ShardSweep, PagesOfALargeFleetAreCheckedByAPart) {
  constexpr size_t kAll = 12'000;
  Lab lab;
  lab.Add("m", kAll, kSpeculative);
  std::vector<Listed> asked;
  lab.lists_as = [&](const contract::ListRequest& request) {
    asked.push_back({request.max_results, request.since_revision});
    const size_t first = request.since_revision.empty() ? 0 : std::stoul(request.since_revision);
    const size_t most = request.max_results > 0 ? static_cast<size_t>(request.max_results) : kAll;
    contract::ListReply reply = PageFrom(lab, first, std::min(most, kAll - first));
    reply.revision = std::to_string(first + reply.machines.size());
    return reply;
  };
  lab.Start();
  EXPECT_EQ(lab.core().machines().tracked().size(), kAll);
  EXPECT_EQ(lab.core().reconcile().state().pages, Pages::kGoOn);
  EXPECT_EQ(asked, (std::vector<Listed>{{5000, ""}, {5000, "5000"}, {5000, "10000"}, {6000, ""}}));
  EXPECT_EQ(lab.Noted(model::Reason::kProviderSilent), 0);
  asked.clear();
  lab.Run(1s);
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.front(), (Listed{5000, "12000"})) << "changes are those since the last page, not since the part";
}

// Pages of a provider that answers with its newest revision may look as if they went on, if thousands of machines
// change meanwhile. The part tells, by what has not changed, or because the provider has a cap of its own, whether its
// next list begins anew or shows the very rest.
TEST(ShardSweep, PagesOfWhatChangedAreToldByAPart) {
  constexpr size_t kAll = 12'000;
  struct Part {
    size_t first, size;
  };
  for (const Part part : {Part{0, 6000}, Part{0, 5000}, Part{5000, 5000}}) {
    Lab lab;
    lab.Add("m", kAll, kSpeculative);
    std::vector<Listed> asked;
    lab.lists_as = [&](const contract::ListRequest& request) {
      asked.push_back({request.max_results, request.since_revision});
      contract::ListReply reply;
      if (request.since_revision == "head") reply = PageFrom(lab, 10'000, 2'000);
      if (request.since_revision.empty()) {
        if (request.max_results == 0) reply = PageFrom(lab, 0, kAll);
        if (request.max_results == 5000) reply = PageFrom(lab, 0, 5000);
        if (request.max_results == 6000) reply = PageFrom(lab, part.first, part.size);
      }
      reply.revision = request.since_revision.empty() ? "head" : "later";
      return reply;
    };
    lab.Start();
    EXPECT_EQ(lab.core().machines().tracked().size(), kAll);
    EXPECT_EQ(lab.core().reconcile().state().pages, Pages::kDoNotGoOn);
    EXPECT_EQ(asked, (std::vector<Listed>{{5000, ""}, {5000, "head"}, {6000, ""}, {0, ""}}));
    EXPECT_EQ(lab.Noted(model::Reason::kProviderSilent), 1);
  }
}

// A provider that answers a capped page with its newest revision is away for 30 s after its first pages. The shard sees
// all its machines before it decides.
void SeeAllAfterAnOutage(Lab& lab) {
  lab.head_revisions = true;
  lab.Add("m", 6'000, kConfigured, "a");
  lab.Add("s", 6'000, kSpeculative);
  const MonoTime back = lab.now.mono + 30s;
  lab.refuses_lists = [&lab, back](const contract::ListRequest&) {
    const bool away = lab.lists > 2 && lab.now.mono < back;
    return away ? Status(Code::kUnavailable, "it restarts") : Status();
  };
  lab.Start();
  lab.ConnectWith("a", 6'000);
  lab.Run(25s);
}

TEST(ShardSweep, AnOutageWhileThePagesAreCheckedIsWaitedFor) {
  Lab lab;
  SeeAllAfterAnOutage(lab);
  EXPECT_FALSE(lab.core().View()->ready);
  lab.Run(60s);
  EXPECT_TRUE(lab.core().View()->ready);
  EXPECT_EQ(lab.core().machines().tracked().size(), 12'000u);
  EXPECT_FALSE(lab.core().View()->pages_unchecked);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 0);
  const faults::ScopedMutant on("shard.check_given_up");
  Lab other;
  SeeAllAfterAnOutage(other);
  other.Run(60s);
  EXPECT_EQ(other.core().machines().tracked().size(), 5'000u) << "for life";
}

// A list of more than a page is too large for the provider, whose pages go on. What they show is believed; every later
// sweep tries once to check it.
TEST(ShardSweep, PagesThatCannotBeCheckedAreBelievedUntilTheyCan) {
  faults::ResetProbes();
  Lab lab({.list_page = 3});
  lab.Add("m", 8, kIdle);
  bool too_large = true;
  int checks = 0;
  lab.lists_as = [&](const contract::ListRequest& request) {
    const size_t first = request.since_revision.empty() ? 0 : std::stoul(request.since_revision);
    const size_t most = request.max_results > 0 ? 3 : 8;
    contract::ListReply reply = PageFrom(lab, first, std::min<size_t>(most, 8 - first));
    reply.revision = std::to_string(first + reply.machines.size());
    return reply;
  };
  lab.refuses_lists = [&](const contract::ListRequest& request) {
    checks += request.max_results != 3 ? 1 : 0;
    return request.max_results != 3 && too_large ? Status(Code::kResourceExhausted, "too large") : Status();
  };
  lab.Start();
  lab.Run(10s);
  EXPECT_TRUE(lab.core().View()->ready);
  EXPECT_TRUE(lab.core().View()->pages_unchecked);
  EXPECT_EQ(checks, 3);
  EXPECT_EQ(faults::ProbeHits()["shard.pages_unchecked"], 1u);
  lab.Run(65s);
  EXPECT_EQ(checks, 4) << "the next sweep";
  too_large = false;
  lab.Run(65s);
  EXPECT_FALSE(lab.core().View()->pages_unchecked);
  EXPECT_EQ(lab.core().reconcile().state().pages, Pages::kGoOn);
}

// Its pages do not go on, and a list without a cap is too large: a shard that sees a part of its machines waits.
TEST(ShardSweep, APartOfTheFleetIsNotTakenForAll) {
  Lab lab({.list_page = 3});
  lab.Add("m", 7, kIdle);
  bool too_large = true;
  lab.lists_as = [&](const contract::ListRequest& request) {
    contract::ListReply reply = PageFrom(lab, 0, request.max_results > 0 ? 3 : 7);
    reply.revision = "head";
    return reply;
  };
  lab.refuses_lists = [&](const contract::ListRequest& request) {
    return request.max_results == 0 && too_large ? Status(Code::kResourceExhausted, "too large") : Status();
  };
  lab.Start();
  lab.Run(10min);
  EXPECT_EQ(lab.core().reconcile().state().pages, Pages::kDoNotGoOn);
  EXPECT_FALSE(lab.core().View()->ready);
  too_large = false;
  lab.Run(1min);
  EXPECT_TRUE(lab.core().View()->ready);
  EXPECT_EQ(lab.core().machines().tracked().size(), 7u);
}

// A provider whose disk is full says no revision. More machines than a page has are seen by lists without a cap, which
// do not follow each other at once; with its revisions its pages are what they were.
TEST(ShardSweep, APageWithoutARevisionIsFollowedByAListOfAll) {
  for (const bool checked : {false, true}) {
    Lab lab({.list_page = 3});
    lab.Add("m", 8, kIdle);
    bool disk_is_full = !checked;
    std::vector<Listed> asked;
    lab.lists_as = [&](const contract::ListRequest& request) {
      asked.push_back({request.max_results, request.since_revision});
      const size_t first = request.since_revision.empty() ? 0 : std::stoul(request.since_revision);
      const size_t most = request.max_results > 0 ? 3 : 8;
      contract::ListReply reply = PageFrom(lab, first, std::min<size_t>(most, 8 - first));
      if (!disk_is_full) reply.revision = std::to_string(first + reply.machines.size());
      return reply;
    };
    lab.Start();
    const Pages pages = checked ? Pages::kGoOn : Pages::kUnknown;
    if (checked) {
      EXPECT_TRUE(lab.core().View()->ready);
    } else {
      EXPECT_EQ(asked, (std::vector<Listed>{{3, ""}}));
      EXPECT_FALSE(lab.core().View()->ready) << "a page is not all";
      lab.Run(lab.config().cycle_interval);
      EXPECT_EQ(asked, (std::vector<Listed>{{3, ""}, {0, ""}}));
      EXPECT_TRUE(lab.core().View()->ready);
    }
    disk_is_full = true;
    EXPECT_EQ(lab.core().machines().tracked().size(), 8u);
    EXPECT_EQ(lab.core().reconcile().state().pages, pages);
    asked.clear();
    const auto cycles = 90;
    lab.Run(cycles * lab.config().cycle_interval);
    EXPECT_LE(asked.size(), cycles + 2u);
    EXPECT_TRUE(std::ranges::count(asked, Listed{0, ""}) > 0);
    EXPECT_EQ(lab.core().reconcile().state().pages, pages);
    EXPECT_EQ(lab.Noted(model::Reason::kProviderSilent), 0);
    disk_is_full = false;
    lab.Run(2min);
    EXPECT_EQ(lab.core().reconcile().state().pages, Pages::kGoOn);
    asked.clear();
    lab.Run(2min);
    EXPECT_FALSE(std::ranges::count(asked, Listed{0, ""}) > 0);
    EXPECT_EQ(lab.core().machines().tracked().size(), 8u);
  }
}

// The list of all is too large: a shard that has seen one page waits, and one that knows its machines keeps them.
TEST(ShardSweep, APageWithoutARevisionTellsNothingOfTheOthers) {
  Lab lab({.list_page = 3});
  lab.Add("m", 8, kIdle);
  bool too_large = true;
  lab.lists_as = [&](const contract::ListRequest& request) {
    return PageFrom(lab, 0, request.max_results > 0 ? 3 : 8);
  };
  lab.refuses_lists = [&](const contract::ListRequest& request) {
    return request.max_results == 0 && too_large ? Status(Code::kResourceExhausted, "too large") : Status();
  };
  lab.Start();
  lab.Run(5min);
  EXPECT_FALSE(lab.core().View()->ready);
  too_large = false;
  lab.Run(1min);
  EXPECT_TRUE(lab.core().View()->ready);
  EXPECT_EQ(lab.core().machines().tracked().size(), 8u);
  too_large = true;
  lab.Run(5min);
  EXPECT_EQ(lab.core().machines().tracked().size(), 8u);
  EXPECT_FALSE(lab.core().View()->pages_unchecked);
}

// One provider gives the same page again and again, another goes round and round. Either way the sweep ends, and says
// so.
TEST(ShardSweep, EndsThoughPagesDoNotGoOn) {
  for (const size_t step : {size_t{0}, size_t{3}}) {
    Lab lab({.list_page = 3});
    lab.Add("m", 7, kIdle);
    size_t next = 0;
    lab.lists_as = [&](const contract::ListRequest&) {
      contract::ListReply reply = PageFrom(lab, std::exchange(next, next + step), 3);
      reply.revision = "head";
      return reply;
    };
    lab.Start();
    EXPECT_EQ(lab.core().machines().tracked().size(), step == 0 ? 3u : 7u);
    EXPECT_EQ(lab.Noted(model::Reason::kProviderSilent), 1);
    EXPECT_LE(lab.lists, 6) << "and waits before it begins anew";
  }
}

}  // namespace
}  // namespace muster::shard
