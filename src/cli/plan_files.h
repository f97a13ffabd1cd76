// The files of `muster plan`, `muster place` and `muster explain --plan`: dumps, workload files and a catalogue.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command_line.h"
#include "cli/progress.h"
#include "kube/dump.h"
#include "kube/plan_request.h"
#include "model/workload_decode.h"
#include "planner/consolidate.h"

namespace muster::cli {

// The .json, .yaml and .yml files of a directory, by name; another path is itself. INVALID_ARGUMENT for a directory
// without any.
Result<std::vector<std::string>> ExpandPath(const std::string& path);

struct UnitFiles {
  kube::Dump dump;  // empty if there was none
  bool has_dump = false;
  std::vector<model::WorkloadFile> workloads;
};

// Every path: a file, a directory of *.json, *.yaml and *.yml, or - for standard input. JSON that begins with { is a
// Kubernetes dump, anything else a workload file. Shows progress beyond two seconds.
Result<UnitFiles> ReadUnitFiles(const std::vector<std::string>& paths);

// Whether one of the paths holds a Kubernetes dump. Standard input is taken for a workload file.
Result<bool> HasDump(const std::vector<std::string>& paths);

// The options that say what to plan; the same for `plan` and `explain --plan`.
struct PlanFlags {
  std::vector<std::string> files;
  std::vector<std::string> nodes;
  std::string catalogue;
  std::string keep;  // empty: nodes if there are any
  std::string effort = "fast";
  std::string allow;
  std::string assume_requests;
  bool exact = false;
};
void AddPlanFlags(Verb& verb, PlanFlags& flags);

struct PlanQuestion {
  kube::PlanInput input;
  std::string catalogue_source;
};
Result<PlanQuestion> ReadPlanQuestion(const PlanFlags& flags);

// The plan or the consolidation, with progress beyond two seconds of the clock.
Result<planner::Plan> RunPlan(planner::Request& request, const Progress::Clock& clock = std::chrono::steady_clock::now);
Result<planner::Consolidation> RunConsolidation(planner::Request& request);

}  // namespace muster::cli
