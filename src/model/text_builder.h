// TextBuilder: puts a TextValue together from the events of a parser, and refuses what neither reader accepts.
//
// Both readers share it, so that depth, repeated keys and NUL characters are refused in the same words, at the exact
// place, and so that every error of theirs knows its path. A value follows a Key in a map; the caller keeps to that.
//
// Thread-safety: none. `source` must outlive the builder.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/text_value.h"

namespace muster::model {

class TextBuilder {
 public:
  TextBuilder(std::string_view source, int max_depth) : source_(source), max_depth_(max_depth) {}

  Status BeginMap(TextPosition position) { return Begin(TextValue::Kind::kMap, position); }
  Status BeginList(TextPosition position) { return Begin(TextValue::Kind::kList, position); }
  void End();
  Status Key(std::string key, TextPosition position);
  Status Scalar(std::string text, bool quoted, TextPosition position);
  void Null(TextPosition position);

  // True where a map is open and waits for a key, not for a value.
  bool ExpectsKey() const;
  // The finished value; the builder is empty again.
  TextValue Take();

  // Path of the value that is being read.
  std::string Path() const;
  // An error there.
  Status Fail(TextPosition position, std::string_view what) const;

 private:
  struct Frame {
    TextValue value;
    bool has_key = false;  // a key waits for its value
    std::string key;
    TextPosition key_position;
    std::set<std::string, std::less<>> keys;  // of a map with many fields; small ones are searched
  };

  Status Begin(TextValue::Kind kind, TextPosition position);
  void Attach(TextValue value);
  // The field of the innermost map that has this key already, or nullptr.
  static const TextField* Earlier(Frame& frame, const std::string& key);

  const std::string_view source_;
  const int max_depth_;
  std::vector<Frame> open_;  // innermost last
  TextValue root_;
};

}  // namespace muster::model
