#include "host/system_clock.h"

#include <chrono>

namespace muster::host {

Now SystemClock::Read() const {
  return {.mono = MonoTime(std::chrono::steady_clock::now().time_since_epoch()),
          .wall = WallTime(std::chrono::system_clock::now().time_since_epoch())};
}

}  // namespace muster::host
