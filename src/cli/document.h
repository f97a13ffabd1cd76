// Document: an answer as a tree of values, written as JSON or YAML.
//
//   Document::Map().Add("unit", "shop/web-1").Add("cost", Document::Dollars(price)).ToJson()
//
// Keys appear in the order of Add; the caller keeps them distinct. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/money.h"

namespace muster::cli {

class Document {
 public:
  Document(std::string_view text);  // NOLINT(google-explicit-constructor): a text is one of these, and so the next
  Document(const std::string& text) : Document(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  Document(const char* text) : Document(std::string_view(text)) {}         // NOLINT(google-explicit-constructor)
  Document(int64_t number);                                                // NOLINT(google-explicit-constructor)
  Document(bool value);                                                    // NOLINT(google-explicit-constructor)

  static Document Null();
  static Document List() { return Document(Kind::kList); }
  static Document Map() { return Document(Kind::kMap); }
  // Dollars as a number, exact to a millionth.
  static Document Dollars(model::Money money);
  static Document Number(double number);  // finite

  Document& Add(std::string_view key, Document value);  // of a map
  Document& Add(Document value);                        // of a list

  // Everything below a map that is no map itself, by the path of its keys ("template.env.PORT"), as JSON writes it. A
  // list is one value.
  std::vector<std::pair<std::string, std::string>> Leaves() const;

  std::string ToJson() const;  // one line, without a newline at its end
  std::string ToYaml() const;  // ends with a newline

 private:
  enum class Kind : uint8_t { kScalar, kList, kMap };
  explicit Document(Kind kind) : kind_(kind) {}
  void WriteYaml(std::string& out, size_t indent) const;
  void AddLeaves(const std::string& path, std::vector<std::pair<std::string, std::string>>& leaves) const;
  bool is_block() const { return kind_ != Kind::kScalar && !fields_.empty(); }

  Kind kind_ = Kind::kScalar;
  std::string scalar_;                                    // as JSON writes it
  std::vector<std::pair<std::string, Document>> fields_;  // keys are empty in a list
};

// Documents one after the other: as JSON one line each, as YAML the documents of one stream.
class DocumentStream {
 public:
  explicit DocumentStream(bool yaml) : yaml_(yaml) {}
  // The next one, as it is to be printed.
  std::string Add(const Document& document);

 private:
  const bool yaml_;
  bool begun_ = false;
};

}  // namespace muster::cli
