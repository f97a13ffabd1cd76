// Which files of the node a container may mount: those below the paths that the node's operator allows, none by
// default. A source that is no absolute path must be the name of a volume: engines take "." and "../x" for paths.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/workload_template.h"

namespace muster::runtime {

// INVALID_ARGUMENT naming the source that is not allowed, or the option of a managed volume that this node does not
// have. What is allowed has its links resolved, so that the engine mounts what was judged: a link that a workload has
// made below an allowed path leads nowhere else. Names are left without options.
Status AllowVolumes(std::vector<model::VolumeMount>& volumes, const std::vector<std::filesystem::path>& allowed);

// Whether `path` is `root` or below it; both absolute, without links and dots.
bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& root);

}  // namespace muster::runtime
