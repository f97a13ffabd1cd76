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
// Placements a second of a scheduler, its cost at rest, and its restart.
void AddBenchScheduler(Verb& bench);
// Commits and puts a second of a store, and how soon its watches know.
void AddBenchStore(Verb& bench);
// From an apply to a process that runs.
void AddBenchE2e(Verb& bench);

// A generated Kubernetes dump, and how long one takes to read.
void AddBenchDump(Verb& bench);

}  // namespace muster::cli
