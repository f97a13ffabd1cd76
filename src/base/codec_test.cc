#include "base/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "base/rng.h"
#include "base/time.h"

namespace muster::codec {

// Outside of the unnamed namespace: clang refuses the check of fields for an optional of a type without linkage.
struct Inner {
  int32_t number = 0;
  std::string text;

  bool operator==(const Inner&) const = default;
  MUSTER_FIELDS(Inner, number, text)
};

namespace {

enum class Colour : uint8_t { kRed, kGreen };
using RowIndex = Index<struct RowTag>;

// One field of every kind the codec knows.
struct Everything {
  bool flag = false;
  uint64_t big = 0;
  int64_t wide = 0;
  int8_t narrow = 0;
  uint16_t small = 0;
  Colour colour = Colour::kRed;
  Duration age{};
  WallTime when;
  RowIndex row;
  std::optional<Inner> maybe;
  std::vector<Inner> list;
  std::map<std::string, int64_t> map;
  std::variant<std::monostate, Inner, std::string> choice;
  std::pair<std::string, uint32_t> pair;

  bool operator==(const Everything&) const = default;
  MUSTER_FIELDS(Everything, flag, big, wide, narrow, small, colour, age, when, row, maybe, list, map, choice, pair)
};

// Lengths vary by whole orders, so that varints of one to ten bytes all occur.
uint64_t AnyNumber(Rng& rng) { return rng.Next() >> rng.Below(64); }
std::string AnyText(Rng& rng) {
  std::string text;
  for (uint64_t left = rng.Below(rng.Chance(1, 20) ? 300 : 6); left > 0; --left) text += static_cast<char>(rng.Next());
  return text;
}
Inner AnyInner(Rng& rng) { return {static_cast<int32_t>(AnyNumber(rng)), AnyText(rng)}; }

Everything AnyEverything(Rng& rng) {
  Everything value{.flag = rng.Chance(1, 2),
                   .big = AnyNumber(rng),
                   .wide = static_cast<int64_t>(rng.Chance(1, 2) ? AnyNumber(rng) : 0 - AnyNumber(rng)),
                   .narrow = static_cast<int8_t>(rng.Next()),
                   .small = static_cast<uint16_t>(rng.Next()),
                   .colour = Colour::kGreen,
                   .age = Duration(static_cast<int64_t>(rng.Next())),
                   .when = WallTime(Duration(static_cast<int64_t>(AnyNumber(rng)))),
                   .row = RowIndex(static_cast<uint32_t>(rng.Next()))};
  if (rng.Chance(1, 2)) value.maybe = AnyInner(rng);
  for (uint64_t left = rng.Below(4); left > 0; --left) value.list.push_back(AnyInner(rng));
  for (uint64_t left = rng.Below(4); left > 0; --left) value.map[AnyText(rng)] = static_cast<int64_t>(rng.Next());
  if (rng.Chance(1, 3)) value.choice = AnyInner(rng);
  if (rng.Chance(1, 3)) value.choice = AnyText(rng);
  value.pair = {AnyText(rng), static_cast<uint32_t>(AnyNumber(rng))};
  return value;
}

TEST(Codec, KnownBytes) {
  EXPECT_EQ(ToBytes(uint64_t{0}), std::string("\0", 1));
  EXPECT_EQ(ToBytes(uint64_t{127}), "\x7f");
  EXPECT_EQ(ToBytes(uint64_t{128}), "\x80\x01");
  EXPECT_EQ(ToBytes(uint64_t{300}), "\xac\x02");
  EXPECT_EQ(ToBytes(UINT64_MAX), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(ToBytes(int64_t{-1}), "\x01");
  EXPECT_EQ(ToBytes(int64_t{1}), "\x02");
  EXPECT_EQ(ToBytes(INT64_MIN), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(ToBytes(std::string("ab")),
            "\x02"
            "ab");
  EXPECT_EQ(ToBytes(Inner{-2, "x"}), "\x03\x01x");
  EXPECT_EQ(ToBytes(std::optional<bool>()), std::string("\0", 1));
  EXPECT_EQ(ToBytes(std::optional<bool>(true)), "\x01\x01");
  EXPECT_EQ(ToBytes(std::variant<std::monostate, std::string>("q")), "\x01\x01q");
  EXPECT_EQ(ToBytes(std::map<std::string, int>{{"b", 1}, {"a", 0}}), std::string("\x02\x01"
                                                                                 "a\0\x01"
                                                                                 "b\x02",
                                                                                 7));
}

RC_GTEST_PROP(Codec, IntegersComeBack, (uint64_t big, int64_t wide, int32_t number, uint16_t small)) {
  RC_ASSERT(FromBytes<uint64_t>(ToBytes(big)) == big);
  RC_ASSERT(FromBytes<int64_t>(ToBytes(wide)) == wide);
  RC_ASSERT(FromBytes<int32_t>(ToBytes(number)) == number);
  RC_ASSERT(FromBytes<uint16_t>(ToBytes(small)) == small);
}

RC_GTEST_PROP(Codec, ContainersComeBack, (const std::vector<std::map<std::string, int64_t>>& value)) {
  RC_ASSERT((FromBytes<std::vector<std::map<std::string, int64_t>>>(ToBytes(value)) == value));
}

TEST(Codec, EveryKindOfFieldComesBack) {
  Rng rng(1);
  for (int i = 0; i < 5000; ++i) {
    const Everything value = AnyEverything(rng);
    const std::string bytes = ToBytes(value);
    ASSERT_EQ(FromBytes<Everything>(bytes), value) << Describe(value);
    ASSERT_EQ(Digest(value), Hash(bytes));
  }
}

TEST(Codec, EveryTruncationAndEveryAdditionIsRefused) {
  Rng rng(2);
  for (int i = 0; i < 300; ++i) {
    const std::string bytes = ToBytes(AnyEverything(rng));
    for (size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_FALSE(FromBytes<Everything>(std::string_view(bytes).substr(0, size))) << size << " of " << bytes.size();
    }
    ASSERT_FALSE(FromBytes<Everything>(bytes + '\0'));
  }
}

// Bytes that decode are exactly what the value encodes to; all others are refused.
TEST(Codec, RandomAndDamagedBytesDecodeToOneSpellingOrNotAtAll) {
  Rng rng(3);
  int decoded = 0;
  int refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = rng.Chance(1, 2) ? AnyText(rng) : ToBytes(AnyEverything(rng));
    for (uint64_t left = rng.Below(4); left > 0 && !bytes.empty(); --left) {
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    }
    const auto value = FromBytes<Everything>(bytes);
    ++(value ? decoded : refused);
    if (value) {
      ASSERT_EQ(ToBytes(*value), bytes);
    }
  }
  EXPECT_GT(decoded, 5000);
  EXPECT_GT(refused, 5000);
}

TEST(Codec, RefusesWhatIsOutOfRange) {
  EXPECT_FALSE(FromBytes<bool>("\x02"));
  EXPECT_FALSE(FromBytes<uint8_t>(ToBytes(uint64_t{256})));
  EXPECT_EQ(FromBytes<int8_t>(ToBytes(int64_t{-128})), -128);
  EXPECT_FALSE(FromBytes<int8_t>(ToBytes(int64_t{-129})));
  EXPECT_FALSE(FromBytes<int8_t>(ToBytes(int64_t{128})));
  EXPECT_FALSE(FromBytes<uint64_t>(std::string_view("\x80\x00", 2)));                          // two spellings of 0
  EXPECT_FALSE(FromBytes<uint64_t>("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));               // 65 bits
  EXPECT_FALSE(FromBytes<uint64_t>("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"));           // eleven bytes
  EXPECT_FALSE((FromBytes<std::variant<std::monostate, std::string>>("\x02")));                // no such alternative
  EXPECT_FALSE(FromBytes<std::vector<uint64_t>>("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));  // longer than its bytes
  EXPECT_FALSE(
      FromBytes<std::string>("\xff\xff\xff\xff\x0f"
                             "abc"));
  const std::string twice(
      "\x02\x01"
      "a\0\x01"
      "a\x02",
      7);
  const std::string unsorted(
      "\x02\x01"
      "b\0\x01"
      "a\x02",
      7);
  EXPECT_FALSE((FromBytes<std::map<std::string, int>>(twice)));
  EXPECT_FALSE((FromBytes<std::map<std::string, int>>(unsorted)));
}

TEST(Codec, Describes) {
  Everything value{.flag = true, .age = 1500ms, .maybe = Inner{-2, "two words"}, .map = {{"a", 1}}};
  value.list = {{1, "x"}, {2, ""}};
  value.pair = {"left", 9};
  EXPECT_EQ(Describe(value),
            "Everything{flag=true, big=0, wide=0, narrow=0, small=0, colour=0, age=1.5s, when=0s, row=#none, "
            "maybe=Inner{number=-2, text=\"two words\"}, list=[Inner{number=1, text=x}, Inner{number=2, text=\"\"}], "
            "map=[a: 1], choice=none, pair=left: 9}");
  EXPECT_EQ(Describe(RowIndex(4)), "#4");
}

TEST(Codec, Quotes) {
  EXPECT_EQ(Quote("plain-text/1.2"), "plain-text/1.2");
  EXPECT_EQ(Quote(""), "\"\"");
  EXPECT_EQ(Quote("a b"), "\"a b\"");
  EXPECT_EQ(Quote("say \"x\"\\\n\xff"), "\"say \\\"x\\\"\\\\\\x0a\\xff\"");
  EXPECT_EQ(Quote("a,b"), "\"a,b\"");
}

}  // namespace
}  // namespace muster::codec
