// The planner benchmark: one shape, planned again and again; a PlanLine for each effort.
//
// A shape from a dump is sampled from the dump that was read to the checked plan, the replay included; the line of a
// consolidation has the machines it buys, their cost, and in `saved_per_hour` what it saves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "planner/plan.h"

namespace muster::bench {

struct PlanOptions {
  std::string data_dir;
  planner::Effort effort = planner::Effort::kFast;
  double seconds = 2;   // of samples; at least one is taken
  bool replay = false;  // whether the replay is among the samples; it runs once in any case
};

struct PlanLine {
  std::string shape;
  std::string effort;
  size_t workloads = 0;
  size_t unplaced = 0;
  size_t machines = 0;        // without what the replay adds
  double cost_per_hour = 0;   // the same
  double bound_per_hour = 0;  // of the fractional cover
  double saved_per_hour = 0;  // of a consolidation
  size_t nodes_gone = 0;
  int64_t pending = 0;  // units that a default scheduler leaves pending on them
  int64_t added_machines = 0;
  double added_per_hour = 0;
  uint64_t steps = 0;
  std::vector<double> micros;      // from the request, or the dump, to the checked answer, in the order taken
  std::vector<double> cpu_micros;  // the same in processor time
  double read_seconds = 0;         // of a dump; 0: there is none
  double read_cpu_seconds = 0;
  double read_mb = 0;  // resident at most, when it was read
  uint64_t digest = 0;
};

// INVALID_ARGUMENT as MakePlanShape; INTERNAL if the checker refuses the plan or two runs of a request differ.
Result<PlanLine> RunPlanShape(std::string_view shape, const PlanOptions& options);

std::string ToJson(const PlanLine& line);  // one line, with its end
std::string PlanTableHead();
std::string TableRow(const PlanLine& line);

}  // namespace muster::bench
