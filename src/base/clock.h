// Clock: the port through which a host learns the time. host::SystemClock reads the machine's clocks; VirtualClock is
// moved by hand, in tests and in the simulator.
#pragma once

#include "base/check.h"
#include "base/time.h"

namespace muster {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now Read() const = 0;
};

// Not thread-safe: one thread moves it and reads it.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(Now start = {}) : now_(start) {}

  Now Read() const override { return now_; }

  void AdvanceTo(MonoTime when) {
    MUSTER_CHECK(when >= now_.mono, "mono time never goes back");
    now_.wall += when - now_.mono;
    now_.mono = when;
  }
  void Advance(Duration by) { AdvanceTo(now_.mono + by); }
  // A wall clock step (NTP, an operator's mistake): mono time does not move.
  void JumpWall(Duration by) { now_.wall += by; }

 private:
  Now now_;
};

}  // namespace muster
