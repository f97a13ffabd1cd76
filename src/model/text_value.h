// TextValue: a document read from YAML or JSON, before it means anything.
//
// Scalars keep their text; what a scalar means is decided by the field that reads it, so `cpu: 010` or a zone called
// `no` never change behind the user's back. Every value knows where it stood, so that an error can say so.
//
// Two readers make it (yaml_reader.h, json_reader.h) and one class reads it (TextReader below):
//
//   TextReader root("case.yaml", value);
//   auto price = root.Field("machines").Item(0).Field("price").Required<Money>(ParseMoney);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace muster::model {

struct TextPosition {
  int line = 0;    // from 1; 0 = unknown
  int column = 0;  // from 1, in bytes
};

struct TextValue {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  bool quoted = false;  // a scalar that was written in quotes: always a string, never a number, bool or null
  std::string scalar;
  std::vector<TextValue> items;                           // kList
  std::vector<std::pair<std::string, TextValue>> fields;  // kMap, in the order of the document, keys unique
  TextPosition position;

  // The field's value or nullptr.
  const TextValue* Find(std::string_view key) const;
};

std::string_view KindName(TextValue::Kind kind);  // "null", "a scalar", "a list", "a map"

// "case.yaml:12:7: clusters[2].needs[0].minUnit.cpu: <what>". `source` may be empty.
Status TextError(std::string_view source, TextPosition position, std::string_view path, std::string_view what);

// What both readers refuse, so that no file can take the machine down.
struct TextLimits {
  size_t max_bytes = 16u << 20;  // checked before anything is parsed
  int max_depth = 64;
};

}  // namespace muster::model
