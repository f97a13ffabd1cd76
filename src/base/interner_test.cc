#include "base/interner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

namespace muster {
namespace {

using NameIndex = Index<struct NameTag>;
using Names = Interner<NameIndex>;

TEST(Interner, DenseInOrderOfFirstSight) {
  Names names;
  EXPECT_EQ(names.Intern("b"), NameIndex(0));
  EXPECT_EQ(names.Intern("a"), NameIndex(1));
  EXPECT_EQ(names.Intern("b"), NameIndex(0));
  EXPECT_EQ(names.Intern(""), NameIndex(2));
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(names.Text(NameIndex(1)), "a");
  EXPECT_EQ(names.Find("a"), NameIndex(1));
  EXPECT_FALSE(names.Find("c").valid());
  EXPECT_EQ(names.size(), 3u);
  EXPECT_DEATH(names.Text(NameIndex(3)), "index 3 of 3");
  EXPECT_DEATH(names.Text(NameIndex()), "of 3");
}

TEST(Interner, KeepsAddressesWhileItGrowsAndWhenItMoves) {
  Names names;
  std::vector<std::string_view> views;
  for (int i = 0; i < 10'000; ++i) views.push_back(names.Text(names.Intern(fmt::format("name-{}", i))));
  const Names moved = std::move(names);
  for (uint32_t i = 0; i < views.size(); ++i) {
    ASSERT_EQ(moved.Text(NameIndex(i)).data(), views[i].data());
    ASSERT_EQ(moved.Find(fmt::format("name-{}", i)), NameIndex(i));
  }
  static_assert(!std::is_copy_constructible_v<Names> && !std::is_copy_assignable_v<Names>);
}

}  // namespace
}  // namespace muster
