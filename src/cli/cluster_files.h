// The workload files of `muster apply`, `diff`, `delete` and a live `muster plan`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "model/workload_decode.h"

namespace muster::cli {

// Every path: a file, a directory of them, or - for standard input. All are read and valid, or it is an error; files
// that declare nothing are one too.
Result<model::WorkloadFile> ReadWorkloadFiles(const std::vector<std::string>& paths);

// "set/web", "job/night", "workload/db".
std::string ObjectName(const model::WorkloadSpec& spec);

// The error with the object it is about.
Status About(const Status& status, const std::string& object);

}  // namespace muster::cli
