// The requests of `muster bench plan`, as docs/benchmarks.md has them.
//
// plan-51k is made from its formula alone. The others read pods or prices from CSV files that are not part of the
// repository: the directory is given with --data. The pods of the plan-dump shapes come from a generated dump
// (plan_dump.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "planner/plan.h"

namespace muster::bench {

struct PlanShape {
  std::string_view name;
  bool needs_data = false;
  bool from_dump = false;
};

std::span<const PlanShape> PlanShapes();

// The types of plan-ec2 without zones: sold in every zone that there is.
Result<planner::Catalogue> Ec2Catalogue(const std::string& data_dir);

// Of a shape that is not from a dump. INVALID_ARGUMENT without a directory where the shape needs one, or if a file of
// it cannot be understood.
Result<planner::Request> MakePlanShape(std::string_view name, const std::string& data_dir);

}  // namespace muster::bench
