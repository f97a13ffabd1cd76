// Workload files: workloads, sets, jobs and quotas from YAML or JSON. docs/workloads.md lists the keys.
//
// Several documents in a file, one object each. Unknown keys, missing ones and values that make no sense are errors
// with file, line, column and path; so are two objects that would own the same workload id.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/text_reader.h"
#include "model/workload.h"

namespace muster::model {

struct WorkloadFile {
  std::vector<WorkloadSpec> workloads;  // in the order of the file
  std::vector<Quota> quotas;

  bool operator==(const WorkloadFile&) const = default;
};

// All documents of `text`. `source` names it in errors.
Result<WorkloadFile> ReadWorkloadFile(std::string_view text, std::string_view source);

// The keys below `template`; refuses unknown ones.
WorkloadTemplate ReadWorkloadTemplate(TextReader& reader, WorkloadKind kind);

}  // namespace muster::model
