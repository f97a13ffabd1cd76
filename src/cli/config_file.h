// ConfigFile: the YAML file behind --config, as the values of options by their names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::cli {

using ConfigFile = std::map<std::string, std::vector<std::string>>;

// Reads a map of scalars and lists of scalars. A key that is not among `known` is refused with its position and the
// nearest name. INVALID_ARGUMENT for everything that is wrong with the file.
Result<ConfigFile> ReadConfigFile(const std::string& path, const std::vector<std::string>& known);

}  // namespace muster::cli
