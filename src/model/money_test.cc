#include "model/money.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace muster::model {
namespace {

TEST(Money, Parses) {
  EXPECT_EQ(ParseMoney("12"), Money{12'000'000});
  EXPECT_EQ(ParseMoney("0.51"), Money{510'000});
  EXPECT_EQ(ParseMoney("$1.25"), Money{1'250'000});
  EXPECT_EQ(ParseMoney("0"), Money{0});
  EXPECT_EQ(ParseMoney("007.000001"), Money{7'000'001});
  EXPECT_EQ(ParseMoney("9000000000000"), Money{9'000'000'000'000'000'000});
  EXPECT_EQ(ParseMoney("9000000000000.000000"), Money{9'000'000'000'000'000'000});
}

TEST(Money, RefusesWithTheTextAndTheWhy) {
  struct Bad {
    std::string_view text;
    std::string_view why;
  };
  for (const auto& [text, why] : std::to_array<Bad>({{"", "not a plain decimal"},
                                                     {"$", "not a plain decimal"},
                                                     {".5", "not a plain decimal"},
                                                     {"5.", "not a plain decimal"},
                                                     {"1e3", "not a plain decimal"},
                                                     {"NaN", "not a plain decimal"},
                                                     {"+1", "not a plain decimal"},
                                                     {" 1", "not a plain decimal"},
                                                     {"1,000", "not a plain decimal"},
                                                     {"$$1", "not a plain decimal"},
                                                     {"-1", "negative"},
                                                     {"$-1", "negative"},
                                                     {"0.0000001", "more than six decimals"},
                                                     {"9000000000000.000001", "the most is 9000000000000"},
                                                     {"9000000000001", "the most is"},
                                                     {"99999999999999999999999999", "the most is"}})) {
    const auto money = ParseMoney(text);
    ASSERT_FALSE(money) << text;
    EXPECT_NE(money.error().message().find(why), std::string::npos) << money.error().message();
    EXPECT_NE(money.error().message().find(text), std::string::npos) << money.error().message();
  }
}

TEST(Money, FromDollarsRoundsToTheNearestMicro) {
  EXPECT_EQ(MoneyFromDollars(0.51), Money{510'000});
  EXPECT_EQ(MoneyFromDollars(-0.0), Money{0});
  EXPECT_EQ(MoneyFromDollars(0.0000004), Money{0});
  EXPECT_EQ(MoneyFromDollars(0.0000006), Money{1});
  EXPECT_EQ(MoneyFromDollars(9e12), Money{9'000'000'000'000'000'000});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {-0.01, nan, infinity, -infinity, 9.1e12, 1e300}) {
    const auto money = MoneyFromDollars(bad);
    ASSERT_FALSE(money) << bad;
    EXPECT_EQ(money.error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(ToDollars({1'250'000}), 1.25);
}

TEST(Money, Formats) {
  EXPECT_EQ(FormatMoney({510'000}), "$0.51");
  EXPECT_EQ(FormatMoney({12'000'000}), "$12.00");
  EXPECT_EQ(FormatMoney({1}), "$0.000001");
  EXPECT_EQ(FormatMoney({1'234'500}), "$1.2345");
  EXPECT_EQ(FormatMoney({-510'000}), "-$0.51");
  EXPECT_EQ(FormatMoney({std::numeric_limits<int64_t>::min()}), "-$9223372036854.775808");
}

RC_GTEST_PROP(Money, FormattedFormParsesBack, ()) {
  for (int i = 0; i < 100; ++i) {
    const Money money{*rc::gen::inRange<int64_t>(0, 9'000'000'000'000'000'000)};
    RC_ASSERT((ParseMoney(FormatMoney(money)) == money));
  }
}

TEST(Probability, ParsesAndRefuses) {
  EXPECT_EQ(ParseProbability("0"), Probability{0});
  EXPECT_EQ(ParseProbability("0.05"), Probability{50'000});
  EXPECT_EQ(ParseProbability("1"), Probability{1'000'000});
  EXPECT_EQ(ParseProbability("1.0"), Probability{1'000'000});
  for (const std::string_view text : {"1.000001", "2", "-0.1", "5%", "", "$1", "0.1234567", "NaN"}) {
    const auto probability = ParseProbability(text);
    ASSERT_FALSE(probability) << text;
    EXPECT_TRUE(probability.error().message().starts_with("probability \"")) << probability.error().message();
  }
}

TEST(Probability, FromDouble) {
  EXPECT_EQ(ProbabilityFromDouble(0.3), Probability{300'000});
  EXPECT_EQ(ProbabilityFromDouble(1.0), Probability{1'000'000});
  for (const double bad : {-0.1, 1.0000001, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(ProbabilityFromDouble(bad)) << bad;
  }
}

}  // namespace
}  // namespace muster::model
