#include "model/resources.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>

#include "base/codec.h"

namespace muster::model {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Resources, ParsesSortedAndWithoutZeros) {
  Resources resources;
  EXPECT_TRUE(resources.Parse("memory", "16Gi").ok());
  EXPECT_TRUE(resources.Parse("cpu", "250m").ok());
  EXPECT_TRUE(resources.Parse("nvidia.com/gpu", "0").ok());
  EXPECT_EQ(resources, (Resources{{"cpu", 250}, {"memory", 17'179'869'184'000}}));
  EXPECT_EQ(resources.entries().front().first, "cpu");
  EXPECT_EQ(resources.Get("memory"), 17'179'869'184'000);
  EXPECT_EQ(resources.Get("nvidia.com/gpu"), 0);
  EXPECT_EQ(resources.ToString(), "cpu=250m memory=16Gi");
  EXPECT_EQ(Resources{}.ToString(), "nothing");
  EXPECT_EQ(codec::FromBytes<Resources>(codec::ToBytes(resources)), resources);
}

TEST(Resources, RefusesNamingTheDimension) {
  Resources resources{{"cpu", 1000}};
  EXPECT_EQ(resources.Parse("cpu", "2").message(), "cpu: given twice; keep one of the two");
  EXPECT_TRUE(resources.Parse("memory", "1Kib").message().starts_with("memory: quantity \"1Kib\": "));
  EXPECT_TRUE(resources.Parse("memory", "-1").message().starts_with("memory: -1 is negative"));
  EXPECT_TRUE(resources.Parse("", "1").message().starts_with("a resource has no name"));
  EXPECT_EQ(resources, (Resources{{"cpu", 1000}}));
}

TEST(Resources, SetReplacesAndRemoves) {
  Resources resources{{"b", 1}, {"a", 2}, {"c", 0}};
  EXPECT_EQ(resources.entries().size(), 2u);
  resources.Set("a", 5);
  EXPECT_EQ(resources.Get("a"), 5);
  resources.Set("a", 0);
  resources.Set("absent", 0);
  EXPECT_EQ(resources, (Resources{{"b", 1}}));
  EXPECT_DEATH(resources.Set("b", -1), "b=-1m");
}

TEST(Resources, Covers) {
  const Resources machine{{"cpu", 4000}, {"memory", 100}};
  EXPECT_TRUE(machine.Covers({}));
  EXPECT_TRUE(machine.Covers(machine));
  EXPECT_TRUE(machine.Covers({{"cpu", 3999}}));
  EXPECT_FALSE(machine.Covers({{"cpu", 4001}}));
  EXPECT_FALSE(machine.Covers({{"gpu", 1}}));
  EXPECT_FALSE(Resources{}.Covers({{"cpu", 1}}));
}

TEST(Resources, OverflowNamesTheDimension) {
  const Resources much{{"cpu", 1}, {"memory", kMax}};
  const auto sum = Add(much, {{"cpu", 1}, {"memory", 1}});
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code(), Code::kOutOfRange);
  EXPECT_TRUE(sum.error().message().starts_with("memory: ")) << sum.error().message();
  EXPECT_EQ(Add(much, {{"cpu", 1}}), (Resources{{"cpu", 2}, {"memory", kMax}}));
  const auto product = Scale(much, 2);
  ASSERT_FALSE(product);
  EXPECT_EQ(product.error().code(), Code::kOutOfRange);
  EXPECT_TRUE(product.error().message().starts_with("memory: ")) << product.error().message();
  EXPECT_EQ(Scale(much, 0), Resources{});
}

using Amounts = std::map<std::string, int64_t>;

// Small amounts, so that equal ones and zeros are common.
Amounts AnyAmounts() {
  Amounts amounts;
  for (const std::string name : {"cpu", "disk", "gpu", "memory", "z"}) amounts[name] = *rc::gen::inRange(0, 6);
  return amounts;
}
Resources ToResources(const Amounts& amounts) {
  Resources resources;
  for (const auto& [name, milli] : amounts) resources.Set(name, milli);
  return resources;
}

// Every operation against the same one done per name on maps where absent is zero.
RC_GTEST_PROP(Resources, EqualsArithmeticPerDimension, ()) {
  for (int i = 0; i < 20; ++i) {
    Amounts a = AnyAmounts();
    Amounts b = AnyAmounts();
    const Resources left = ToResources(a);
    const Resources right = ToResources(b);
    const int64_t count = *rc::gen::inRange<int64_t>(0, 10);
    Resources sum, rest, larger, scaled;
    bool covers = true;
    for (const std::string name : {"cpu", "disk", "gpu", "memory", "z"}) {
      const int64_t x = a[name];
      const int64_t y = b[name];
      sum.Set(name, x + y);
      rest.Set(name, std::max<int64_t>(x - y, 0));
      larger.Set(name, std::max(x, y));
      scaled.Set(name, x * count);
      covers = covers && x >= y;
    }
    RC_ASSERT((Add(left, right) == sum));
    RC_ASSERT(SubtractSaturating(left, right) == rest);
    RC_ASSERT(Max(left, right) == larger);
    RC_ASSERT((Scale(left, count) == scaled));
    RC_ASSERT(left.Covers(right) == covers);
  }
}

}  // namespace
}  // namespace muster::model
