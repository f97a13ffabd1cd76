#include "core/provider/provider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/codec.h"
#include "base/probe.h"
#include "base/rng.h"
#include "base/source_dir_for_test.h"

namespace muster::provider {
namespace {

using contract::ConfigureRequest;
using contract::CreateRequest;
using contract::DeleteRequest;
using contract::DrainRequest;
using contract::FenceToken;
using contract::GetRequest;
using contract::ListRequest;
using model::MachineState;

contract::Slot SlotOf(const std::string& id, MachineState state = MachineState::kSpeculative) {
  model::Machine machine{.id = id, .state = state, .instance_type = "large", .zone = "a"};
  machine.capacity_type = model::CapacityType::kSpot;
  machine.price_per_hour = {250'000};
  if (state == MachineState::kIdle) machine.host = {.provider = "test", .ref = "owned-" + id};
  return {.machine = machine, .deletable = state != MachineState::kIdle};
}

// A core, the rows it stored, and the calls it has open; time stands still unless moved.
class Bench {
 public:
  explicit Bench(std::vector<contract::Slot> slots) : slots_(std::move(slots)) { Restart(); }

  void Restart() {
    auto core = Core::Recover({.name = "test", .new_lineage = 7}, slots_, rows_);
    ASSERT_TRUE(core.has_value()) << core.error().ToString();
    core_.emplace(*std::move(core));
    open_.clear();
    Step(contract::Wake{});
  }
  void SetSlots(std::vector<contract::Slot> slots) { slots_ = std::move(slots); }

  Answer Ask(contract::ProviderRequest request) {
    answer_.reset();
    Step(Asked{.request = ++request_, .body = std::move(request)});
    EXPECT_TRUE(answer_.has_value());
    return answer_.value_or(Answer{});
  }
  Code CodeOf(contract::ProviderRequest request) { return Ask(std::move(request)).status.code(); }
  std::string Accepted(contract::ProviderRequest request) {
    const Answer answer = Ask(std::move(request));
    EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
    return answer.reply ? std::get<contract::TransitionAck>(*answer.reply).operation_id : "";
  }
  contract::ListReply List(const ListRequest& request = {}) {
    return std::get<contract::ListReply>(Ask(request).reply.value());
  }
  model::Machine Get(const std::string& id) {
    return *std::get<contract::GetReply>(Ask(GetRequest{id}).reply.value()).machine;
  }
  // Ends the oldest open call.
  void End(Status status = {}, const std::string& host = "host") {
    ASSERT_FALSE(open_.empty());
    const contract::CallId id = open_.front().id;
    const bool ok = status.ok();
    Core::CallDone done{.id = id, .status = std::move(status), .reply = {}};
    if (ok) done.reply = contract::OperationDone{.host = {.provider = "test", .ref = host}};
    open_.erase(open_.begin());
    Step(done);
  }
  void Configured(const std::string& id, const std::string& cluster) {
    Accepted(CreateRequest{.machine_id = id});
    End();
    Accepted(
        ConfigureRequest{.machine_id = id, .cluster_id = cluster, .shard_metadata = {{"k", std::string("\0\xff", 2)}}});
    End();
  }
  void Step(const Core::Event& event) {
    std::vector<Core::Effect> effects;
    core_->Step(event, now_, effects);
    core_->CheckInvariants();
    for (const Core::Effect& effect : effects) {
      if (const auto* persist = std::get_if<contract::Persist>(&effect)) {
        for (const contract::Write& write : persist->writes) {
          if (write.value) rows_[write.key] = *write.value;
          if (!write.value) rows_.erase(write.key);
        }
      } else if (const auto* call = std::get_if<Core::Call>(&effect)) {
        open_.push_back(*call);
      } else {
        answer_ = std::get<Answer>(effect);
      }
    }
  }

  std::optional<Core> core_;
  std::vector<Core::Call> open_;
  contract::Recovered rows_;
  Now now_{.mono = MonoTime(1h), .wall = WallTime(1000h)};

 private:
  std::vector<contract::Slot> slots_;
  std::optional<Answer> answer_;
  contract::RequestId request_ = 0;
};

std::vector<std::string> Ids(const contract::ListReply& reply) {
  std::vector<std::string> ids;
  for (const contract::MachineRecord& machine : reply.machines) ids.push_back(machine->id);
  std::ranges::sort(ids);
  return ids;
}

TEST(ProviderCore, AMachineLivesItsWholeLife) {
  Bench bench({SlotOf("m1")});
  bench.Accepted(CreateRequest{.machine_id = "m1"});
  EXPECT_EQ(bench.Get("m1").state, MachineState::kCreating);
  EXPECT_TRUE(bench.Get("m1").host.empty());
  bench.End({}, "host-1");
  EXPECT_EQ(bench.Get("m1").state, MachineState::kIdle);
  EXPECT_EQ(bench.Get("m1").host.ref, "host-1");
  const std::map<std::string, std::string> metadata{{"a", std::string("\0b", 2)}, {"", ""}};
  bench.Accepted(
      ConfigureRequest{.machine_id = "m1", .cluster_id = "c", .bootstrap_blob = "b", .shard_metadata = metadata});
  EXPECT_EQ(bench.open_.back().request.bootstrap_blob, "b");
  EXPECT_EQ(bench.Get("m1").cluster, "c");
  bench.End();
  EXPECT_EQ(bench.Get("m1").state, MachineState::kConfigured);
  EXPECT_EQ(bench.Get("m1").shard_metadata, metadata);
  bench.Accepted(DrainRequest{.machine_id = "m1", .grace_period_seconds = 30});
  EXPECT_EQ(bench.open_.back().request.grace, 30s);
  EXPECT_EQ(bench.Get("m1").shard_metadata, metadata) << "bound until the drain ends";
  bench.End();
  EXPECT_EQ(bench.Get("m1").state, MachineState::kIdle);
  EXPECT_EQ(bench.Get("m1").cluster, "");
  EXPECT_TRUE(bench.Get("m1").shard_metadata.empty());
  bench.Accepted(DeleteRequest{.machine_id = "m1"});
  bench.End();
  EXPECT_EQ(bench.Get("m1"), SlotOf("m1").machine) << "as before it was ever touched";
}

TEST(ProviderCore, ChecksComeInTheirOrder) {
  Bench bench({SlotOf("m1")});
  const FenceToken used{.shard_id = "s", .epoch = 1, .sequence = 5};
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "", .fence = used}), Code::kInvalidArgument);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "ghost", .fence = used}), Code::kNotFound);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "ghost", .fence = used}), Code::kFailedPrecondition)
      << "the mark of a machine that does not exist is kept";
  EXPECT_EQ(bench.CodeOf(DrainRequest{.machine_id = "m1", .fence = used}), Code::kAborted);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = used}), Code::kFailedPrecondition)
      << "a call that failed has used its token";
  const std::string id = bench.Accepted(CreateRequest{.machine_id = "m1", .fence = {"s", 1, 6}});
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 1, 6}}), Code::kFailedPrecondition)
      << "the fence comes before the repetition";
  EXPECT_EQ(bench.Accepted(CreateRequest{.machine_id = "m1", .fence = {"s", 1, 7}}), id);
  EXPECT_EQ(bench.CodeOf(ConfigureRequest{.machine_id = "m1", .cluster_id = "c", .fence = {"s", 1, 8}}),
            Code::kAborted);
  bench.End();
  EXPECT_EQ(bench.CodeOf(ConfigureRequest{.machine_id = "m1", .fence = {"s", 1, 9}}), Code::kInvalidArgument);
  EXPECT_EQ(bench.CodeOf(GetRequest{""}), Code::kInvalidArgument);
  EXPECT_EQ(bench.CodeOf(GetRequest{"ghost"}), Code::kNotFound);
}

// Of a shard that was replaced: it has never touched m2 itself, nor has its successor.
bool OlderEpochActs() {
  Bench bench({SlotOf("m1"), SlotOf("m2")});
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 3, 1}}), Code::kOk);
  const bool before = bench.CodeOf(CreateRequest{.machine_id = "m2", .fence = {"s", 2, 900}}) == Code::kOk;
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"t", 1, 1}}), Code::kOk) << "another shard";
  bench.Restart();
  return before || bench.CodeOf(CreateRequest{.machine_id = "m2", .fence = {"s", 2, 901}}) == Code::kOk;
}

TEST(ProviderFence, AnOlderEpochActsOnNoMachine) {
  faults::ResetProbes();
  EXPECT_FALSE(OlderEpochActs());
  EXPECT_GT(faults::ProbeHits()["provider.fenced_by_epoch"], 0u);
  const faults::ScopedMutant on("provider.no_epoch_floor");
  EXPECT_TRUE(OlderEpochActs());
}

// Marks that are stored after a shard named so many machines that do not exist.
size_t MarksAfter(int ghosts) {
  Bench bench({SlotOf("m1")});
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 1, 1}}), Code::kOk);
  for (int i = 0; i < ghosts; ++i) {
    const std::string id = "ghost-" + std::to_string(i);
    EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = id, .fence = {"s", 1, i + 2}}), Code::kNotFound);
  }
  const std::string last = "ghost-" + std::to_string(ghosts - 1);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = last, .fence = {"s", 1, 1}}), Code::kFailedPrecondition);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 1, 1}}), Code::kFailedPrecondition);
  bench.Restart();
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = last, .fence = {"s", 1, 1}}), Code::kFailedPrecondition);
  return static_cast<size_t>(
      std::ranges::count_if(bench.rows_, [](const auto& row) { return row.first.starts_with("mark/"); }));
}

TEST(ProviderFence, MarksOfNoMachineAreBounded) {
  faults::ResetProbes();
  EXPECT_EQ(MarksAfter(3'000), 1'001u) << "those of a thousand ids, and that of the machine";
  EXPECT_GT(faults::ProbeHits()["provider.ghost_forgotten"], 0u);
  const faults::ScopedMutant on("provider.ghosts_stay");
  EXPECT_EQ(MarksAfter(3'000), 3'001u);
}

TEST(ProviderFence, ShardsAreBounded) {
  Bench bench({SlotOf("m1")});
  for (int i = 0; i < 1'024; ++i) {
    bench.CodeOf(DrainRequest{.machine_id = "m1", .fence = {"shard-" + std::to_string(i), 1, 1}});
  }
  EXPECT_EQ(bench.CodeOf(DrainRequest{.machine_id = "m1", .fence = {"one-more", 1, 1}}), Code::kResourceExhausted);
  EXPECT_EQ(bench.CodeOf(DrainRequest{.machine_id = "m1", .fence = {"shard-7", 1, 2}}), Code::kAborted)
      << "it is known";
}

TEST(ProviderCore, FencesArePerShardAndMachineAndSurvive) {
  Bench bench({SlotOf("m1"), SlotOf("m2")});
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 3, 9}}), Code::kOk);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m2", .fence = {"s", 3, 1}}), Code::kOk);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"t", 1, 1}}), Code::kOk) << "another shard's mark";
  bench.Restart();
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 3, 9}}), Code::kFailedPrecondition);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 2, 100}}), Code::kFailedPrecondition);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1", .fence = {"s", 4, 0}}), Code::kOk)
      << "a new epoch starts over";
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1"}), Code::kOk) << "no token, no fence";
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m2", .fence = {"z", 0, 0}}), Code::kOk);
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m2", .fence = {"z", 0, 0}}), Code::kFailedPrecondition)
      << "(0, 0) of a named shard is an ordinary token";
}

TEST(ProviderCore, RepetitionsGetTheSameOperation) {
  Bench bench({SlotOf("m1"), SlotOf("m2", MachineState::kIdle)});
  const std::string create = bench.Accepted(CreateRequest{.machine_id = "m1"});
  EXPECT_EQ(bench.Accepted(CreateRequest{.machine_id = "m1"}), create);
  EXPECT_EQ(bench.open_.size(), 1u) << "done once";
  bench.End();
  EXPECT_EQ(bench.Accepted(CreateRequest{.machine_id = "m1"}), create) << "also after its end";
  const std::string configure = bench.Accepted(ConfigureRequest{.machine_id = "m1", .cluster_id = "c"});
  EXPECT_NE(configure, create);
  EXPECT_EQ(bench.Accepted(ConfigureRequest{.machine_id = "m1", .cluster_id = "c"}), configure);
  EXPECT_EQ(bench.CodeOf(ConfigureRequest{.machine_id = "m1", .cluster_id = "d"}), Code::kAborted) << "not his machine";
  bench.End();
  bench.Restart();
  EXPECT_EQ(bench.Accepted(ConfigureRequest{.machine_id = "m1", .cluster_id = "c"}), configure)
      << "also after a restart";
  EXPECT_EQ(bench.CodeOf(DrainRequest{.machine_id = "m2"}), Code::kAborted) << "Idle, but never drained";
}

TEST(ProviderCore, FailedStaysFailedUntilDeleted) {
  faults::ResetProbes();
  Bench bench({SlotOf("m1"), SlotOf("m2", MachineState::kIdle)});
  bench.Accepted(CreateRequest{.machine_id = "m1"});
  bench.End(Status(Code::kResourceExhausted, "no stock"));
  EXPECT_EQ(bench.Get("m1").state, MachineState::kFailed);
  EXPECT_EQ(bench.Get("m1").last_error, "Create failed: RESOURCE_EXHAUSTED: no stock");
  EXPECT_EQ(bench.CodeOf(CreateRequest{.machine_id = "m1"}), Code::kAborted);
  bench.Accepted(DeleteRequest{.machine_id = "m1"});
  bench.End();
  EXPECT_EQ(bench.Get("m1").state, MachineState::kSpeculative);
  EXPECT_EQ(bench.Get("m1").last_error, "");

  bench.Accepted(ConfigureRequest{.machine_id = "m2", .cluster_id = "c"});
  bench.Step(Observed{contract::MachineLost{.machine_id = "m2", .host_ref = "another", .reason = "gone"}});
  EXPECT_EQ(bench.Get("m2").state, MachineState::kConfiguring) << "an earlier host of the machine";
  EXPECT_EQ(faults::ProbeHits()["provider.observed_another_life"], 1u);
  bench.Step(Observed{contract::MachineLost{.machine_id = "m2", .host_ref = "owned-m2", .reason = "gone"}});
  EXPECT_EQ(bench.Get("m2").state, MachineState::kFailed);
  bench.End();
  EXPECT_EQ(bench.Get("m2").state, MachineState::kFailed) << "a late success changes nothing";
  EXPECT_EQ(bench.Get("m2").last_error, "gone");
  EXPECT_EQ(bench.CodeOf(DeleteRequest{.machine_id = "m2"}), Code::kOk) << "repair, though it cannot be given back";
}

TEST(ProviderCore, WhatIsOwnedCannotBeGivenBack) {
  Bench bench({SlotOf("m1", MachineState::kIdle)});
  EXPECT_EQ(bench.CodeOf(DeleteRequest{.machine_id = "m1"}), Code::kUnimplemented);
}

TEST(ProviderCore, ARestartAsksAgainUnderTheSameId) {
  Bench bench({SlotOf("m1")});
  bench.Configured("m1", "c");
  const std::string drain = bench.Accepted(DrainRequest{.machine_id = "m1", .grace_period_seconds = 60});
  bench.now_.wall += 45s;
  bench.Restart();
  ASSERT_EQ(bench.open_.size(), 1u);
  EXPECT_EQ(bench.open_[0].request.id, drain);
  EXPECT_EQ(bench.open_[0].request.grace, 15s) << "the grace does not begin again";
  EXPECT_EQ(bench.open_[0].timeout, 10min + 15s);
  bench.now_.wall -= 10h;
  bench.Restart();
  EXPECT_EQ(bench.open_[0].request.grace, 60s) << "a clock set back gives no more than was asked";
  bench.End();
  EXPECT_EQ(bench.Get("m1").state, MachineState::kIdle);
}

TEST(ProviderCore, ADeltaHoldsWhatChanged) {
  Bench bench({SlotOf("m1"), SlotOf("m2"), SlotOf("m3")});
  const contract::ListReply all = bench.List();
  EXPECT_EQ(Ids(all), (std::vector<std::string>{"m1", "m2", "m3"}));
  EXPECT_TRUE(bench.List({.since_revision = all.revision}).machines.empty());
  bench.Accepted(CreateRequest{.machine_id = "m2"});
  EXPECT_EQ(Ids(bench.List({.since_revision = all.revision})), std::vector<std::string>{"m2"});
  EXPECT_EQ(Ids(bench.List({.states = {MachineState::kIdle}, .since_revision = all.revision})),
            std::vector<std::string>{});
  bench.Restart();
  EXPECT_EQ(Ids(bench.List({.since_revision = all.revision})), std::vector<std::string>{"m2"}) << "cursors survive";
}

TEST(ProviderCore, ADamagedCursorGivesEverything) {
  faults::ResetProbes();
  Bench bench({SlotOf("m1"), SlotOf("m2")});
  const std::string good = bench.List().revision;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(bench.List({.since_revision = bad}).machines.size(), 2u) << "byte " << i;
    EXPECT_EQ(bench.List({.since_revision = good.substr(0, i)}).machines.size(), 2u) << "cut at " << i;
  }
  EXPECT_EQ(bench.List({.since_revision = ToRevision({.lineage = 8})}).machines.size(), 2u) << "of another state";
  EXPECT_EQ(bench.List({.since_revision = ToRevision({.lineage = 7, .open_after = 99})}).machines.size(), 2u);
  EXPECT_EQ(faults::ProbeHits()["provider.unknown_cursor"], 2 * good.size() + 1) << "but for the cut at 0";
  EXPECT_EQ(bench.List({.since_revision = good}).machines.size(), 0u);
}

TEST(ProviderCore, CappedCallsRotateAndTheirPagesSkipNothing) {
  std::vector<contract::Slot> slots;
  for (int i = 0; i < 10; ++i) slots.push_back(SlotOf("m" + std::to_string(i)));
  Bench bench(slots);
  std::vector<std::string> first;
  for (int i = 0; i < 10; ++i) {
    const auto page = bench.List({.states = {MachineState::kSpeculative}, .max_results = 1});
    ASSERT_EQ(page.machines.size(), 1u);
    first.push_back(page.machines[0]->id);
  }
  std::ranges::sort(first);
  EXPECT_EQ(std::ranges::unique(first).size(), 0u) << "ten callers, ten machines";
  // From anywhere in the rotation, pages to the end hold every machine, changes between them included.
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    std::map<std::string, model::Machine> seen;
    contract::ListReply page = bench.List({.max_results = 3});
    while (!page.machines.empty()) {
      EXPECT_LE(page.machines.size(), 3u);
      for (const auto& machine : page.machines) seen[machine->id] = *machine;
      if (rng.Chance(1, 3)) {
        const std::string id = "m" + std::to_string(rng.Below(10));
        bench.Ask(CreateRequest{.machine_id = id});
        bench.Ask(DeleteRequest{.machine_id = id});
        if (!bench.open_.empty() && rng.Chance(1, 2)) bench.End();
      }
      page = bench.List({.max_results = 3, .since_revision = page.revision});
    }
    for (const contract::MachineRecord& machine : bench.core_->Machines()) EXPECT_EQ(seen[machine->id], *machine);
  }
}

TEST(ProviderCore, PricesMoveAndNoticesStick) {
  Bench bench({SlotOf("m1"), SlotOf("m2")});
  bench.Configured("m1", "c");
  const std::string before = bench.List().revision;
  contract::MarketMoved moved{.instance_type = "large", .zone = "a", .capacity_type = model::CapacityType::kSpot};
  moved.price_per_hour = {500'000};
  moved.interruption_probability = {1000};
  bench.Step(Observed{moved});
  EXPECT_EQ(bench.List({.since_revision = before}).machines.size(), 2u);
  EXPECT_EQ(bench.Get("m1").price_per_hour.micros, 500'000);
  bench.Step(Observed{contract::InterruptionNoticed{.machine_id = "m1", .host_ref = "host"}});
  bench.Step(Observed{moved});
  EXPECT_EQ(bench.Get("m1").interruption_probability.millionths, 1'000'000);
  EXPECT_EQ(bench.Get("m2").interruption_probability.millionths, 1000);
  bench.Restart();
  EXPECT_EQ(bench.Get("m2").price_per_hour.micros, 500'000);
}

TEST(ProviderCore, AnotherCatalogueShowsAsChanges) {
  Bench bench({SlotOf("m1"), SlotOf("m2"), SlotOf("m3")});
  bench.Configured("m1", "c");
  const std::string before = bench.List().revision;
  auto m1 = SlotOf("m1");
  m1.machine.labels["rack"] = "7";
  bench.SetSlots({m1, SlotOf("m2"), SlotOf("m4")});
  bench.Restart();
  EXPECT_EQ(Ids(bench.List({.since_revision = before})), (std::vector<std::string>{"m1", "m2", "m4"}));
  EXPECT_EQ(bench.Get("m1").labels.at("rack"), "7");
  EXPECT_EQ(bench.Get("m1").state, MachineState::kConfigured);
  bench.SetSlots({SlotOf("m2")});
  bench.Restart();
  EXPECT_EQ(Ids(bench.List()), (std::vector<std::string>{"m1", "m2"})) << "hardware stays, promises go";
}

TEST(ProviderCore, NumbersOfAForgottenMachineAreNotGivenAgain) {
  faults::ResetProbes();
  Bench bench({SlotOf("m1"), SlotOf("m2")});
  bench.Configured("m1", "c");
  bench.SetSlots({SlotOf("m2")});
  bench.Restart();
  bench.Accepted(DrainRequest{.machine_id = "m1"});
  bench.End();
  const std::string last = bench.Accepted(DeleteRequest{.machine_id = "m1"});
  bench.End();
  const std::string before = bench.List().revision;
  bench.Restart();
  EXPECT_EQ(Ids(bench.List()), std::vector<std::string>{"m2"}) << "m1 is gone, and with it the newest change";
  EXPECT_EQ(faults::ProbeHits()["provider.slot_vanished"], 1u);
  EXPECT_NE(bench.Accepted(CreateRequest{.machine_id = "m2"}), last);
  bench.End();
  EXPECT_EQ(Ids(bench.List({.since_revision = before})), std::vector<std::string>{"m2"}) << "no change is skipped";
}

TEST(ProviderCore, SaysWhatItCannotRead) {
  const auto core = Core::Recover({}, {SlotOf("m1"), SlotOf("m1")}, {});
  ASSERT_FALSE(core.has_value());
  EXPECT_EQ(core.error().message(), "two machines have the id m1");
  const auto lost = Core::Recover({}, {}, {{"machine/m1", "?"}});
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code(), Code::kDataLoss);
  const auto newer = Core::Recover({}, {}, {{"format", codec::ToBytes(uint64_t{99})}});
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code(), Code::kFailedPrecondition);
}

TEST(ProviderCore, SaveIsTheWholeState) {
  Bench bench({SlotOf("m1"), SlotOf("m2")});
  bench.Configured("m1", "c");
  bench.Accepted(DrainRequest{.machine_id = "m1"});
  bench.List({.max_results = 1});
  const auto copy = Core::Load(bench.core_->Save());
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(copy->Save(), bench.core_->Save());
  copy->CheckInvariants();
  EXPECT_EQ(copy->View()->newest_change, bench.core_->View()->newest_change);
  std::string later = bench.core_->Save();
  ++later.front();
  EXPECT_FALSE(Core::Load(later).has_value()) << "another layout";
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// The rows of a provider of format 1: m1 Draining, m2 Failed, m3 Speculative, a fence, a price that moved.
TEST(ProviderCore, AnOlderStateOpens) {
  std::ifstream file(SourceDir() + "/tests/provider/data/state-format-1.rows");
  contract::Recovered rows;
  for (std::string key, value; file >> key >> value;) rows[FromHex(key)] = FromHex(value);
  ASSERT_EQ(rows.size(), 7u);
  auto core = Core::Recover({.name = "test"}, {SlotOf("m1"), SlotOf("m2"), SlotOf("m3")}, rows);
  ASSERT_TRUE(core.has_value()) << core.error().ToString();
  core->CheckInvariants();
  const auto machines = core->Machines();
  EXPECT_EQ(machines[0]->state, MachineState::kDraining);
  EXPECT_EQ(machines[0]->cluster, "c");
  EXPECT_EQ(machines[0]->shard_metadata, (std::map<std::string, std::string>{{"k", std::string("\0\xff", 2)}}));
  EXPECT_EQ(machines[1]->state, MachineState::kFailed);
  EXPECT_EQ(machines[1]->last_error, "Create failed: RESOURCE_EXHAUSTED: no stock");
  EXPECT_EQ(machines[2]->price_per_hour.micros, 500'000);
  std::vector<Core::Effect> effects;
  core->Step(contract::Wake{}, {}, effects);
  ASSERT_EQ(effects.size(), 1u) << "nothing to store, one operation to go on with";
  EXPECT_EQ(std::get<Core::Call>(effects[0]).request.id, "op-0000000000000007-11");
  core->Step(Asked{.request = 1, .body = CreateRequest{.machine_id = "m1", .fence = {"s", 3, 9}}}, {}, effects);
  EXPECT_EQ(std::get<Answer>(effects.back()).status.code(), Code::kFailedPrecondition) << "the fence holds";
}

}  // namespace
}  // namespace muster::provider
