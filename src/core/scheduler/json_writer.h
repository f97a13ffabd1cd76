// JsonWriter: writes one JSON text, value by value. The caller keeps to the grammar: a key before each value of an
// object. Text that is not UTF-8 is written with U+FFFD in place of each bad byte, so that what is written is read
// again.
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::scheduler {

class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginList() { Open('['); }
  void EndList() { Close(']'); }
  void Key(std::string_view key);
  void Text(std::string_view text);
  void Bool(bool value) { Raw(value ? "true" : "false"); }
  void Integer(int64_t value);
  void Unsigned(uint64_t value);
  // `thousandths` / 1000, in decimals: "0.5".
  void Thousandths(int64_t thousandths);

  // A key with text, or nothing if the text is empty.
  void Field(std::string_view key, std::string_view text) {
    if (text.empty()) return;
    Key(key);
    Text(text);
  }

  // What was written so far, and a return to it.
  struct Mark {
    size_t size = 0;
    bool first = true;
  };
  Mark mark() const { return {out_.size(), first_}; }
  void Rollback(Mark mark) {
    out_.resize(mark.size);
    first_ = mark.first;
  }

  std::string Take() { return std::move(out_); }

 private:
  void Open(char c);
  void Close(char c);
  void Raw(std::string_view text);
  void Separate();
  void Quote(std::string_view text);
  void QuoteByte(char c);

  std::string out_;
  bool first_ = true;  // nothing stands before the next value: no comma
};

}  // namespace muster::scheduler
