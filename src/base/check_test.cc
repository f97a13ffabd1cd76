#include "base/check.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Check, PassesAndEvaluatesOnce) {
  int evaluated = 0;
  MUSTER_CHECK(++evaluated == 1);
  MUSTER_CHECK(evaluated == 1, "evaluated {} times", evaluated);
}

TEST(Check, DiesWithConditionPlaceAndMessage) {
  const int index = 7;
  EXPECT_DEATH(MUSTER_CHECK(index < 5, "index {} of {}", index, 5),
               "check_test.cc:[0-9]+: check failed: index < 5: index 7 of 5");
  EXPECT_DEATH(MUSTER_CHECK(index < 5), "check failed: index < 5\n");
}

}  // namespace
}  // namespace muster
