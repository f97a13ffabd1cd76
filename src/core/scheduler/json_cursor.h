// JsonCursor: reads one JSON text from front to back into the variables of its caller, without building a tree.
//
//   JsonCursor in(text);
//   in.Object([&](std::string_view key) {
//     if (key == "id") return in.Read(id);
//     if (key == "ports") return in.List([&] { in.Read(ports.emplace_back()); });
//     in.Skip();
//   });
//   if (!in.Finish().ok()) ...                 // "statusInfo.actualState: expected text but found a number"
//
// Strict RFC 8259 JSON in UTF-8. The first error is kept, with the path of the value it is about, and turns every later
// call into one without effect. Where a value is expected, null leaves the variable as it is. Depth and size are
// bounded: the cursor may be given any bytes.
//
// Thread-safety: none. The text must outlive the cursor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::scheduler {

class JsonCursor {
 public:
  enum class Kind : uint8_t { kObject, kList, kText, kNumber, kBool, kNull, kNothing };
  static constexpr size_t kMaxBytes = 4u << 20;
  static constexpr int kMaxDepth = 32;

  explicit JsonCursor(std::string_view text);

  bool ok() const { return status_.ok(); }
  // Nothing but space may follow what was read.
  Status Finish();

  // What comes next. kNothing after an error.
  Kind Peek();

  // `field` is called with each key and takes the value: with Read, Object, List or Skip. The key is valid until then.
  template <class F>
  void Object(F&& field) {
    if (!Begin('{', Kind::kObject, "an object")) return;
    while (NextKey()) field(std::string_view(path_.back().key));
  }
  // `item` is called for each value of a list and takes it.
  template <class F>
  void List(F&& item) {
    if (!Begin('[', Kind::kList, "a list")) return;
    while (NextItem()) item();
  }
  void Read(std::string& out);
  void Read(bool& out);
  void Read(int32_t& out);
  void Read(int64_t& out);
  void Read(uint64_t& out);
  void Read(double& out);
  // A string, or a number or bool as it is written; lists and objects as JSON.
  void ReadAsText(std::string& out);
  void Skip();

  // Where the next value begins.
  size_t Here();
  // Reads the value of the root's field `key` again, which begins at `place`. For values that depend on later ones:
  // take the place, skip, and come back after the root's Object.
  template <class F>
  void Again(size_t place, std::string_view key, F&& read) {
    if (!ok()) return;
    const size_t end = at_;
    at_ = place;
    path_.push_back({.key = std::string(key)});
    read();
    if (!ok()) return;
    path_.pop_back();
    at_ = end;
  }

  // An error at the value that is being read.
  void Fail(std::string_view what);

 private:
  struct Part {
    bool is_list = false;
    bool first = true;
    int64_t index = -1;
    std::string key;
  };

  bool Begin(char open, Kind kind, std::string_view expected);
  bool NextKey();
  bool NextItem();
  bool End(char close);
  bool Expect(Kind kind, std::string_view expected);  // false for null, which it takes, and for an error
  std::string_view Number();
  template <class Integer>
  void ReadInteger(Integer& out);
  void String(std::string& out);
  void Escape(std::string& out);
  uint32_t HexUnit();
  bool Literal(std::string_view word);
  void SkipSpace();
  bool Take(char c);
  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::string Path() const;

  const std::string_view text_;
  size_t at_ = 0;
  std::vector<Part> path_;  // of the open objects and lists, outermost first
  std::string scratch_;
  Status status_;
};

}  // namespace muster::scheduler
