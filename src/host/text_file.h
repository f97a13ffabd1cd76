// Text files of people, read whole and under a size limit.
#pragma once

#include <string>

#include "base/status.h"
#include "model/text_value.h"

namespace muster::host {

// How errors name the file: its path, or "standard input" for "-".
std::string SourceName(const std::string& path);

// ", did you mean FILE?" for a path that does not exist and a file of its directory that is named almost so; else
// empty.
std::string NearestFile(const std::string& path);

// The content of a file, or of standard input for "-". A regular file larger than max_bytes is refused by its size,
// unread; anything else is read no further than the limit. INVALID_ARGUMENT when too large; NOT_FOUND,
// PERMISSION_DENIED or UNAVAILABLE when it cannot be read; NOT_FOUND names the nearest file that there is.
Result<std::string> ReadTextFile(const std::string& path, const model::TextLimits& limits = {});

// The file's one YAML (or JSON) document, as model::ReadYamlDocument reads it.
Result<model::TextValue> ReadYamlFile(const std::string& path, const model::TextLimits& limits = {});

}  // namespace muster::host
