// The verbs below `muster conformance`, one file each.
#pragma once

#include "cli/command_line.h"
#include "provider/conformance.h"

namespace muster::cli {

void AddConformanceAgent(Verb& conformance);
void AddConformanceStore(Verb& conformance);

// One rule and whether it holds, as lines of text or as a line of JSON.
void PrintCheck(const provider::CheckResult& result, bool json);

}  // namespace muster::cli
