// BuildInfo: which build this is. `muster version`, /version and the metric muster_build_info tell it.
//
// The value is made in one generated file that only the program links (cmake/version.cmake) and handed down from main,
// so that a commit recompiles that file and nothing else.
#pragma once

#include <string>

namespace muster::host {

struct BuildInfo {
  std::string version;     // "0.1.0"
  std::string commit;      // the git commit, or "unknown" outside a checkout
  std::string compiler;    // "GNU 12.2.0"
  std::string build_type;  // "Release"
  bool faults = false;     // PROBE, MUTANT and CRASH_POINT are compiled in

  // One JSON object with these fields.
  std::string ToJson() const;
};

}  // namespace muster::host
