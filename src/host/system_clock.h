// SystemClock: the machine's clocks behind the Clock port. The one place of the product that reads real time.
//
// Thread-safety: Read may be called from any thread.
#pragma once

#include "base/clock.h"

namespace muster::host {

class SystemClock final : public Clock {
 public:
  // `mono` counts from an arbitrary point, the same for all processes until the machine restarts.
  Now Read() const override;
};

}  // namespace muster::host
