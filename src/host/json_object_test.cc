#include "host/json_object.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::host {
namespace {

TEST(JsonObject, KindsOfValues) {
  EXPECT_EQ(JsonObject().Take(), "{}");
  EXPECT_EQ(JsonObject().Add("a", true).Add("b", -3).Add("c", 18446744073709551615u).Add("d", 0.5).Add("e", "x").Take(),
            R"({"a":true,"b":-3,"c":18446744073709551615,"d":0.5,"e":"x"})");
  EXPECT_EQ(JsonObject().Add("n", std::numeric_limits<double>::quiet_NaN()).Take(), R"({"n":"nan"})");
  EXPECT_EQ(JsonObject().Add("i", -std::numeric_limits<double>::infinity()).Take(), R"({"i":"-inf"})");
}

TEST(JsonObject, TakeEmptiesTheBuilder) {
  JsonObject object;
  object.Add("a", 1);
  EXPECT_EQ(object.Take(), R"({"a":1})");
  EXPECT_EQ(object.Take(), "{}");
}

struct QuoteCase {
  const char* name;
  std::string_view text;
  std::string_view quoted;
};

TEST(JsonQuote, Table) {
  using namespace std::string_view_literals;
  const QuoteCase cases[] = {
      {"empty", "", R"("")"},
      {"plain", "cpu=4", R"("cpu=4")"},
      {"quote and backslash", R"(a"b\c)", R"("a\"b\\c")"},
      {"line end", "a\nb", R"("a\nb")"},
      {"control characters", "\0\x1b\x7f"sv, R"("\u0000\u001b\u007f")"},
      {"two, three and four bytes", "é€😀", "\"é€😀\""},
      {"highest code point", "\xF4\x8F\xBF\xBF", "\"\xF4\x8F\xBF\xBF\""},
      {"above the highest", "\xF4\x90\x80\x80", "\"\uFFFD\uFFFD\uFFFD\uFFFD\""},
      {"stray continuation", "a\x80z", "\"a\uFFFDz\""},
      {"cut short", "\xE2\x82", "\"\uFFFD\uFFFD\""},
      {"overlong slash", "\xC0\xAF", "\"\uFFFD\uFFFD\""},
      {"overlong of three", "\xE0\x80\xAF", "\"\uFFFD\uFFFD\uFFFD\""},
      {"surrogate", "\xED\xA0\x80", "\"\uFFFD\uFFFD\uFFFD\""},
      {"bad byte before good text", "\xFF€", "\"\uFFFD€\""},
      {"bad last byte", "\xE2\x82z", "\"\uFFFD\uFFFDz\""},
  };
  for (const QuoteCase& c : cases) EXPECT_EQ(JsonQuote(c.text), c.quoted) << c.name;
}

}  // namespace
}  // namespace muster::host
