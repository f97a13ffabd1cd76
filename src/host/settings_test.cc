#include "host/settings.h"

#include <gtest/gtest.h>

namespace muster::host {
namespace {

enum class Colour : uint8_t { kRed, kBlue };

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    settings_.Add("--wait", wait_, "1s", PositiveDuration(), "How long to wait")
        .Add("--count", count_, "3", WholeNumber<int32_t>(1, 10), "How many")
        .Path("--file", file_, "Where")
        .Switch("--guard", guard_, "Hold what is strange")
        .Switch("--loud", loud_, "Say more")
        .List("--name", names_, Name("abc", "of a, b and c"), "Which")
        .Choice("--colour", colour_, {{"red", Colour::kRed}, {"blue", Colour::kBlue}}, "red", "What it looks like")
        .Late("--pair", "x", "two letters", "Read by a check");
  }
  std::string Refusal(std::string_view flag, std::string value) {
    EXPECT_EQ(settings_.Give(flag, std::move(value)), Status());
    const Status status = settings_.Land();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  }

  Settings settings_;
  Duration wait_{};
  int32_t count_ = 0;
  std::filesystem::path file_ = "unset";
  bool guard_ = true;
  bool loud_ = false;
  std::vector<std::string> names_ = {"unset"};
  Colour colour_ = Colour::kBlue;
};

TEST_F(SettingsTest, DefaultsLand) {
  ASSERT_EQ(settings_.Land(), Status());
  EXPECT_EQ(wait_, 1s);
  EXPECT_EQ(count_, 3);
  EXPECT_EQ(file_, "");
  EXPECT_TRUE(guard_);
  EXPECT_FALSE(loud_);
  EXPECT_TRUE(names_.empty());
  EXPECT_EQ(colour_, Colour::kRed);
}

TEST_F(SettingsTest, GivenValuesLand) {
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{{"--wait", "90s"},
                                                                                    {"--count", "10"},
                                                                                    {"--file", "f"},
                                                                                    {"--guard", "off"},
                                                                                    {"--loud", "on"},
                                                                                    {"--name", "a,b"},
                                                                                    {"--name", "c"},
                                                                                    {"--colour", "blue"}}) {
    ASSERT_EQ(settings_.Give(flag, value), Status());
  }
  ASSERT_EQ(settings_.Land(), Status());
  EXPECT_EQ(wait_, 90s);
  EXPECT_EQ(count_, 10);
  EXPECT_EQ(file_, "f");
  EXPECT_FALSE(guard_);
  EXPECT_TRUE(loud_);
  EXPECT_EQ(names_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(colour_, Colour::kBlue);
  EXPECT_EQ(settings_.Give("--other", "").code(), Code::kInvalidArgument);
}

TEST_F(SettingsTest, ARefusalNamesTheFlagTheRuleAndTheText) {
  EXPECT_EQ(Refusal("--wait", "0s"), "--wait must be a duration greater than zero, such as 90s, not \"0s\"");
  EXPECT_EQ(Refusal("--wait", "5"), "--wait: duration \"5\": the unit is missing; did you mean 5s?");
}
TEST_F(SettingsTest, ANumberOutOfRange) {
  for (const char* text : {"0", "11", "-1", "1.5", "", "ten", "99999999999"}) {
    EXPECT_EQ(Refusal("--count", text),
              "--count must be a whole number from 1 to 10, not \"" + std::string(text) + "\"");
  }
}
TEST_F(SettingsTest, AnItemOfAList) {
  EXPECT_EQ(Refusal("--name", "a,x"), "--name must be 1 to 64 of a, b and c, not \"x\"");
}
TEST_F(SettingsTest, AnUnknownChoice) {
  EXPECT_EQ(Refusal("--colour", "green"), "--colour must be one of red, blue, not \"green\"");
}

TEST_F(SettingsTest, WhatIsRequiredMustBeGiven) {
  settings_.Require("--file", "name a file");
  EXPECT_EQ(settings_.Land(), Status(Code::kInvalidArgument, "--file is missing; name a file"));
  EXPECT_EQ(settings_.Give("--file", "f"), Status());
  EXPECT_EQ(settings_.Land(), Status());
}

TEST_F(SettingsTest, ChecksSeeEveryValue) {
  settings_.Check([this] {
    return settings_.text("--pair") == "xy" && count_ == 4 ? Status() : Status(Code::kInvalidArgument, "--pair: both");
  });
  EXPECT_EQ(settings_.Land().message(), "--pair: both");
  EXPECT_EQ(settings_.Give("--pair", "xy"), Status());
  EXPECT_EQ(settings_.Give("--count", "4"), Status());
  EXPECT_EQ(settings_.Land(), Status());
}

TEST_F(SettingsTest, TheTableHasARowForEach) {
  settings_.Require("--file", "name a file");
  EXPECT_EQ(settings_.DocsTable(),
            "| flag | default | value | |\n"
            "|---|---|---|---|\n"
            "| `--wait` | `1s` | a duration greater than zero, such as 90s | How long to wait |\n"
            "| `--count` | `3` | a whole number from 1 to 10 | How many |\n"
            "| `--file` | required | a path | Where |\n"
            "| `--guard`, `--no-guard` | `on` |  | Hold what is strange |\n"
            "| `--loud` | `off` |  | Say more |\n"
            "| `--name` |  | 1 to 64 of a, b and c | Which |\n"
            "| `--colour` | `red` | one of red, blue | What it looks like |\n"
            "| `--pair` | `x` | two letters | Read by a check |\n");
}

TEST(Parser, Fractions) {
  EXPECT_EQ(Fraction().read("0.05"), model::Probability{50'000});
  EXPECT_EQ(Fraction().read("1"), model::Probability{1'000'000});
  for (const char* text : {"1.1", "-0.1", "nan", "", "5%"}) EXPECT_FALSE(Fraction().read(text)) << text;
}

TEST(Parser, Sizes) {
  EXPECT_EQ(ByteSize(4096).rule, "a size of 4KiB or more, such as 64MiB");
  EXPECT_EQ(ByteSize(4096).read("64MiB"), 64u << 20);
  EXPECT_EQ(ByteSize(4096).read("4Ki"), 4096u);
  for (const char* text : {"4095", "-1", "many", ""}) EXPECT_FALSE(ByteSize(4096).read(text)) << text;
}

TEST(Parser, WholeNumbersWithoutAnEnd) {
  EXPECT_EQ(WholeNumber<uint64_t>(0).rule, "a whole number of 0 or more");
  EXPECT_EQ(WholeNumber<uint64_t>(0).read("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(WholeNumber<uint64_t>(0).read("18446744073709551616"));
  EXPECT_FALSE(WholeNumber<uint64_t>(0).read("-7"));
}

TEST_F(SettingsTest, OtherProgramsVariablesAreBelowWhatIsGiven) {
  settings_.Environment("--wait", "WAIT", [](std::string value) { return value + "s"; })
      .Environment("--count", "COUNT");
  settings_.ReadEnvironment([](const char* name) {
    const std::string_view variable(name);
    return variable == "WAIT" ? "7" : variable == "COUNT" ? "4" : nullptr;
  });
  ASSERT_EQ(settings_.Give("--count", "5"), Status());
  ASSERT_EQ(settings_.Land(), Status());
  EXPECT_EQ(wait_, 7s);
  EXPECT_EQ(count_, 5);
}

}  // namespace
}  // namespace muster::host
