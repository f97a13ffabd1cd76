#include "rpc/shared_texts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace muster::rpc {
namespace {

WireMap WireOf(const model::TextMap& map) {
  WireMap wire;
  WriteMap(map, wire);
  return wire;
}

TEST(SharedTexts, EqualMapsShareOneBodyAndOthersDoNot) {
  SharedTexts texts;
  const model::TextMap first = texts.Map(WireOf({{"rack", "r1"}, {"tier", "gold"}}));
  const model::TextMap again = texts.Map(WireOf({{"tier", "gold"}, {"rack", "r1"}}));
  const model::TextMap other = texts.Map(WireOf({{"rack", "gold"}, {"tier", "r1"}}));
  EXPECT_EQ(first, (model::TextMap{{"rack", "r1"}, {"tier", "gold"}}));
  EXPECT_TRUE(first.SharesWith(again));
  EXPECT_NE(first, other);
  EXPECT_EQ(other, (model::TextMap{{"rack", "gold"}, {"tier", "r1"}}));
  EXPECT_TRUE(texts.Map(WireMap()).empty());
  EXPECT_EQ(texts.size(), 2u);
}

TEST(SharedTexts, ResourcesAreReadOnceAndErrorsNameTheirOwnPath) {
  SharedTexts texts;
  const WireMap good = WireOf({{"cpu", "4"}, {"memory", "16Gi"}});
  const auto read = texts.Resources(good, "machines[0]", "resources");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->Get("cpu"), 4000);
  const auto again = texts.Resources(good, "machines[1]", "resources");
  EXPECT_EQ(again, read);
  EXPECT_FALSE(again->alone());
  EXPECT_EQ(texts.Resources(WireMap(), "machines[2]", "resources"), model::Resources());
  for (const char* path : {"machines[3]", "machines[4]"}) {
    const auto bad = texts.Resources(WireOf({{"cpu", "-4"}}), path, "allocatable");
    ASSERT_FALSE(bad.has_value());
    EXPECT_TRUE(bad.error().message().starts_with(fmt::format("{}.allocatable.cpu: ", path))) << bad.error().message();
  }
}

TEST(SharedTexts, AChangedCopyLeavesTheOthersAlone) {
  SharedTexts texts;
  const WireMap wire = WireOf({{"rack", "r1"}});
  model::TextMap mine = texts.Map(wire);
  mine["rack"] = "r2";
  EXPECT_EQ(texts.Map(wire).at("rack"), "r1");
  model::Resources more = *texts.Resources(WireOf({{"cpu", "1"}}), "", "");
  more.Set("cpu", 2000);
  EXPECT_EQ(texts.Resources(WireOf({{"cpu", "1"}}), "", "")->Get("cpu"), 1000);
}

// What nobody has any more does not pile up; what somebody has stays shared.
TEST(SharedTexts, TheTableFollowsWhatIsWanted) {
  SharedTexts texts;
  const WireMap kept_wire = WireOf({{"kept", "yes"}});
  const model::TextMap kept = texts.Map(kept_wire);
  const auto kept_resources = texts.Resources(WireOf({{"cpu", "7"}}), "", "");
  for (int i = 0; i < 100'000; ++i) texts.Map(WireOf({{"n", fmt::format("{}", i)}}));
  EXPECT_LT(texts.size(), 3000u);
  EXPECT_TRUE(texts.Map(kept_wire).SharesWith(kept));
  EXPECT_FALSE(kept_resources->alone());
}

}  // namespace
}  // namespace muster::rpc
