// UTF-8: what the text readers ask of it before they parse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::model {

// Offset of the first byte that is not well-formed UTF-8 (also overlong forms, surrogates, beyond U+10FFFF), or npos.
size_t FindInvalidUtf8(std::string_view text);

// Appends one code point, which must be a scalar value (no surrogate, at most U+10FFFF).
void AppendUtf8(std::string& out, uint32_t code_point);

// The longest prefix of at most `max_bytes` that does not end inside a code point.
std::string_view Utf8Prefix(std::string_view text, size_t max_bytes);

// The text, or of one with more than `max_bytes` that prefix, and how long it was: "no roo ... (70000 bytes)".
std::string Shortened(std::string text, size_t max_bytes);

}  // namespace muster::model
