#include "core/counter/counter.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/codec.h"
#include "base/probe.h"

namespace muster::counter {
namespace {

using Effects = std::vector<Core::Effect>;
constexpr Now kNow = {.mono = MonoTime(1h), .wall = WallTime(1h)};

Core MakeCore(Config config = {}, const contract::Recovered& rows = {}) {
  return *Core::Recover(std::move(config), rows);
}

Effects Step(Core& core, const Core::Event& event, Now now = kNow) {
  Effects effects;
  core.Step(event, now, effects);
  core.CheckInvariants();
  return effects;
}

void ApplyWrites(const Effects& effects, contract::Recovered& rows) {
  for (const auto& effect : effects) {
    const auto* persist = std::get_if<contract::Persist>(&effect);
    if (persist == nullptr) continue;
    for (const auto& write : persist->writes) rows[write.key] = *write.value;
  }
}

TEST(Counter, PersistsBeforeItAnswers) {
  Core core = MakeCore();
  const Effects effects = Step(core, Add{.request = 7, .client = "a", .sequence = 1, .amount = 5});
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<contract::Persist>(effects[0]));
  const auto& answer = std::get<Answer>(effects[1]);
  EXPECT_EQ(answer.request, 7u);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.value, 5);
}

TEST(Counter, CountsARepeatedRequestOnce) {
  Core core = MakeCore();
  Step(core, Add{.client = "a", .sequence = 1, .amount = 5});
  Step(core, Add{.client = "b", .sequence = 1, .amount = 2});
  const Effects effects = Step(core, Add{.request = 3, .client = "a", .sequence = 1, .amount = 5});
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_EQ(std::get<Answer>(effects[0]).value, 5) << "the answer of the first time";
  EXPECT_EQ(core.View()->value, 7);
}

TEST(Counter, RefusesASequenceWithAGap) {
  Core core = MakeCore();
  const Effects effects = Step(core, Add{.client = "a", .sequence = 2, .amount = 5});
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_EQ(std::get<Answer>(effects[0]).status.ToString(),
            "FAILED_PRECONDITION: client a sent sequence 2, expected 1");
  EXPECT_EQ(core.View()->value, 0);
}

TEST(Counter, RefusesASumThatDoesNotFit) {
  Core core = MakeCore();
  Step(core, Add{.client = "a", .sequence = 1, .amount = std::numeric_limits<int64_t>::max()});
  const Effects effects = Step(core, Add{.client = "a", .sequence = 2, .amount = 1});
  EXPECT_EQ(std::get<Answer>(effects.at(0)).status.code(), Code::kOutOfRange);
  EXPECT_EQ(core.View()->value, std::numeric_limits<int64_t>::max());
}

TEST(Counter, MirrorsOneCallAtATimeAndRetriesAfterAPause) {
  Core core = MakeCore({.peer = "p", .call_timeout = 1s, .retry_after = 500ms});
  EXPECT_TRUE(Step(core, contract::Wake{}).empty()) << "nothing to mirror";
  const Effects first = Step(core, Add{.client = "a", .sequence = 1, .amount = 5});
  ASSERT_EQ(first.size(), 3u);
  const auto& call = std::get<Core::Call>(first[2]);
  EXPECT_EQ(call.to, "p");
  EXPECT_EQ(call.timeout, 1s);
  EXPECT_EQ(Step(core, Add{.client = "a", .sequence = 2, .amount = 5}).size(), 2u) << "a call is open";

  EXPECT_TRUE(Step(core, Core::CallDone{.id = call.id, .status = Status(Code::kUnavailable, "")}).empty());
  EXPECT_EQ(core.NextWake(), kNow.mono + 500ms);
  Effects retry = Step(core, contract::Wake{}, {.mono = kNow.mono + 500ms});
  const auto& second = std::get<Core::Call>(retry.at(0));
  EXPECT_EQ(second.request.value, 10);
  EXPECT_EQ(second.request.version, 2u);
  EXPECT_TRUE(Step(core, Core::CallDone{.id = second.id, .reply = MirrorReply{.version = 2}}).empty());
  EXPECT_EQ(core.View()->mirrored_version, 2u);
  EXPECT_EQ(core.NextWake(), std::nullopt);
}

TEST(Counter, HoldsTheNewestMirrorOnly) {
  Core core = MakeCore();
  Effects effects = Step(core, Mirror{.request = 1, .mirror = {.value = 9, .version = 3}});
  ASSERT_EQ(effects.size(), 2u);
  effects = Step(core, Mirror{.request = 2, .mirror = {.value = 4, .version = 2}});
  ASSERT_EQ(effects.size(), 1u) << "an older one changes nothing";
  EXPECT_EQ(std::get<Answer>(effects[0]).version, 3u);
  EXPECT_EQ(core.View()->held_for_peer.value, 9);
}

TEST(Counter, RecoversWhatItPersisted) {
  contract::Recovered rows;
  Core core = MakeCore();
  ApplyWrites(Step(core, Add{.client = "a", .sequence = 1, .amount = 5}), rows);
  ApplyWrites(Step(core, Mirror{.mirror = {.value = 9, .version = 3}}), rows);
  Core again = MakeCore({}, rows);
  EXPECT_EQ(again.View()->value, 5);
  EXPECT_EQ(again.View()->held_for_peer.version, 3u);
  EXPECT_EQ(std::get<Answer>(Step(again, Add{.client = "a", .sequence = 1, .amount = 5}).at(0)).value, 5);

  rows["value"] = "\xff";
  EXPECT_EQ(Core::Recover({}, rows).error().code(), Code::kDataLoss);
  EXPECT_EQ(Core::Recover({}, {{"other", ""}}).error().message(),
            "row other of the counter's state cannot be read; restore it from a backup");
  rows["format"] = codec::ToBytes(kFormat + 1);
  EXPECT_EQ(Core::Recover({}, rows).error().code(), Code::kFailedPrecondition) << "of a newer build";
}

TEST(Counter, ALoadedCoreGoesOnAsTheSavedOne) {
  Core core = MakeCore({.peer = "p"});
  Step(core, contract::Wake{});
  Step(core, Add{.client = "a", .sequence = 1, .amount = 5});
  auto loaded = Core::Load(core.Save());
  ASSERT_TRUE(loaded.has_value());
  const Add next{.client = "a", .sequence = 2, .amount = 1};
  EXPECT_EQ(codec::Digest(Step(core, next)), codec::Digest(Step(*loaded, next)));
  EXPECT_EQ(core.Save(), loaded->Save());
  EXPECT_FALSE(Core::Load("junk").has_value());
  std::string later = core.Save();
  ++later.front();
  EXPECT_FALSE(Core::Load(later).has_value()) << "another layout";
}

}  // namespace
}  // namespace muster::counter
