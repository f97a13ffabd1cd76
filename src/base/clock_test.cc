#include "base/clock.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(VirtualClock, MovesBothClocksByHand) {
  const Now start{MonoTime(5s), WallTime(1000s)};
  VirtualClock clock(start);
  const Clock& port = clock;
  EXPECT_EQ(port.Read(), start);
  EXPECT_EQ(port.Read(), start);
  clock.Advance(250ms);
  EXPECT_EQ(port.Read(), (Now{MonoTime(5250ms), WallTime(1000250ms)}));
  clock.AdvanceTo(MonoTime(6s));
  EXPECT_EQ(port.Read(), (Now{MonoTime(6s), WallTime(1001s)}));
  EXPECT_EQ(VirtualClock().Read(), Now{});
}

TEST(VirtualClock, AWallJumpChangesNoAge) {
  VirtualClock clock({MonoTime(5s), WallTime(1000s)});
  clock.JumpWall(-600s);
  EXPECT_EQ(clock.Read(), (Now{MonoTime(5s), WallTime(400s)}));
  clock.JumpWall(3600s);
  clock.Advance(1s);
  EXPECT_EQ(clock.Read(), (Now{MonoTime(6s), WallTime(4001s)}));
}

TEST(VirtualClock, MonoTimeNeverGoesBack) {
  VirtualClock clock({MonoTime(5s), WallTime(1000s)});
  EXPECT_DEATH(clock.AdvanceTo(MonoTime(4s)), "mono time never goes back");
  EXPECT_DEATH(clock.Advance(-1ns), "mono time never goes back");
}

}  // namespace
}  // namespace muster
