#include "runtime/host_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "host/parser.h"
#include "model/names.h"
#include "model/volume_name.h"

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

namespace {

// Takes the options of a managed volume away, or says which one this node does not have.
Status ReadName(std::string& source) {
  const model::VolumeSource parts = model::SplitVolumeSource(source);
  if (!model::IsVolumeName(parts.name)) {
    return {Code::kInvalidArgument,
            fmt::format("volumes: {} is neither an absolute path nor the name of a volume", model::Quoted(source))};
  }
  for (const std::string_view option : host::SplitAt(parts.options, '&')) {
    if (option.empty() || option == "retain_policy=Retain") continue;  // as it is anyway
    return {Code::kInvalidArgument,
            fmt::format("volumes: {} asks for {}, which volumes of this node do not have; leave it out",
                        model::Quoted(parts.name), model::Quoted(option))};
  }
  source = std::string(parts.name);
  return {};
}

// weakly_canonical leaves a link whose target is missing as it is; the target may be there when the engine looks.
bool HasLink(const fs::path& path) {
  fs::path at;
  return std::ranges::any_of(path, [&](const fs::path& part) {
    at /= part;
    std::error_code error;
    return fs::is_symlink(fs::symlink_status(at, error));
  });
}

}  // namespace

Status AllowVolumes(std::vector<model::VolumeMount>& volumes, const std::vector<fs::path>& allowed) {
  for (model::VolumeMount& mount : volumes) {
    if (!mount.source.starts_with('/')) {
      MUSTER_RETURN_IF_ERROR(ReadName(mount.source));
      continue;
    }
    std::error_code error;
    const fs::path real = fs::weakly_canonical(mount.source, error);
    const bool inside = !error && !HasLink(real) && std::ranges::any_of(allowed, [&](const fs::path& root) {
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
