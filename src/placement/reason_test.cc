#include "placement/reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

namespace muster::placement {
namespace {

// Programs and the operator's demand go by these names.
TEST(PlacementReason, NamesAreStable) {
  std::vector<std::string_view> names;
  for (const ReasonRow& row : ReasonTable()) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{
                       "fits",         "node.not-ready",    "node.stale",  "node.labels",   "node.type",
                       "fit.cpu",      "fit.memory",        "fit.disk",    "fit.resource",  "fit.device",
                       "port.taken",   "node.cordoned",     "node.taint",  "spread.key",    "spread.skew",
                       "colocate.key", "colocate.none",     "exclude.own", "exclude.other", "quota",
                       "placed",       "placed.preempting", "no-node"}));
}

TEST(PlacementReason, EveryValueHasItsOwnRow) {
  std::set<std::string_view> names;
  std::set<std::string_view> sentences;
  size_t number = 0;
  for (const ReasonRow& row : ReasonTable()) {
    EXPECT_EQ(static_cast<size_t>(row.reason), number++);
    EXPECT_EQ(ReasonName(row.reason), row.name);
    EXPECT_EQ(ReasonSentence(row.reason), row.sentence);
    EXPECT_FALSE(row.sentence.empty()) << row.name;
    EXPECT_EQ(FindReason(row.name), row.reason);
    names.insert(row.name);
    sentences.insert(row.sentence);
  }
  EXPECT_EQ(names.size(), number);
  EXPECT_EQ(sentences.size(), number);
  EXPECT_EQ(FindReason("no such reason"), std::nullopt);
}

}  // namespace
}  // namespace muster::placement
