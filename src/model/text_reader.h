// TextReader: takes a TextValue apart, field by field, with an error that says where.
//
// It remembers the first error and turns every later call into a no-op, so that reading a structure is a straight list
// of lines with one check at the end. Fields nobody asked for are errors too, with the nearest known name as a hint.
//
//   TextErrors errors("case.yaml");
//   TextReader root(errors, value);
//   Money price;
//   root.Field("price").Read(price, ParseMoney);          // optional: absent leaves `price` as it is
//   root.Field("id").Require().Read(id);                  // required
//   for (TextReader item : root.Field("needs").List()) ReadNeed(item);
//   root.RefuseUnknown();                                 // every field not asked for above is an error
//   return errors.status();
//
// A field that is null (`labels:` with nothing after it) counts as absent.
//
// Thread-safety: none. A reader must not outlive its value or its TextErrors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/resources.h"
#include "model/text_map.h"
#include "model/text_scalars.h"
#include "model/text_value.h"

namespace muster::model {

class TextErrors {
 public:
  explicit TextErrors(std::string source) : source_(std::move(source)) {}
  void Add(TextPosition position, std::string_view path, std::string_view what);
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  std::string source_;
  Status status_;  // the first error
};

class TextReader {
 public:
  TextReader(TextErrors& errors, const TextValue& value);

  bool present() const { return value_ != nullptr; }
  bool is_map() const { return present() && value_->kind == TextValue::Kind::kMap; }
  bool ok() const { return errors_->ok(); }  // no error anywhere so far
  const std::string& path() const { return path_; }
  TextPosition position() const { return position_; }

  // The field of a map; absent fields give a reader that is not present. Not a map: an error.
  TextReader Field(std::string_view key);
  // The items of a list, none if absent. Not a list: an error.
  std::vector<TextReader> List();
  // The entries of a map, none if absent. Not a map: an error.
  std::vector<std::pair<std::string, TextReader>> Entries();
  // An error if absent, with a hint if the map holds a similar name.
  TextReader& Require();

  // Each leaves `out` alone when absent or wrong; wrong is an error naming what was expected and what was found.
  void Read(std::string& out);
  void Read(bool& out);     // true or false, unquoted
  void Read(int32_t& out);  // decimal, unquoted, without leading zeros; so the next two
  void Read(int64_t& out);
  void Read(uint64_t& out);
  void Read(Duration& out);   // as ParseDuration
  void Read(WallTime& out);   // as ParseWallTime
  void Read(Resources& out);  // a map of quantities, quoted or not
  void Read(std::vector<std::string>& out);
  void Read(std::map<std::string, std::string>& out);
  void Read(TextMap& out);
  // Anything with a parser of its own (ParseMoney, ParseState, ...). Takes scalars only.
  template <class T, class Parser>
  void Read(T& out, Parser parse) {
    std::string text;
    if (!ReadScalar(text)) return;
    if (auto parsed = parse(text)) {
      out = *std::move(parsed);
    } else {
      Fail(parsed.error().message());
    }
  }

  // Every field of this map that Field() was not called for is an error.
  void RefuseUnknown();
  // An error at this value.
  void Fail(std::string_view what);

 private:
  TextReader(TextErrors& errors, const TextValue* value, std::string path, TextPosition position);
  bool ReadScalar(std::string& out);  // false if absent or not a scalar
  bool Is(TextValue::Kind kind);      // false if absent; an error if something else
  template <class Integer>
  void ReadInteger(Integer& out);

  static TextReader Absent(const TextReader& holder, std::string_view key, TextPosition position);

  TextErrors* errors_;
  const TextValue* value_;  // nullptr: absent
  std::string path_;
  TextPosition position_;                            // of the value, or of what should have held it
  std::shared_ptr<std::vector<std::string>> asked_;  // of a map: keys asked for, shared by copies of this reader
  const TextValue* holder_ = nullptr;                // of an absent field: the map without it, if there is one
  std::string key_;                                  // of an absent field
};

}  // namespace muster::model
