// What an apply would change in each object of files, field by field: `muster diff`, and the head of a live plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/document.h"
#include "cli/halves.h"
#include "contract/cluster.h"
#include "model/workload.h"

namespace muster::cli {

// A field whose value differs; a side that lacks it is empty.
struct FieldChange {
  std::string field;
  std::string before;
  std::string after;
};

// How many members a set has, will have, and gets anew because their template changes.
struct Members {
  int32_t before = 0;
  int32_t after = 0;
  int32_t replaced = 0;
};

struct ObjectDiff {
  std::string object;  // "set/web"
  contract::ApplyResult result = contract::ApplyResult::kUnchanged;
  std::vector<FieldChange> fields;
  std::optional<Members> members;
};

// A plain workload as a file would declare it.
model::WorkloadSpec SpecOf(const contract::WorkloadView& view);

// The scheduler itself says what an apply would do (a dry run); the fields say why.
Result<ObjectDiff> DiffOf(Halves& halves, const model::WorkloadSpec& spec);
Result<ObjectDiff> DiffOf(Halves& halves, const model::Quota& quota);

std::string DiffText(const ObjectDiff& diff);  // lines, each fit for a terminal
Document DiffDocument(const ObjectDiff& diff);

}  // namespace muster::cli
