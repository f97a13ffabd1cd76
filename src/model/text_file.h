// Reading a whole text file under a size limit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/text_value.h"

namespace muster::model {

// How errors name the file: its path, or "standard input" for "-".
std::string SourceName(const std::string& path);

// The content of a file, or of standard input for "-". A regular file larger than max_bytes is refused by its size,
// unread; anything else is read no further than the limit. INVALID_ARGUMENT when too large; NOT_FOUND,
// PERMISSION_DENIED or UNAVAILABLE when it cannot be read.
Result<std::string> ReadTextFile(const std::string& path, const TextLimits& limits = {});

// The refusal of `bytes`, which are more than the limit allows.
Status TooLarge(std::string_view source, size_t bytes, const TextLimits& limits);

}  // namespace muster::model
