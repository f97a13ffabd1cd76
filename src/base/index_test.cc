#include "base/index.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace muster {
namespace {

using RowIndex = Index<struct RowTag>;
using OtherIndex = Index<struct OtherTag>;

static_assert(!std::is_convertible_v<RowIndex, OtherIndex> && !std::is_convertible_v<uint32_t, RowIndex>);
static_assert(!std::is_constructible_v<RowIndex, OtherIndex>);
static_assert(RowIndex(1) < RowIndex(2) && RowIndex::Of(7).value() == 7);

TEST(Index, TheDefaultIsInvalid) {
  EXPECT_FALSE(RowIndex().valid());
  EXPECT_TRUE(RowIndex(0).valid());
  EXPECT_TRUE(RowIndex::Of(RowIndex::kInvalid - 1).valid());
  EXPECT_DEATH(RowIndex::Of(RowIndex::kInvalid), "do not fit a 32-bit index");
}

TEST(IndexVector, OpensWithItsOwnIndexInRange) {
  IndexVector<RowIndex, std::string> rows;
  EXPECT_TRUE(rows.empty());
  const RowIndex first = rows.push_back("a");
  const RowIndex second = rows.push_back("b");
  rows[second] += "!";
  EXPECT_EQ(rows[first], "a");
  EXPECT_EQ(rows[second], "b!");
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows.contains(second));
  EXPECT_FALSE(rows.contains(RowIndex(2)));
  EXPECT_FALSE(rows.contains(RowIndex()));
  EXPECT_DEATH(rows[RowIndex(2)], "index 2 of 2");
  EXPECT_DEATH(rows[RowIndex()], "of 2");
  std::string all;
  for (const std::string& row : rows) all += row;
  EXPECT_EQ(all, "ab!");
  rows.resize(3);
  EXPECT_EQ(rows[RowIndex(2)], "");
  rows.clear();
  EXPECT_TRUE(rows.empty());
}

}  // namespace
}  // namespace muster
