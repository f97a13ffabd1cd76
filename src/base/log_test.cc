#include "base/log.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::log {
namespace {

struct Line {
  Level level;
  std::string text;
  bool operator==(const Line&) const = default;
};

// Takes the log over for a test.
class LogTest : public testing::Test {
 protected:
  void Capture(Level lowest) {
    SetSink(
        [this](Level level, std::string_view message, std::span<const KeyValue> fields) {
          std::string text(message);
          for (const KeyValue& field : fields) {
            text.append(" ").append(field.key).append("=").append(field.value.ToString());
          }
          lines_.push_back({level, text});
        },
        lowest);
  }
  void TearDown() override { SetSink({}); }

  std::vector<Line> lines_;
};

TEST_F(LogTest, PassesMessageAndFields) {
  Capture(Level::kDebug);
  const std::string id = "c-1";
  Debug("plain");
  Info("session replaced", {{"cluster", id}, {"epoch", uint64_t{7}}, {"delta", -3}, {"ratio", 0.5}, {"first", true}});
  Warn("view", {{"name", std::string_view("v")}, {"text", "literal"}});
  Err("small", {{"byte", uint8_t{255}}, {"short", int16_t{-1}}});
  EXPECT_EQ(lines_,
            (std::vector<Line>{{Level::kDebug, "plain"},
                               {Level::kInfo, "session replaced cluster=c-1 epoch=7 delta=-3 ratio=0.5 first=true"},
                               {Level::kWarn, "view name=v text=literal"},
                               {Level::kError, "small byte=255 short=-1"}}));
}

TEST_F(LogTest, DropsWhatIsBelowTheLowestLevel) {
  Capture(Level::kWarn);
  Debug("d");
  Info("i");
  Warn("w");
  Err("e");
  EXPECT_EQ(lines_, (std::vector<Line>{{Level::kWarn, "w"}, {Level::kError, "e"}}));
}

TEST_F(LogTest, ASinkMayLogAndReplaceItself) {
  SetSink([this](Level, std::string_view message, std::span<const KeyValue>) {
    Capture(Level::kInfo);
    lines_.push_back({Level::kInfo, std::string(message)});
    Info("second");
  });
  Info("first");
  EXPECT_EQ(lines_, (std::vector<Line>{{Level::kInfo, "first"}, {Level::kInfo, "second"}}));
}

TEST_F(LogTest, WithoutASinkWarningsGoToStandardError) {
  SetSink({});
  testing::internal::CaptureStderr();
  Info("quiet");
  Warn("disk nearly full", {{"free", 5}});
  Err("lost");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warn: disk nearly full free=5\nerror: lost\n");
}

TEST(Log, LevelNames) {
  EXPECT_EQ(LevelName(Level::kDebug), "debug");
  EXPECT_EQ(LevelName(Level::kInfo), "info");
  EXPECT_EQ(LevelName(Level::kWarn), "warn");
  EXPECT_EQ(LevelName(Level::kError), "error");
}

}  // namespace
}  // namespace muster::log
