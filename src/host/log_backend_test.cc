#include "host/log_backend.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "host/log_limit.h"

namespace muster::host {
namespace {

using log::KeyValue;
using log::Level;

constexpr WallTime kNoon{std::chrono::seconds(1'740'830'400) + std::chrono::nanoseconds(7'001'999)};

TEST(LogBackend, JsonForm) {
  const KeyValue fields[] = {{"cluster", "c\n1"}, {"epoch", 7}};
  EXPECT_EQ(
      FormatJson(kNoon, Level::kWarn, "session replaced", fields),
      R"({"ts":"2025-03-01T12:00:00.007001Z","level":"warn","msg":"session replaced","cluster":"c\n1","epoch":7})");
}

TEST(LogBackend, JsonKeysNeverOccurTwice) {
  const KeyValue fields[] = {{"ts", 1}, {"level", 2}, {"msg", 3}};
  EXPECT_EQ(FormatJson(WallTime(), Level::kInfo, "m", fields),
            R"({"ts":"1970-01-01T00:00:00.000000Z","level":"info","msg":"m","ts_":1,"level_":2,"msg_":3})");
}

TEST(LogBackend, TextFormQuotesWhatWouldBeReadWrongly) {
  const KeyValue fields[] = {{"id", "m-7"}, {"why", "no \"room\""}, {"empty", ""}, {"up", true}, {"n", 1.5}};
  EXPECT_EQ(FormatText("placed", fields), R"(placed id=m-7 why="no \"room\"" empty="" up=true n=1.5)");
}

TEST(LogBackend, LevelNames) {
  EXPECT_EQ(ParseLogLevel("debug"), Level::kDebug);
  EXPECT_EQ(ParseLogLevel("info"), Level::kInfo);
  EXPECT_EQ(ParseLogLevel("warn"), Level::kWarn);
  EXPECT_EQ(ParseLogLevel("error"), Level::kError);
  EXPECT_EQ(ParseLogLevel("loud").error().message(), "log level \"loud\" is unknown: use debug, info, warn or error");
}

class InstalledBackend : public testing::Test {
 protected:
  ~InstalledBackend() override { log::SetSink({}); }
};

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(InstalledBackend, OffATerminalWritesJsonFromTheLevelUpwards) {
  testing::internal::CaptureStderr();
  InstallLogBackend(Level::kWarn);
  log::Info("hidden");
  log::Warn("shown", {{"percent", "100%v {}"}});
  log::Err("too");
  const std::vector<std::string> lines = Lines(testing::internal::GetCapturedStderr());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with(R"({"ts":"2)")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(R"(Z","level":"warn","msg":"shown","percent":"100%v {}"})")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with(R"("level":"error","msg":"too"})")) << lines[1];
}

TEST_F(InstalledBackend, TextFormHasNoColourOffATerminal) {
  testing::internal::CaptureStderr();
  InstallLogBackend(Level::kDebug, LogForm::kText);
  log::Debug("seen", {{"k", 1}});
  log::Err("bad");
  const std::vector<std::string> lines = Lines(testing::internal::GetCapturedStderr());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with(" debug seen k=1")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with(" error bad")) << lines[1];
}

// What a program that logs one line leaves on its terminal.
std::string OnATerminal() {
  int ours = -1;
  int terminal = -1;
  EXPECT_EQ(openpty(&ours, &terminal, nullptr, nullptr, nullptr), 0);
  const int standard_error = dup(STDERR_FILENO);
  EXPECT_GE(dup2(terminal, STDERR_FILENO), 0);
  InstallLogBackend(Level::kInfo);
  log::Err("bad");
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  close(terminal);
  std::string text(1000, ' ');
  const ssize_t length = read(ours, text.data(), text.size());
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  close(ours);
  return text;
}

TEST_F(InstalledBackend, ATerminalGetsColoursUnlessNoColorIsSet) {
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "", 1);  // as if it were not set
  EXPECT_TRUE(ColourWanted());
  EXPECT_TRUE(OnATerminal().contains("\x1b[")) << OnATerminal();
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(ColourWanted());
  const std::string plain = OnATerminal();
  EXPECT_TRUE(plain.contains(" error bad")) << plain;
  EXPECT_FALSE(plain.contains('\x1b')) << plain;
  unsetenv("NO_COLOR");
  EXPECT_TRUE(ColourWanted());
}

TEST_F(InstalledBackend, LinesOfManyThreadsDoNotMix) {
  testing::internal::CaptureStderr();
  InstallLogBackend(Level::kInfo);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 100; ++i) log::Info("line", {{"thread", t}, {"pad", std::string(200, 'x')}});
      });
    }
  }
  const std::vector<std::string> lines = Lines(testing::internal::GetCapturedStderr());
  EXPECT_EQ(lines.size(), 400u);
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with("{\"ts\":") && line.ends_with("xx\"}")) << line;
  }
}

TEST(LogBackend, WhatOthersSayIsCutAndSteersNoTerminal) {
  const KeyValue fields[] = {{"why", std::string(5'000, 'x')}, {"name", "a\x1b[2J\xc2\x9b\xe2\x80\xae"}};
  const std::string json = FormatJson(WallTime(), Level::kInfo, "m", fields);
  const std::string text = FormatText("m", fields);
  for (const std::string& line : {json, text}) {
    EXPECT_LT(line.size(), 400u);
    EXPECT_TRUE(line.contains("... (5000 bytes)")) << line;
    EXPECT_TRUE(line.contains(R"(a\u001b[2J\u009b\u202e)")) << line;
  }
}

TEST(LogLimit, AMessageIsWrittenSoOftenAndTheRestCounted) {
  LogLimit limit;
  MonoTime now(1h);
  int written = 0;
  for (int i = 0; i < 5'000; ++i) written += limit.Take("refused", {}, now) ? 1 : 0;
  EXPECT_EQ(written, 1'000);
  EXPECT_EQ(limit.Take("other", {}, now), 0u) << "each message has its own";
  EXPECT_EQ(limit.Take("order", {}, now), 0u);
  for (int i = 0; i < 5'000; ++i) EXPECT_EQ(limit.Take("order", {}, now), 0u) << "orders are never left out";
  now += 1s;
  EXPECT_EQ(limit.Take("refused", {}, now), 4'000u);
  EXPECT_EQ(limit.Take("refused", {}, now), 0u);
}

TEST(LogLimit, AFloodOfOneKindHidesNoOther) {
  LogLimit limit;
  const MonoTime now(1h);
  const auto take = [&](std::string_view key, const std::string& kind) {
    const KeyValue fields[] = {{key, kind}, {"who", "somebody"}};
    return limit.Take("call refused", fields, now).has_value();
  };
  for (int i = 0; i < 5'000; ++i) take("reason", "too_many");
  EXPECT_FALSE(take("reason", "too_many"));
  EXPECT_TRUE(take("reason", "denied"));
  // What is no kind, or one of too many, shares a limit.
  for (int i = 0; i < 5'000; ++i) take("who", std::to_string(i));
  EXPECT_FALSE(take("who", "another"));
  for (size_t i = 0; i < LogLimit::kMostKinds; ++i) take("reason", std::to_string(i));
  EXPECT_FALSE(take("reason", "one more"));
  EXPECT_TRUE(take("reason", "denied"));
}

}  // namespace
}  // namespace muster::host
