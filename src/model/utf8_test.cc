#include "model/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::model {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(Utf8, FindsTheFirstBadByte) {
  struct Case {
    std::string text;
    size_t bad;
  };
  const Case cases[] = {
      {"", kNone},
      {"plain text longer than eight bytes", kNone},
      {"z\xC3\xBCrich \xE2\x82\xAC \xF0\x9F\x98\x80", kNone},
      {"\xF4\x8F\xBF\xBF", kNone},  // U+10FFFF
      {"abcdefgh\xFF", 8},          // no lead byte
      {"a\x80", 1},                 // continuation alone
      {"\xC3", 0},                  // cut off
      {"ab\xE2\x82", 2},            // cut off
      {"\xC0\xAF", 0},              // overlong
      {"\xE0\x9F\xBF", 0},          // overlong
      {"\xF0\x8F\xBF\xBF", 0},      // overlong
      {"\xED\xA0\x80", 0},          // surrogate
      {"\xF4\x90\x80\x80", 0},      // beyond U+10FFFF
      {"\xF5\x80\x80\x80", 0},      // beyond U+10FFFF
      {"\xE2\x82q", 0},             // third byte wrong
      {std::string("\xFF\xFE"
                   "a\0",
                   4),
       0},  // UTF-16
  };
  for (const Case& c : cases) EXPECT_EQ(FindInvalidUtf8(c.text), c.bad) << c.text;
}

TEST(Utf8, EveryScalarValueIsWrittenWellFormed) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(text, code);
    ASSERT_EQ(FindInvalidUtf8(text), kNone) << code;
    ASSERT_EQ(text.size(), code < 0x80 ? 1u : code < 0x800 ? 2u : code < 0x10000 ? 3u : 4u) << code;
  }
}

TEST(Utf8, PrefixEndsBetweenCodePoints) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("a\xE2\x82\xAC", 2), "a ... (4 bytes)");
  EXPECT_EQ(Utf8Prefix("abc", 3), "abc");
  EXPECT_EQ(Utf8Prefix("abc", 2), "ab");
  EXPECT_EQ(Utf8Prefix("a\xE2\x82\xAC"
                       "b",
                       3),
            "a");
  EXPECT_EQ(Utf8Prefix("a\xE2\x82\xAC"
                       "b",
                       4),
            "a\xE2\x82\xAC");
}

}  // namespace
}  // namespace muster::model
