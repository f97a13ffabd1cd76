#include "host/loop.h"

#include <gtest/gtest.h>

#include <string>

#include "base/codec.h"

namespace muster::host {
namespace {

// A core that does what it is told: an event lists the effects it wants.
struct Text {
  std::string text;
  MUSTER_FIELDS(Text, text)
};
using contract::Persist;

class Puppet {
 public:
  static constexpr std::string_view kName = "puppet";
  using Call = contract::Call<Text>;
  using CallDone = contract::CallDone<Text>;
  using Effect = std::variant<Persist, Call, Text>;
  struct Script {
    std::vector<Effect> effects;
    std::optional<MonoTime> wake;
    MUSTER_FIELDS(Script, effects, wake)
  };
  using Event = std::variant<contract::Wake, Script, CallDone>;
  struct Snapshot {};

  void Step(const Event& event, Now, std::vector<Effect>& out) {
    if (const auto* script = std::get_if<Script>(&event)) {
      out = script->effects;
      wake_ = script->wake;
    } else if (const auto* done = std::get_if<CallDone>(&event)) {
      out.push_back(Text{"done " + std::to_string(done->id) + " " + CodeName(done->status.code())});
    } else {
      out.push_back(Text{"wake"});
      wake_.reset();
    }
  }
  std::optional<MonoTime> NextWake() const { return wake_; }
  std::shared_ptr<const Snapshot> View() const { return nullptr; }
  void CheckInvariants() const {}
  std::string Save() const { return ""; }
  static std::optional<Puppet> Load(std::string_view) { return Puppet(); }

 private:
  std::optional<MonoTime> wake_;
};

class LoopTest : public ::testing::Test, public Loop<Puppet>::Port {
 protected:
  void StartPersist(Persist batch) override {
    std::string keys = "persist";
    for (const auto& write : batch.writes) keys += " " + write.key;
    seen.push_back(keys);
  }
  void StartCall(const Puppet::Call& call) override { seen.push_back("call " + std::to_string(call.id)); }
  void Emit(const Puppet::Effect& effect) override { seen.push_back(std::get<Text>(effect).text); }
  bool IsRead(const Puppet::Effect& effect) const override {
    const auto* text = std::get_if<Text>(&effect);
    return text != nullptr && text->text.starts_with("read ");
  }
  void BeforeStep(Now, const Puppet::Event&) override { ++begun; }
  void AfterStep(std::span<const Puppet::Effect>) override { EXPECT_EQ(++steps, begun); }

  static Puppet::Effect Store(std::string key) { return Persist{{{.key = std::move(key), .value = "v"}}}; }
  static Puppet::Effect Say(std::string text) { return Text{std::move(text)}; }
  static Puppet::Effect Ask(contract::CallId id, Duration timeout = 1s) {
    return Puppet::Call{.id = id, .to = "x", .timeout = timeout};
  }
  void Do(std::vector<Puppet::Effect> effects, std::optional<MonoTime> wake = {}) {
    loop.Post(Puppet::Script{.effects = std::move(effects), .wake = wake});
    loop.Run(now);
  }
  std::vector<std::string> TakeSeen() { return std::exchange(seen, {}); }

  using Lines = std::vector<std::string>;
  Loop<Puppet> loop{Puppet(), *this};
  Now now{.mono = MonoTime(1h)};
  Lines seen;
  int begun = 0;
  int steps = 0;
};

TEST_F(LoopTest, EffectsBehindAPersistWaitForIt) {
  Do({Say("before"), Store("k"), Say("after")});
  EXPECT_EQ(TakeSeen(), (Lines{"before", "persist k"}));
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), Lines{});
  EXPECT_FALSE(loop.Settled());
  loop.PersistDone();
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), Lines{"after"});
  EXPECT_TRUE(loop.Settled());
}

TEST_F(LoopTest, LaterStepsWaitTooAndTheirBatchesAreJoined) {
  Do({Store("1"), Say("a")});
  Do({Say("b"), Store("2"), Say("c"), Store("3")});
  Do({Say("d")});
  EXPECT_EQ(TakeSeen(), Lines{"persist 1"}) << "one batch at a time";
  loop.PersistDone();
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), (Lines{"a", "b", "persist 2 3"})) << "all that waited go together";
  loop.PersistDone();
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), (Lines{"c", "d"}));
}

TEST_F(LoopTest, ReadsPassABatchThatCannotBeStoredAndNothingElseDoes) {
  Do({Store("1"), Say("read a"), Say("b")});
  Do({Store("2"), Say("read c"), Ask(1)});
  EXPECT_EQ(TakeSeen(), Lines{"persist 1"});
  loop.ReleaseReads(now);
  EXPECT_EQ(TakeSeen(), (Lines{"read a", "read c"}));
  loop.ReleaseReads(now);
  EXPECT_EQ(TakeSeen(), Lines{}) << "once";
  loop.PersistDone();
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), (Lines{"b", "persist 2"}));
  loop.PersistDone();
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), Lines{"call 1"});
  EXPECT_TRUE(loop.Settled());
}

TEST_F(LoopTest, ACallEndsOnceByItsReply) {
  Do({Ask(1)});
  EXPECT_EQ(TakeSeen(), Lines{"call 1"});
  loop.Complete({.id = 1, .reply = Text{"r"}});
  loop.Complete({.id = 1, .reply = Text{"again"}});
  loop.Complete({.id = 2, .reply = Text{"never asked"}});
  now.mono += 2s;
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), Lines{"done 1 OK"});
  EXPECT_EQ(loop.NextRun(), std::nullopt);
}

TEST_F(LoopTest, ACallEndsOnceByItsDeadline) {
  Do({Ask(1), Ask(2, 5s)});
  EXPECT_EQ(loop.NextRun(), now.mono + 1s);
  now.mono += 1s;
  loop.Run(now);
  loop.Complete({.id = 1, .reply = Text{"late"}});
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), (Lines{"call 1", "call 2", "done 1 DEADLINE_EXCEEDED"}));
  EXPECT_EQ(loop.NextRun(), now.mono + 4s);
}

TEST_F(LoopTest, TheTimeoutRunsFromWhenTheCallIsMade) {
  Do({Store("k"), Ask(1)});
  now.mono += 10s;
  loop.PersistDone();
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), (Lines{"persist k", "call 1"}));
  EXPECT_EQ(loop.NextRun(), now.mono + 1s);
}

TEST_F(LoopTest, WakesWhenDueAndNotBefore) {
  Do({}, now.mono + 3s);
  EXPECT_EQ(loop.NextRun(), now.mono + 3s);
  now.mono += 2s;
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), Lines{});
  now.mono += 1s;
  loop.Run(now);
  EXPECT_EQ(TakeSeen(), Lines{"wake"});
  EXPECT_EQ(steps, 2);
}

class SynchronousPort : public LoopTest {
 protected:
  void StartPersist(Persist batch) override {
    LoopTest::StartPersist(std::move(batch));
    loop.PersistDone();
  }
  void StartCall(const Puppet::Call& call) override {
    LoopTest::StartCall(call);
    loop.Complete({.id = call.id, .status = Status(Code::kUnavailable, "")});
  }
};

TEST_F(SynchronousPort, MayAnswerBeforeItReturns) {
  Do({Store("k"), Ask(1), Say("after")});
  EXPECT_EQ(TakeSeen(), (Lines{"persist k", "call 1", "after", "done 1 UNAVAILABLE"}));
}

TEST_F(LoopTest, ReusingAnOpenCallIdIsABug) {
  Do({Ask(1)});
  EXPECT_DEATH(Do({Ask(1)}), "already open");
}

}  // namespace
}  // namespace muster::host
