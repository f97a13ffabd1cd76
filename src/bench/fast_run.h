// The fast engine under the meter.
#pragma once

#include <functional>

#include "bench/setup.h"

namespace muster::bench {

// Cold, full and, where the plan says so, warm; or the list and a change to it.
Status RunFast(Setup& setup, const std::function<void(const Line&)>& see);

}  // namespace muster::bench
