// FreePorts: ports of the loopback interface that nothing listens on, for a program that must be told its ports before
// it starts. Another process may take one before that program does; the program then says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"

namespace muster::host {

// All different. UNAVAILABLE if the system gives none.
Result<std::vector<uint16_t>> FreePorts(size_t count);

}  // namespace muster::host
