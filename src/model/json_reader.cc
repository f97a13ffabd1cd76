#include "model/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "model/text_builder.h"
#include "model/utf8.h"

namespace muster::model {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A recursive descent over `text`; TextBuilder's depth limit bounds the recursion.
class Parser {
 public:
  Parser(std::string_view text, std::string_view source, int first_line, int max_depth)
      : text_(text), builder_(source, max_depth), line_(first_line) {}

  Result<TextValue> Read() {
    if (Status status = ReadAll(); !status.ok()) return std::unexpected(std::move(status));
    return builder_.Take();
  }

 private:
  Status ReadAll() {
    if (const size_t bad = FindInvalidUtf8(text_); bad != std::string_view::npos) {
      line_ += static_cast<int>(std::ranges::count(text_.substr(0, bad), '\n'));
      line_start_ = text_.substr(0, bad).rfind('\n') + 1;  // npos + 1 is 0
      at_ = bad;
      return Fail(fmt::format("byte 0x{:02x} is not UTF-8", static_cast<uint8_t>(text_[bad])));
    }
    SkipSpace();
    MUSTER_RETURN_IF_ERROR(Value());
    SkipSpace();
    return at_ == text_.size() ? Status() : Fail(fmt::format("expected nothing more but found {}", Found()));
  }

  Status Value() {
    const TextPosition position = Here();
    switch (Peek()) {
      case '{': return Object(position);
      case '[': return List(position);
      case '"': {
        std::string text;
        MUSTER_RETURN_IF_ERROR(String(text));
        return builder_.Scalar(std::move(text), /*quoted=*/true, position);
      }
      case 't': return Literal("true", position);
      case 'f': return Literal("false", position);
      case 'n': return Literal("null", position);
      default: return Number(position);
    }
  }

  Status Object(TextPosition position) {
    MUSTER_RETURN_IF_ERROR(builder_.BeginMap(position));
    ++at_;
    SkipSpace();
    if (!Take('}')) {
      do {
        SkipSpace();
        const TextPosition key_position = Here();
        if (Peek() != '"') return Fail(fmt::format("expected a key in quotes but found {}", Found()));
        std::string key;
        MUSTER_RETURN_IF_ERROR(String(key));
        MUSTER_RETURN_IF_ERROR(builder_.Key(std::move(key), key_position));
        SkipSpace();
        if (!Take(':')) return Fail(fmt::format("expected ':' after the key but found {}", Found()));
        SkipSpace();
        MUSTER_RETURN_IF_ERROR(Value());
        SkipSpace();
      } while (Take(','));
      if (!Take('}')) return Fail(fmt::format("expected ',' or '}}' but found {}", Found()));
    }
    builder_.End();
    return {};
  }

  Status List(TextPosition position) {
    MUSTER_RETURN_IF_ERROR(builder_.BeginList(position));
    ++at_;
    SkipSpace();
    if (!Take(']')) {
      do {
        SkipSpace();
        MUSTER_RETURN_IF_ERROR(Value());
        SkipSpace();
      } while (Take(','));
      if (!Take(']')) return Fail(fmt::format("expected ',' or ']' but found {}", Found()));
    }
    builder_.End();
    return {};
  }

  Status Literal(std::string_view word, TextPosition position) {
    if (!text_.substr(at_).starts_with(word)) return Fail(fmt::format("expected a JSON value but found {}", Found()));
    at_ += word.size();
    if (word != "null") return builder_.Scalar(std::string(word), /*quoted=*/false, position);
    builder_.Null(position);
    return {};
  }

  Status Number(TextPosition position) {
    const size_t start = at_;
    const bool negative = Take('-');
    if (!IsDigit(Peek())) {
      return Fail(fmt::format("expected {} but found {}", negative ? "a digit after '-'" : "a JSON value", Found()));
    }
    if (Take('0')) {
      if (IsDigit(Peek())) return Fail("a number must not begin with 0; quote it if it is text");
    } else {
      SkipDigits();
    }
    if (Take('.') && !SkipDigits()) return Fail(fmt::format("expected a digit after '.' but found {}", Found()));
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!SkipDigits()) return Fail(fmt::format("expected a digit of the exponent but found {}", Found()));
    }
    return builder_.Scalar(std::string(text_.substr(start, at_ - start)), /*quoted=*/false, position);
  }

  Status String(std::string& out) {
    ++at_;
    while (true) {
      const size_t start = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<uint8_t>(text_[at_]) >= 0x20) {
        ++at_;
      }
      out.append(text_, start, at_ - start);
      if (at_ == text_.size()) return Fail("a string has no closing quote");
      if (Take('"')) return {};
      if (text_[at_] != '\\') return Fail(fmt::format("{} inside a string; write it as an escape", Found()));
      MUSTER_RETURN_IF_ERROR(Escape(out));
    }
  }

  Status Escape(std::string& out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    if (Peek() == 'u') return UnicodeEscape(out);
    const size_t letter = at_ < text_.size() ? kLetters.find(text_[at_]) : std::string_view::npos;
    if (letter == std::string_view::npos) {
      return Fail(fmt::format("expected one of \" \\ / b f n r t u after '\\' but found {}", Found()));
    }
    out.push_back(kMeanings[letter]);
    ++at_;
    return {};
  }

  // A character beyond U+FFFF comes as two escapes, the halves of a surrogate pair; a half alone is no character.
  Status UnicodeEscape(std::string& out) {
    static constexpr std::string_view kLoneSurrogate = "half of a surrogate pair alone; write both halves";
    uint32_t unit = 0;
    MUSTER_RETURN_IF_ERROR(HexUnit(unit));
    if (unit >= 0xDC00 && unit <= 0xDFFF) return Fail(kLoneSurrogate);
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      uint32_t low = 0;
      if (!Take('\\') || Peek() != 'u') return Fail(kLoneSurrogate);
      MUSTER_RETURN_IF_ERROR(HexUnit(low));
      if (low < 0xDC00 || low > 0xDFFF) return Fail(kLoneSurrogate);
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(out, unit);
    return {};
  }

  Status HexUnit(uint32_t& out) {
    ++at_;  // the 'u'
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = Peek();
      uint32_t digit = 0;
      if (IsDigit(c)) {
        digit = static_cast<uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<uint32_t>(c - 'a') + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<uint32_t>(c - 'A') + 10;
      } else {
        return Fail(fmt::format("expected four hexadecimal digits after '\\u' but found {}", Found()));
      }
      out = out * 16 + digit;
    }
    return {};
  }

  void SkipSpace() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }
  bool SkipDigits() {
    const size_t start = at_;
    while (IsDigit(Peek())) ++at_;
    return at_ > start;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }  // NUL never matches anything asked for
  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  TextPosition Here() const { return {.line = line_, .column = static_cast<int>(at_ - line_start_) + 1}; }
  Status Fail(std::string_view what) const { return builder_.Fail(Here(), what); }
  std::string Found() const {
    if (at_ == text_.size()) return "the end";
    const auto byte = static_cast<uint8_t>(text_[at_]);
    return byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", text_[at_]) : fmt::format("byte 0x{:02x}", byte);
  }

  const std::string_view text_;
  TextBuilder builder_;
  size_t at_ = 0;
  int line_;
  size_t line_start_ = 0;
};

// Lines of a stream, never holding more than one and the limit.
class LineReader {
 public:
  LineReader(std::istream& in, std::string_view source, size_t max_bytes)
      : in_(in), source_(source), max_bytes_(max_bytes) {}

  // The next line without its end, valid until the next call; false at the end of the stream.
  Result<bool> Next(std::string_view& line) {
    ++number_;
    line_.clear();
    while (true) {
      if (available_.empty()) Fill();
      if (available_.empty()) {
        if (in_.bad())
          return Error(Code::kUnavailable, fmt::format("{}: reading failed after line {}", source_, number_ - 1));
        line = line_;
        return !line_.empty();
      }
      const void* found = std::memchr(available_.data(), '\n', available_.size());
      const size_t length = found == nullptr ? available_.size()
                                             : static_cast<size_t>(static_cast<const char*>(found) - available_.data());
      if (line_.size() + length > max_bytes_) return std::unexpected(TooLong());
      const std::string_view part = available_.substr(0, length);
      available_.remove_prefix(std::min(available_.size(), length + 1));
      if (found != nullptr && line_.empty()) {
        line = part;
        return true;
      }
      line_.append(part);
      if (found != nullptr) {
        line = line_;
        return true;
      }
    }
  }
  int number() const { return number_; }

 private:
  void Fill() {
    in_.read(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
    available_ = {chunk_.data(), static_cast<size_t>(in_.gcount())};
  }
  Status TooLong() const {
    return TextError(source_, {.line = number_, .column = static_cast<int>(max_bytes_) + 1}, "",
                     fmt::format("the line is longer than {} bytes", max_bytes_));
  }

  std::istream& in_;
  const std::string_view source_;
  const size_t max_bytes_;
  int number_ = 0;
  std::string line_;  // a line that did not end in its chunk
  std::array<char, 1 << 16> chunk_;
  std::string_view available_;
};

}  // namespace

Result<TextValue> ReadJson(std::string_view text, std::string_view source, int first_line, const JsonLimits& limits) {
  return Parser(text, source, first_line, limits.max_depth).Read();
}

Status ReadJsonLines(std::istream& in, std::string_view source, const std::function<Status(const TextValue&)>& row,
                     const JsonLimits& limits) {
  LineReader lines(in, source, limits.max_line_bytes);
  std::string_view line;
  while (true) {
    const Result<bool> more = lines.Next(line);
    if (!more) return more.error();
    if (!*more) return {};
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Result<TextValue> value = ReadJson(line, source, lines.number(), limits);
    if (!value) return value.error();
    if (value->kind != TextValue::Kind::kMap) {
      return TextError(source, value->position, "",
                       fmt::format("expected an object on each line but found {}", KindName(value->kind)));
    }
    MUSTER_RETURN_IF_ERROR(row(*value));
  }
}

}  // namespace muster::model
