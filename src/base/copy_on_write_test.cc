#include "base/copy_on_write.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace muster {
namespace {

using Numbers = CopyOnWrite<std::vector<int>>;

TEST(CopyOnWrite, CopiesShareUntilOneChanges) {
  Numbers first(std::vector{1, 2});
  EXPECT_TRUE(first.alone());
  Numbers second = first;
  EXPECT_TRUE(second.SharesWith(first));
  EXPECT_FALSE(first.alone());
  second.Edit().push_back(3);
  EXPECT_EQ(*first, (std::vector{1, 2}));
  EXPECT_EQ(*second, (std::vector{1, 2, 3}));
  EXPECT_TRUE(first.alone());
  const int* body = second->data();
  second.Edit().back() = 4;
  EXPECT_EQ(second->data(), body) << "alone, so changed in place";
  second.Clear();
  EXPECT_TRUE(second->empty());
}

TEST(CopyOnWrite, ComparesEncodesAndDescribesAsItsValue) {
  EXPECT_EQ(Numbers(std::vector{1}), Numbers(std::vector{1}));
  EXPECT_NE(Numbers(std::vector{1}), Numbers(std::vector{2}));
  EXPECT_EQ(Numbers(), Numbers(std::vector<int>()));
  for (const std::vector<int>& value : {std::vector<int>{}, std::vector<int>{5, 6}}) {
    const std::string bytes = codec::ToBytes(Numbers(value));
    EXPECT_EQ(bytes, codec::ToBytes(value)) << "data on disk does not know who shares";
    EXPECT_EQ(codec::FromBytes<Numbers>(bytes), Numbers(value));
    EXPECT_EQ(Describe(Numbers(value)), codec::Describe(value));
  }
  EXPECT_FALSE(codec::FromBytes<Numbers>("\xff").has_value());
}

}  // namespace
}  // namespace muster
