// The guarded YAML reader: yaml-cpp behind limits, because it accepts far more than a configuration should.
//
// Refused, each with line, column and path: more than max_bytes, depth beyond max_depth, a key given twice, a key that
// is not a scalar, anchors and aliases (also merge keys), tags other than !!str, !!map and !!seq, bytes that are not
// UTF-8, control characters, text after a document that no --- announces, more than 1 MiB without a value (yaml-cpp
// holds a whole [...] or {...} in memory, at 230 bytes for each), anything yaml-cpp cannot parse.
// JSON passes too, up to max_bytes: text that begins with { or [ is tried as JSON first, which is also much faster.
// A byte order mark is skipped. ~, null and nothing at all, unquoted, are null.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/text_value.h"

namespace muster::model {

// All documents of `text` (separated by ---), without those that are empty or null. `source` names the input in errors.
Result<std::vector<TextValue>> ReadYaml(std::string_view text, std::string_view source, const TextLimits& limits = {});
// Exactly one document, as most files hold.
Result<TextValue> ReadYamlDocument(std::string_view text, std::string_view source, const TextLimits& limits = {});

}  // namespace muster::model
