// Which files of the node a container may mount: those below the paths that the node's operator allows, none by
// default. Names of volumes are the engine's own and allowed, but for those that belong to compose workloads.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/workload_template.h"

namespace muster::runtime {

// INVALID_ARGUMENT naming the source that is not allowed. What is allowed has its links resolved, so that the engine
// mounts what was judged: a link that a workload has made below an allowed path leads nowhere else.
Status AllowVolumes(std::vector<model::VolumeMount>& volumes, const std::vector<std::filesystem::path>& allowed);

// Whether `path` is `root` or below it; both absolute, without links and dots.
bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& root);

}  // namespace muster::runtime
