// The verbs below `muster bench`, one function and one file each; bench.cc calls them all.
#pragma once

#include "cli/command_line.h"

namespace muster::cli {

void AddBenchEngine(Verb& bench);
void AddBenchPlace(Verb& bench);
// Lists, changes since and parallel transitions of a provider of many machines.
void AddBenchProvider(Verb& bench);
// The planner on its shapes.
void AddBenchPlan(Verb& bench);
// Cycles, memory and processor time of a whole shard.
void AddBenchShard(Verb& bench);

}  // namespace muster::cli
