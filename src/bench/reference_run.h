// The reference engine under the meter: one cycle from nothing, machines and needs included, because it keeps nothing.
#pragma once

#include <functional>

#include "bench/setup.h"

namespace muster::bench {

// INVALID_ARGUMENT if machines times needs would take it minutes.
Status RunReference(const Setup& setup, const std::function<void(const Line&)>& see);

}  // namespace muster::bench
