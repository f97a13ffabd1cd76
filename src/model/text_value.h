// TextValue: a document read from YAML or JSON, before it means anything.
//
// Scalars keep their text; what a scalar means is decided by the field that reads it, so `cpu: 010` or a zone called
// `no` never change behind the user's back. Every value knows where it stood, so that an error can say so.
//
// Two readers make it (yaml_reader.h, json_reader.h) and one class takes it apart (text_reader.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::model {

struct TextPosition {
  int line = 0;    // from 1; 0 = unknown
  int column = 0;  // from 1, in bytes
};

struct TextField;

struct TextValue {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  bool quoted = false;  // a scalar that was written in quotes: always a string, never a number, bool or null
  std::string scalar;
  std::vector<TextValue> items;   // kList
  std::vector<TextField> fields;  // kMap, in the order of the document, keys unique
  TextPosition position;

  // The field of this name or nullptr.
  const TextField* Find(std::string_view key) const;
};

struct TextField {
  std::string key;
  TextPosition position;  // of the key
  TextValue value;
};

std::string_view KindName(TextValue::Kind kind);  // "null", "a scalar", "a list", "a map"

// Paths name a value from the root: "clusters[2].needs[0].minUnit["nvidia.com/gpu"]". The root's own path is empty.
// Keys of letters, digits, '_' and '-' follow a point; others stand in quotes. Very long keys are cut.
std::string FieldPath(std::string_view parent, std::string_view key);
std::string ItemPath(std::string_view parent, size_t index);

// INVALID_ARGUMENT "case.yaml:12:7: clusters[2].needs[0].minUnit.cpu: <what>". An empty source, an unknown position and
// an empty path are left out. Always one line of printable text: control characters are escaped, long text is cut.
Status TextError(std::string_view source, TextPosition position, std::string_view path, std::string_view what);

// What both readers refuse, so that no file can take the machine down.
struct TextLimits {
  size_t max_bytes = 16u << 20;  // checked before anything is parsed
  int max_depth = 64;
};

// The refusal of `bytes` of text, which are more than max_bytes.
Status TextTooLarge(std::string_view source, size_t bytes, const TextLimits& limits);

}  // namespace muster::model
