// The verbs below `muster conformance`, one file each.
#pragma once

#include "cli/command_line.h"

namespace muster::cli {

void AddConformanceStore(Verb& conformance);

}  // namespace muster::cli
