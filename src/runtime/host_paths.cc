#include "runtime/host_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace muster::runtime {

namespace fs = std::filesystem;

bool IsBelow(const fs::path& path, const fs::path& root) {
  // The end of a root such as "/srv/" is an empty part.
  auto part = path.begin();
  for (const fs::path& wanted : root) {
    if (wanted.empty()) continue;
    if (part == path.end() || *part != wanted) return false;
    ++part;
  }
  return true;
}

Status AllowVolumes(std::vector<model::VolumeMount>& volumes, const std::vector<fs::path>& allowed) {
  for (model::VolumeMount& mount : volumes) {
    if (!mount.source.starts_with('/')) {
      if (!mount.source.starts_with("muster-")) continue;
      return {Code::kInvalidArgument, fmt::format("volumes: \"{}\" belongs to another workload", mount.source)};
    }
    std::error_code error;
    const fs::path real = fs::weakly_canonical(mount.source, error);
    const bool inside = !error && std::ranges::any_of(allowed, [&](const fs::path& root) {
      std::error_code missing;
      const fs::path real_root = fs::canonical(root, missing);
      return !missing && IsBelow(real, real_root);
    });
    if (!inside) {
      return {
          Code::kInvalidArgument,
          fmt::format("volumes: this node does not let containers mount \"{}\"; --host-paths of its agent allows paths",
                      mount.source)};
    }
    mount.source = real.string();
  }
  return {};
}

}  // namespace muster::runtime
