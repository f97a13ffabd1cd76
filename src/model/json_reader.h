// JSON lines: one object per line, read as a stream, for data too large for a document (fleets of 100,000 machines).
//
// Strict RFC 8259 JSON, UTF-8, without \u0000. Numbers keep their text, so nothing is rounded. A line longer than
// max_line_bytes, nested deeper than max_depth, holding a key twice or anything but one JSON object is refused with
// line, column and path. Empty lines are skipped. Memory is one line.
#pragma once

#include <cstddef>
#include <functional>
#include <istream>
#include <string_view>

#include "base/status.h"
#include "model/text_value.h"

namespace muster::model {

struct JsonLimits {
  size_t max_line_bytes = 1u << 20;  // of ReadJsonLines; ReadJson is given its text
  int max_depth = 64;
};

// One JSON value from `text`, all of it. `first_line` is the line number of its start.
Result<TextValue> ReadJson(std::string_view text, std::string_view source, int first_line = 1,
                           const JsonLimits& limits = {});

// Calls `row` for each line's object; stops at the first error, the reader's or the row's own. UNAVAILABLE when the
// stream breaks. `in` must not be set to throw.
Status ReadJsonLines(std::istream& in, std::string_view source, const std::function<Status(const TextValue&)>& row,
                     const JsonLimits& limits = {});

}  // namespace muster::model
