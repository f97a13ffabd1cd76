// Time as cores see it. A core never reads a clock: its host hands it `Now` with every event.
//
// Ages, deadlines and holds are differences of MonoTime, which never goes back. WallTime is for people, the wire and
// the disk only: setting the wall clock changes no age.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/fields.h"

namespace muster {

using Duration = std::chrono::nanoseconds;
using namespace std::chrono_literals;

namespace time_internal {
template <bool kSteady>
struct Epoch {  // a tag: it has no now(), so nothing can read it
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  static constexpr bool is_steady = kSteady;
};
}  // namespace time_internal

using MonoTime = std::chrono::time_point<time_internal::Epoch<true>, Duration>;
using WallTime = std::chrono::time_point<time_internal::Epoch<false>, Duration>;  // since 1970, UTC

struct Now {
  MonoTime mono;
  WallTime wall;

  bool operator==(const Now&) const = default;
  MUSTER_FIELDS(Now, mono, wall)
};

}  // namespace muster
