// What is wrong with the configuration file of a role, by the declarations of its settings.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "host/settings.h"

namespace muster::cli {

struct ConfigVerdict {
  size_t settings = 0;                // keys that are right
  std::vector<std::string> problems;  // "shard.yaml:3:1: cycle-interval must be ..."
  // Flags that the role cannot do without and the file does not have: they may be given otherwise. All else is checked,
  // what concerns several settings together too, if each alone is right.
  std::vector<std::string> missing;
};
// Gives the settings what the file says. An error is about the whole file.
Result<ConfigVerdict> CheckConfig(const std::string& path, host::Settings& settings);

}  // namespace muster::cli
