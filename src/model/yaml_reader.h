// The guarded YAML reader: yaml-cpp behind limits, because it accepts far more than a configuration should.
//
// Refused, each with line, column and path: more than max_bytes, depth beyond max_depth, a key given twice, a key that
// is not a scalar, anchors and aliases (also merge keys), tags other than the core ones, anything yaml-cpp cannot
// parse. JSON is YAML, so JSON files pass too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/text_value.h"

namespace muster::model {

// All documents of `text` (separated by ---); none for empty text. `source` names the input in errors.
Result<std::vector<TextValue>> ReadYaml(std::string_view text, std::string_view source, const TextLimits& limits = {});
// Exactly one document, as most files hold.
Result<TextValue> ReadYamlDocument(std::string_view text, std::string_view source, const TextLimits& limits = {});
// Reads the file (or standard input for "-") and then as ReadYamlDocument. A larger file is refused by its size,
// unread.
Result<TextValue> ReadYamlFile(const std::string& path, const TextLimits& limits = {});

}  // namespace muster::model
