// Self-check: what this machine can do for Muster, tried for real where that is possible. Behind `muster selfcheck`.
//
// Required: clocks, sqlite, grpc. Optional, only looked for: podman, libvirt, etcd, each needed by one feature.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::diagnostic {

struct CheckResult {
  std::string name;
  bool required = false;
  bool ok = false;
  std::string detail;  // what was found, or what is missing and what to do
};

// Runs every check, in a fixed order. Takes well under a second.
std::vector<CheckResult> SelfCheck();
// Every required check is ok.
bool Passed(std::span<const CheckResult> results);

// The parts, each with a sentence about what it found.
Result<std::string> CheckClocks(const Clock& clock);
// Writes and reads a row in a database in a temporary directory under `parent`, which is removed again.
Result<std::string> CheckSqlite(const std::filesystem::path& parent);
Result<std::string> CheckGrpc();
// The first of `programs` found in `path` (as in PATH, colons between directories).
Result<std::string> FindProgram(std::string_view path, std::span<const std::string_view> programs);

}  // namespace muster::diagnostic
