#include "model/text_value.h"

#include <gtest/gtest.h>

namespace muster::model {
namespace {

TEST(TextValue, FindsAField) {
  TextValue map;
  map.kind = TextValue::Kind::kMap;
  map.fields.push_back({.key = "zone", .position = {.line = 2, .column = 1}, .value = {}});
  ASSERT_NE(map.Find("zone"), nullptr);
  EXPECT_EQ(map.Find("zone")->position.line, 2);
  EXPECT_EQ(map.Find("zon"), nullptr);
}

TEST(TextValue, Paths) {
  EXPECT_EQ(FieldPath("", "clusters"), "clusters");
  EXPECT_EQ(FieldPath(ItemPath("clusters", 2), "min_unit-A9"), "clusters[2].min_unit-A9");
  EXPECT_EQ(FieldPath("minUnit", "nvidia.com/gpu"), "minUnit[\"nvidia.com/gpu\"]");
  EXPECT_EQ(FieldPath("labels", ""), "labels[\"\"]");
  EXPECT_EQ(ItemPath("", 0), "[0]");
  EXPECT_EQ(FieldPath("a", std::string(1000, 'k')), "a." + std::string(64, 'k') + "...");
}

TEST(TextValue, ErrorsSayWhatIsKnown) {
  EXPECT_EQ(TextError("f.yaml", {.line = 7, .column = 14}, "a.b", "wrong").message(), "f.yaml:7:14: a.b: wrong");
  EXPECT_EQ(TextError("f.yaml", {}, "", "wrong").message(), "f.yaml: wrong");
  EXPECT_EQ(TextError("", {}, "a", "wrong").message(), "a: wrong");
  EXPECT_EQ(TextError("", {}, "", "wrong").message(), "wrong");
  EXPECT_EQ(TextError("f", {}, "", "x").code(), Code::kInvalidArgument);
}

TEST(TextValue, ErrorsAreOneShortPrintableLine) {
  EXPECT_EQ(TextError("", {}, "", "a\n\x1b[31mb").message(), "a\\x0a\\x1b[31mb");
  EXPECT_EQ(TextError("", {}, "", std::string(10'000, 'x')).message(), std::string(500, 'x') + "...");
}

}  // namespace
}  // namespace muster::model
