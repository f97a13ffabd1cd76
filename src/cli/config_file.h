// ConfigFile: the YAML file behind --config, as the values of options by their names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/text_value.h"

namespace muster::cli {

using ConfigFile = std::map<std::string, std::vector<std::string>>;

// One key of the file, as it stands there.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;
  model::TextPosition position;  // of the key
};
struct ConfigEntries {
  std::vector<ConfigEntry> entries;  // in the order of the file
  std::vector<Status> problems;      // of the other keys, with file and line
};
// The same key by key. An error is about the whole file: it cannot be read, or is no map.
Result<ConfigEntries> ReadConfigEntries(const std::string& path, const std::vector<std::string>& known);

// Reads a map of scalars and lists of scalars. A key that is not among `known` is refused with its position and the
// nearest name. INVALID_ARGUMENT for everything that is wrong with the file.
Result<ConfigFile> ReadConfigFile(const std::string& path, const std::vector<std::string>& known);

}  // namespace muster::cli
