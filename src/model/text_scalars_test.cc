#include "model/text_scalars.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace muster::model {
namespace {

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"price", "priority", "instanceType", "id", "zone"};
  EXPECT_EQ(NearestName("prise", names), "price");
  EXPECT_EQ(NearestName("pirce", names), "price");  // a swap is one mistake
  EXPECT_EQ(NearestName("instance_type", names), "instanceType");
  EXPECT_EQ(NearestName("zones", names), "zone");
  EXPECT_EQ(NearestName("cost", names), "");
  EXPECT_EQ(NearestName("ip", names), "");  // of two letters none may be wrong
  EXPECT_EQ(NearestName("inst", names), "instanceType");
  EXPECT_EQ(NearestName("zo", names), "zone");
  EXPECT_EQ(NearestName("z", names), "") << "one letter is no beginning";
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'p'), names), "");
}

TEST(ParseDuration, ReadsUnits) {
  EXPECT_EQ(ParseDuration("90s"), Duration(90s));
  EXPECT_EQ(ParseDuration("1h30m"), Duration(90min));
  EXPECT_EQ(ParseDuration("2d"), Duration(48h));
  EXPECT_EQ(ParseDuration("1m250ms"), Duration(60'250ms));
  EXPECT_EQ(ParseDuration("1s2us3ns"), Duration(1'000'002'003ns));
  EXPECT_EQ(ParseDuration("0s"), Duration(0));
  EXPECT_EQ(ParseDuration("9223372036854775807ns"), Duration(std::numeric_limits<int64_t>::max()));
}

TEST(ParseDuration, SaysWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"90", R"(duration "90": the unit is missing; did you mean 90s?)"},
      {"", R"(duration "": write whole numbers with units, as in 90s, 10m or 1h30m)"},
      {"-5s", R"(duration "-5s": write whole numbers with units, as in 90s, 10m or 1h30m)"},
      {"1.5h", R"(duration "1.5h": write whole numbers with units, as in 90s, 10m or 1h30m)"},
      {"1h30", R"(duration "1h30": the unit is missing; did you mean 1h30s?)"},
      {"5 s", R"(duration "5 s": write whole numbers with units, as in 90s, 10m or 1h30m)"},
      {"3w", R"(duration "3w": "w" is not one of d, h, m, s, ms, us, ns)"},
      {"30m1h", R"(duration "30m1h": units go from large to small, each once)"},
      {"1h1h", R"(duration "1h1h": units go from large to small, each once)"},
      {"9223372036854775808ns", R"(duration "9223372036854775808ns": it is longer than 292 years)"},
      {"200000d", R"(duration "200000d": it is longer than 292 years)"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = ParseDuration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message(), message);
  }
}

TEST(FormatDuration, Forms) {
  EXPECT_EQ(FormatDuration(Duration(0)), "0s");
  EXPECT_EQ(FormatDuration(90min), "1h30m");
  EXPECT_EQ(FormatDuration(48h), "48h");
  EXPECT_EQ(FormatDuration(250ms), "250ms");
  EXPECT_EQ(FormatDuration(-1500ms), "-1s500ms");
  EXPECT_EQ(FormatDuration(Duration::min()), "-2562047h47m16s854ms775us808ns");
}

TEST(FormatDuration, RoundTrip) {
  EXPECT_TRUE(rc::check("a duration reads back as itself", [] {
    const Duration duration(*rc::gen::inRange<int64_t>(0, std::numeric_limits<int64_t>::max()));
    RC_ASSERT((ParseDuration(FormatDuration(duration)) == duration));
  }));
}

TEST(ParseWallTime, ReadsTimes) {
  EXPECT_EQ(ParseWallTime("0"), WallTime());
  EXPECT_EQ(ParseWallTime("1767225600"), WallTime(1767225600s));
  EXPECT_EQ(ParseWallTime("1970-01-01T00:00:00Z"), WallTime());
  EXPECT_EQ(ParseWallTime("2026-01-01T00:00:00Z"), WallTime(1767225600s));
  EXPECT_EQ(ParseWallTime("2026-01-01T02:00:00.25+02:00"), WallTime(1767225600s + 250ms));
  EXPECT_EQ(ParseWallTime("2025-12-31 18:30:00-05:30"), WallTime(1767225600s));
  EXPECT_EQ(ParseWallTime("2024-02-29T00:00:00.000000001Z"), WallTime(1709164800s + 1ns));
}

TEST(ParseWallTime, SaysWhatIsWrong) {
  constexpr std::string_view kHow = "write it as 2026-01-31T08:00:00Z or as whole seconds since 1970";
  constexpr std::string_view kOffset = "end it with Z or an offset such as +02:00";
  constexpr std::string_view kRange = "it must lie between 1970 and 2261";
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", kHow},
      {"yesterday", kHow},
      {"2026-13-01T00:00:00Z", kHow},
      {"2025-02-29T00:00:00Z", kHow},
      {"2026-01-01", kHow},
      {"2026-01-01T24:00:00Z", kHow},
      {"2026-01-01T00:60:00Z", kHow},
      {"2026-01-01T00:00:60Z", kHow},
      {"2026-01-01T00:00:00Zulu", kHow},
      {"2026-01-01T00:00:00", kOffset},
      {"2026-01-01T00:00:00+0200", kOffset},
      {"2026-01-01T00:00:00.Z", "a fraction of a second has one to nine digits"},
      {"2026-01-01T00:00:00.1234567890Z", "a fraction of a second has one to nine digits"},
      {"1969-12-31T23:59:59Z", kRange},
      {"1970-01-01T00:00:00+01:00", kRange},
      {"9999-01-01T00:00:00Z", kRange},
      {"99999999999999999999", kRange},
      {"-5", kHow},
  };
  for (const auto& [text, why] : cases) {
    const auto parsed = ParseWallTime(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message(), "time \"" + std::string(text) + "\": " + std::string(why));
  }
}

}  // namespace
TEST(FormatWallTime, IsReadBack) {
  for (const char* text : {"1970-01-01T00:00:00.000Z", "2026-02-28T23:59:59.250Z", "2024-02-29T08:00:00.007Z"}) {
    const auto time = ParseWallTime(text);
    ASSERT_TRUE(time) << time.error().ToString();
    EXPECT_EQ(FormatWallTime(*time), text);
  }
}

}  // namespace muster::model
