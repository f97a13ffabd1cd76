#include "host/system_clock.h"

#include <gtest/gtest.h>

#include <ctime>

namespace muster::host {
namespace {

TEST(SystemClock, MonoNeverGoesBack) {
  const SystemClock clock;
  MonoTime last = clock.Read().mono;
  for (int i = 0; i < 10'000; ++i) {
    const MonoTime next = clock.Read().mono;
    ASSERT_GE(next, last);
    last = next;
  }
  EXPECT_GT(last.time_since_epoch(), 0ns);
}

TEST(SystemClock, WallIsTimeSince1970) {
  const std::time_t before = std::time(nullptr);
  const auto wall = std::chrono::duration_cast<std::chrono::seconds>(SystemClock().Read().wall.time_since_epoch());
  // time() may come from a coarser clock that lags a tick behind.
  EXPECT_GE(wall.count(), before);
  EXPECT_LE(wall.count(), std::time(nullptr) + 1);
}

}  // namespace
}  // namespace muster::host
