#include "cli/cluster_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "cli/plan_files.h"
#include "host/text_file.h"

namespace muster::cli {

Result<model::WorkloadFile> ReadWorkloadFiles(const std::vector<std::string>& paths) {
  if (paths.empty()) return InvalidArgument("-f is missing; name a workload file, or - for standard input");
  model::WorkloadFile all;
  for (const std::string& given : paths) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> files, ExpandPath(given));
    for (const std::string& path : files) {
      MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(path));
      MUSTER_ASSIGN_OR_RETURN(model::WorkloadFile file, model::ReadWorkloadFile(text, host::SourceName(path)));
      std::ranges::move(file.workloads, std::back_inserter(all.workloads));
      std::ranges::move(file.quotas, std::back_inserter(all.quotas));
    }
  }
  if (all.workloads.empty() && all.quotas.empty()) return InvalidArgument("the files declare nothing");
  return all;
}

std::string ObjectName(const model::WorkloadSpec& spec) {
  const std::string_view kind = spec.kind == model::WorkloadKind::kWorkload ? "workload"
                                : spec.kind == model::WorkloadKind::kSet    ? "set"
                                                                            : "job";
  return fmt::format("{}/{}", kind, spec.name);
}

Status About(const Status& status, const std::string& object) {
  return {status.code(), fmt::format("{}: {}", object, status.message())};
}

}  // namespace muster::cli
