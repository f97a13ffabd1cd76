#include "model/quantity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace muster::model {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

struct Good {
  std::string_view text;
  int64_t milli;
};
constexpr auto kGood = std::to_array<Good>({
    // Plain numbers, points, signs, zeros.
    {"0", 0},
    {"1", 1000},
    {"42", 42'000},
    {"+7", 7000},
    {"-3", -3000},
    {"-0", 0},
    {"+0.0", 0},
    {".5", 500},
    {"-.5", -500},
    {"2.", 2000},
    {"007", 7000},
    {"0.125", 125},
    {"00.500", 500},
    {"1.10000000000000000000000000000000000000000000000000000000000000000000000000000000000", 1100},
    {"000000000000000000000000000000000000000000000000000000000000000000000000000000000001", 1000},
    // Decimal suffixes.
    {"1000000n", 1},
    {"5000000n", 5},
    {"1000u", 1},
    {"2500000u", 2500},
    {"250m", 250},
    {"-250m", -250},
    {"1m", 1},
    {"1k", 1'000'000},
    {"1.5k", 1'500'000},
    {"0.000001k", 1},
    {"1M", 1'000'000'000},
    {"1G", 1'000'000'000'000},
    {"1T", 1'000'000'000'000'000},
    {"1P", 1'000'000'000'000'000'000},
    {"9P", 9'000'000'000'000'000'000},
    {"0.001E", 1'000'000'000'000'000'000},
    {"0.000000000000000000001E", 1},
    {"0E", 0},
    {"0n", 0},
    // Binary suffixes.
    {"1Ki", 1'024'000},
    {"1Mi", 1'048'576'000},
    {"1Gi", 1'073'741'824'000},
    {"1Ti", 1'099'511'627'776'000},
    {"1Pi", 1'125'899'906'842'624'000},
    {"8Pi", 9'007'199'254'740'992'000},
    {"1.5Gi", 1'610'612'736'000},
    {"-1.5Gi", -1'610'612'736'000},
    {"0.5Ki", 512'000},
    {"0.1Ki", 102'400},
    {".001953125Ki", 2000},
    {"0.0009765625Ki", 1000},
    {"0.0009765625Mi", 1'024'000},
    {"0.00000095367431640625Mi", 1000},
    {"0.000000000000000000867361737988403547205962240695953369140625Ei", 1000},
    {"0.0078125Ei", 9'007'199'254'740'992'000},
    {"0Ei", 0},
    // Exponents, with E as a number and as exa.
    {"1e3", 1'000'000},
    {"1E3", 1'000'000},
    {"1e+3", 1'000'000},
    {"1e-3", 1},
    {"1E-3", 1},
    {"1.5e-1", 150},
    {"12E2", 1'200'000},
    {"12e0", 12'000},
    {"12e-0", 12'000},
    {"1e003", 1'000'000},
    {"1000e-6", 1},
    {"0.0000001e7", 1000},
    {"100000000000000000000000e-20", 1'000'000},
    {"0e999999999", 0},
    {"-0e-99999999999999999999999999", 0},
    // The edges of 64 bits.
    {"9223372036854775807m", kMax},
    {"-9223372036854775808m", kMin},
    {"9223372036854775.807", kMax},
    {"-9223372036854775.808", kMin},
    {"9223372036854775807000000n", kMax},
    {"9.223372036854775807e15", kMax},
});

struct Bad {
  std::string_view text;
  std::string_view why;
};
constexpr std::string_view kNoNumber = "does not begin with a number";
constexpr std::string_view kTooFine = "finer than 1m";
constexpr std::string_view kTooLarge = "too large";
constexpr auto kBad = std::to_array<Bad>({
    // Not in the grammar.
    {"", kNoNumber},
    {" ", kNoNumber},
    {" 1", kNoNumber},
    {"\t1", kNoNumber},
    {".", kNoNumber},
    {"-", kNoNumber},
    {"+", kNoNumber},
    {"+-1", kNoNumber},
    {"--1", kNoNumber},
    {"-.", kNoNumber},
    {"E", kNoNumber},
    {"e3", kNoNumber},
    {"Ki", kNoNumber},
    {"m", kNoNumber},
    {"NaN", kNoNumber},
    {"inf", kNoNumber},
    {"$5", kNoNumber},
    {"1 ", "unknown suffix \" \""},
    {"1 Ki", "unknown suffix \" Ki\""},
    {"1K", "unknown suffix \"K\""},
    {"1Kib", "unknown suffix \"Kib\""},
    {"1KiB", "unknown suffix \"KiB\""},
    {"1ki", "unknown suffix \"ki\""},
    {"1mi", "unknown suffix \"mi\""},
    {"1g", "unknown suffix \"g\""},
    {"1mm", "unknown suffix \"mm\""},
    {"1nu", "unknown suffix \"nu\""},
    {"0x10", "unknown suffix \"x10\""},
    {"1,5", "unknown suffix \",5\""},
    {"1_000", "unknown suffix \"_000\""},
    {"1.2.3", "unknown suffix \".3\""},
    {"1..", "unknown suffix \".\""},
    {"1-", "unknown suffix \"-\""},
    {"1-2", "unknown suffix \"-2\""},
    {"5%", "unknown suffix \"%\""},
    {"1ee3", "unknown suffix \"ee3\""},
    {"1Ee3", "unknown suffix \"Ee3\""},
    {"1EiB", "unknown suffix \"EiB\""},
    {"1e", "the exponent \"\" is not"},
    {"1e+", "the exponent \"+\" is not"},
    {"1E-", "the exponent \"-\" is not"},
    {"1e+-3", "the exponent \"+-3\" is not"},
    {"1e3.5", "the exponent \"3.5\" is not"},
    {"1e3Ki", "the exponent \"3Ki\" is not"},
    {"1e3 ", "the exponent \"3 \" is not"},
    {"1E3E", "the exponent \"3E\" is not"},
    // Finer than a milli-unit.
    {"1n", kTooFine},
    {"1u", kTooFine},
    {"999999n", kTooFine},
    {"1000001n", kTooFine},
    {"0.5m", kTooFine},
    {"0.0001", kTooFine},
    {"-0.0001", kTooFine},
    {"1.0001", kTooFine},
    {"0.0001Ki", kTooFine},
    {"0.00000001Gi", kTooFine},
    {"1e-4", kTooFine},
    {"1e-999999999", kTooFine},
    {"1e-99999999999999999999999999999999", kTooFine},
    {"99999999999999999999999999999999.0001", kTooFine},
    // Outside 64 bits.
    {"9223372036854775808m", kTooLarge},
    {"-9223372036854775809m", kTooLarge},
    {"9223372036854775.808", kTooLarge},
    {"9223372036854776", kTooLarge},
    {"18446744073709551616m", kTooLarge},
    {"18446744073709551617m", kTooLarge},
    {"10P", kTooLarge},
    {"1E", kTooLarge},
    {"-1E", kTooLarge},
    {"9Pi", kTooLarge},
    {"1Ei", kTooLarge},
    {"16Ei", kTooLarge},
    {"1e16", kTooLarge},
    {"1e999999999", kTooLarge},
    {"1E+99999999999999999999999999999999", kTooLarge},
    {"99999999999999999999999999999999", kTooLarge},
    {"99999999999999999999999999999999Ei", kTooLarge},
    {"9999999999999999999999999999999999999999999999999999999999999999999999.5Ei", kTooLarge},
});

TEST(Quantity, ParsesTheWholeGrammar) {
  static_assert(kGood.size() + kBad.size() >= 80);
  for (const Good& good : kGood) {
    const Result<int64_t> parsed = ParseQuantity(good.text);
    ASSERT_TRUE(parsed) << parsed.error().message();
    EXPECT_EQ(*parsed, good.milli) << good.text;
  }
}

TEST(Quantity, RefusesWithTheTextAndTheWhy) {
  for (const Bad& bad : kBad) {
    const Result<int64_t> parsed = ParseQuantity(bad.text);
    ASSERT_FALSE(parsed) << bad.text << " gave " << *parsed;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
    const std::string quoted = fmt::format("quantity {:?}", bad.text.substr(0, 64));
    EXPECT_TRUE(parsed.error().message().starts_with(quoted)) << parsed.error().message();
    EXPECT_NE(parsed.error().message().find(bad.why), std::string::npos) << parsed.error().message();
  }
}

TEST(Quantity, LongTextsAreParsedOrRefusedInAShortMessage) {
  const std::string zeros(1'000'000, '0');
  EXPECT_EQ(ParseQuantity("1." + zeros), 1000);
  EXPECT_EQ(ParseQuantity(zeros + "1"), 1000);
  EXPECT_EQ(ParseQuantity("1" + zeros + "e-1000000"), 1000);
  EXPECT_EQ(ParseQuantity("0." + zeros + "1e1000001"), 1000);
  const Result<int64_t> refused = ParseQuantity(std::string(1'000'000, '7') + "\n");
  ASSERT_FALSE(refused);
  EXPECT_LT(refused.error().message().size(), 300u);
  EXPECT_NE(refused.error().message().find("(1000001 bytes)"), std::string::npos);
}

TEST(Quantity, Formats) {
  EXPECT_EQ(FormatQuantity(0), "0");
  EXPECT_EQ(FormatQuantity(1500), "1500m");
  EXPECT_EQ(FormatQuantity(2000), "2");
  EXPECT_EQ(FormatQuantity(-3000), "-3");
  EXPECT_EQ(FormatQuantity(-1), "-1m");
  EXPECT_EQ(FormatQuantity(kMax), "9223372036854775807m");
  EXPECT_EQ(FormatQuantity(kMin), "-9223372036854775808m");
}

TEST(Quantity, FormatsBytesInBinary) {
  const int64_t mebi = 1'048'576'000;
  for (const std::string_view bytes : {"memory", "storage", "ephemeral-storage", "hugepages-2Mi", "hugepages-1Gi"}) {
    EXPECT_EQ(FormatQuantityFor(bytes, 1536 * mebi), "1536Mi") << bytes;
  }
  for (const std::string_view other : {"cpu", "nvidia.com/gpu", "memory-bandwidth", "hugepages", ""}) {
    EXPECT_EQ(FormatQuantityFor(other, 1536 * mebi), "1610612736") << other;
  }
  EXPECT_EQ(FormatQuantityFor("memory", 0), "0");
  EXPECT_EQ(FormatQuantityFor("memory", 1500), "1500m");
  EXPECT_EQ(FormatQuantityFor("memory", 1000 * 1000), "1000");
  EXPECT_EQ(FormatQuantityFor("memory", 1024 * mebi), "1Gi");
  EXPECT_EQ(FormatQuantityFor("memory", -1024 * mebi), "-1Gi");
  EXPECT_EQ(FormatQuantityFor("memory", 9'007'199'254'740'992'000), "8Pi");
}

// Any int64, with powers of two and ten and the extremes much more often than chance would have it.
rc::Gen<int64_t> AnyMilli() {
  const auto scaled = rc::gen::apply(
      [](int64_t base, int twos, int tens) {
        auto value = static_cast<uint64_t>(base);
        value <<= twos;
        for (int i = 0; i < tens; ++i) value *= 10;
        return static_cast<int64_t>(value);
      },
      rc::gen::arbitrary<int64_t>(), rc::gen::inRange(0, 60), rc::gen::inRange(0, 19));
  return rc::gen::oneOf(rc::gen::arbitrary<int64_t>(), scaled, rc::gen::element(kMax, kMin, kMax - 807, kMin + 808));
}

RC_GTEST_PROP(Quantity, FormattedFormsParseBack, ()) {
  for (int i = 0; i < 100; ++i) {
    const int64_t milli = *AnyMilli();
    RC_ASSERT((ParseQuantity(FormatQuantity(milli)) == milli));
    RC_ASSERT((ParseQuantity(FormatQuantityFor("memory", milli)) == milli));
  }
}

__extension__ typedef unsigned __int128 Wide;

struct Scale {
  std::string_view suffix;
  int ten;
  int two;
};
constexpr auto kScales = std::to_array<Scale>(
    {{"", 0, 0},    {"n", -9, 0},  {"u", -6, 0}, {"m", -3, 0},   {"k", 3, 0},      {"M", 6, 0},   {"G", 9, 0},
     {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0}, {"Ki", 0, 10},  {"Mi", 0, 20},    {"Gi", 0, 30}, {"Ti", 0, 40},
     {"Pi", 0, 50}, {"Ei", 0, 60}, {"e0", 0, 0}, {"e-1", -1, 0}, {"E-18", -18, 0}, {"e+5", 5, 0}, {"E17", 17, 0}});

Wide Power(unsigned base, int exponent) {
  Wide power = 1;
  for (int i = 0; i < exponent; ++i) power *= base;
  return power;
}

// What digits / 10^decimals in the given scale is in milli-units, by 128-bit arithmetic: at most 10^15 * 10^3 * 10^18
// or 2^60 above the line and 10^33 below it, so nothing overflows. Nothing if it is not whole or not an int64.
std::optional<int64_t> Oracle(bool negative, uint64_t digits, int decimals, const Scale& scale) {
  const Wide above = Wide{digits} * 1000 * Power(10, std::max(scale.ten, 0)) * Power(2, scale.two);
  const Wide below = Power(10, decimals + std::max(-scale.ten, 0));
  if (above % below != 0) return std::nullopt;
  const Wide magnitude = above / below;
  const Wide limit = static_cast<Wide>(kMax) + (negative ? 1 : 0);
  if (magnitude > limit) return std::nullopt;
  const auto low = static_cast<uint64_t>(magnitude);
  return static_cast<int64_t>(negative ? 0 - low : low);
}

RC_GTEST_PROP(Quantity, EqualsExactArithmetic, ()) {
  for (int i = 0; i < 200; ++i) {
    const int length = *rc::gen::inRange(1, 16);
    const uint64_t limit = static_cast<uint64_t>(Power(10, length));
    const int zeros = *rc::gen::inRange(0, length);
    const uint64_t digits = *rc::gen::inRange<uint64_t>(0, limit) / static_cast<uint64_t>(Power(10, zeros)) *
                            static_cast<uint64_t>(Power(10, zeros));
    const int decimals = *rc::gen::inRange(0, 16);
    const Scale scale = *rc::gen::elementOf(kScales);
    const bool negative = *rc::gen::arbitrary<bool>();
    std::string text = fmt::format("{:0{}}", digits, decimals + 1);
    text.insert(text.size() - static_cast<size_t>(decimals), ".");
    text = fmt::format("{}{}{}", negative ? "-" : "", text, scale.suffix);
    const std::optional<int64_t> expected = Oracle(negative, digits, decimals, scale);
    const Result<int64_t> parsed = ParseQuantity(text);
    RC_ASSERT(parsed.has_value() == expected.has_value());
    if (expected) RC_ASSERT(*parsed == *expected);
  }
}

// Every amount can be written in every binary unit, with up to 63 decimals; one more digit makes it too fine.
RC_GTEST_PROP(Quantity, ReadsLongFractionsOfBinaryUnits, ()) {
  for (int i = 0; i < 50; ++i) {
    const auto milli = static_cast<uint64_t>(*rc::gen::inRange<int64_t>(1, kMax));
    const Scale scale = kScales[static_cast<size_t>(*rc::gen::inRange(10, 16))];
    const Wide unit = Wide{1000} << scale.two;
    std::string text = fmt::format("{}.", static_cast<uint64_t>(milli / unit));
    for (Wide rest = milli % unit; rest != 0; rest %= unit) {
      rest *= 10;
      text += static_cast<char>('0' + static_cast<int>(rest / unit));
    }
    RC_ASSERT((ParseQuantity(fmt::format("{}{}", text, scale.suffix)) == static_cast<int64_t>(milli)));
    const std::string finer = fmt::format("{}{}1{}", text, std::string(64, '0'), scale.suffix);
    RC_ASSERT(!ParseQuantity(finer));
  }
}

}  // namespace
}  // namespace muster::model
