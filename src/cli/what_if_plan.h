// A what-if about files: a Kubernetes dump or workload files with a catalogue, and the case files of `muster decide`.
// Nothing runs; the planner or the engine answers twice, without and with the event.
#pragma once

#include "base/status.h"
#include "cli/document.h"
#include "cli/live_run.h"
#include "cli/plan_files.h"
#include "engine/case_file.h"

namespace muster::cli {

struct FileAnswer {
  std::string text;
  Document document = Document::Map();
  bool changes = false;
};

// Nodes of lost zones and types go, and their units need others; what is bought beside those that stay is planned.
Result<FileAnswer> WhatIfOfPlan(const PlanQuestion& question, const Event& event);

// The case runs to its end, then the event happens and cycles follow until nothing is done any more. `demand_of` reads
// the labels "cluster" and "need" (its name in the file).
Result<FileAnswer> WhatIfOfCase(const engine::Case& input, const Event& event);

}  // namespace muster::cli
