#include "core/scheduler/json_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/names.h"
#include "model/utf8.h"

namespace muster::scheduler {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A key as it stands in a message: plain if it is a name.
std::string Shown(std::string_view key) {
  static constexpr size_t kLongest = 64;
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7F && c != '"' && c != '\\'; };
  return key.size() <= kLongest && std::ranges::all_of(key, is_plain) ? std::string(key) : model::Quoted(key);
}

std::string_view NameOf(JsonCursor::Kind kind) {
  switch (kind) {
    case JsonCursor::Kind::kObject: return "an object";
    case JsonCursor::Kind::kList: return "a list";
    case JsonCursor::Kind::kText: return "text";
    case JsonCursor::Kind::kNumber: return "a number";
    case JsonCursor::Kind::kBool: return "true or false";
    case JsonCursor::Kind::kNull: return "null";
    case JsonCursor::Kind::kNothing: return "no value";
  }
  return "no value";
}

}  // namespace

JsonCursor::JsonCursor(std::string_view text) : text_(text) {
  path_.reserve(8);
  if (text.size() > kMaxBytes) {
    Fail(fmt::format("{} bytes are too many; at most {} are read", text.size(), kMaxBytes));
  } else if (const size_t bad = model::FindInvalidUtf8(text); bad != std::string_view::npos) {
    at_ = bad;
    Fail("this byte is not UTF-8");
  }
}

Status JsonCursor::Finish() {
  SkipSpace();
  if (ok() && at_ < text_.size()) Fail("expected nothing more");
  return status_;
}

JsonCursor::Kind JsonCursor::Peek() {
  if (!ok()) return Kind::kNothing;
  SkipSpace();
  switch (Next()) {
    case '{': return Kind::kObject;
    case '[': return Kind::kList;
    case '"': return Kind::kText;
    case 't':
    case 'f': return Kind::kBool;
    case 'n': return Kind::kNull;
    case '-': return Kind::kNumber;
    default: return IsDigit(Next()) ? Kind::kNumber : Kind::kNothing;
  }
}

bool JsonCursor::Expect(Kind kind, std::string_view expected) {
  const Kind found = Peek();
  if (found == kind) return true;
  if (!ok()) return false;
  if (found == Kind::kNull && Literal("null")) return false;
  Fail(fmt::format("expected {} but found {}", expected, NameOf(found)));
  return false;
}

bool JsonCursor::Begin(char open, Kind kind, std::string_view expected) {
  if (!Expect(kind, expected)) return false;
  if (path_.size() >= static_cast<size_t>(kMaxDepth)) {
    Fail(fmt::format("nested deeper than {}", kMaxDepth));
    return false;
  }
  Take(open);
  path_.push_back({.is_list = kind == Kind::kList, .key = {}});
  return true;
}

bool JsonCursor::End(char close) {
  if (!Take(close)) return false;
  path_.pop_back();
  return true;
}

bool JsonCursor::NextKey() {
  if (!ok()) return false;
  SkipSpace();
  if (End('}')) return false;
  if (!path_.back().first && !Take(',')) {
    Fail("expected ',' or '}' after a value");
    return false;
  }
  path_.back().first = false;
  SkipSpace();
  if (Next() != '"') {
    Fail("expected a key in quotes");
    return false;
  }
  path_.back().key.clear();
  String(path_.back().key);
  SkipSpace();
  if (ok() && !Take(':')) Fail("expected ':' after the key");
  return ok();
}

bool JsonCursor::NextItem() {
  if (!ok()) return false;
  SkipSpace();
  if (End(']')) return false;
  Part& list = path_.back();
  if (!list.first && !Take(',')) {
    Fail("expected ',' or ']' after a value");
    return false;
  }
  list.first = false;
  ++list.index;
  return true;
}

void JsonCursor::Read(std::string& out) {
  if (!Expect(Kind::kText, "text")) return;
  out.clear();
  String(out);
}

void JsonCursor::Read(bool& out) {
  if (!Expect(Kind::kBool, "true or false")) return;
  const bool value = Next() == 't';
  if (Literal(value ? "true" : "false")) out = value;
}

// The text of a number by the grammar of JSON; empty after an error.
std::string_view JsonCursor::Number() {
  const size_t start = at_;
  const auto digits = [&] {
    const size_t first = at_;
    while (IsDigit(Next())) ++at_;
    return at_ > first;
  };
  Take('-');
  const bool zero = Next() == '0';
  bool good = digits();
  if (zero && at_ - start > (text_[start] == '-' ? 2u : 1u)) good = false;  // no leading zeros
  if (good && Take('.')) good = digits();
  if (good && (Next() == 'e' || Next() == 'E')) {
    ++at_;
    if (!Take('+')) Take('-');
    good = digits();
  }
  if (good) return text_.substr(start, at_ - start);
  Fail("malformed number");
  return {};
}

template <class Integer>
void JsonCursor::ReadInteger(Integer& out) {
  if (!Expect(Kind::kNumber, "a whole number")) return;
  const std::string_view text = Number();
  if (!ok()) return;
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) {
    out = value;
  } else {
    Fail(fmt::format("{} is not a whole number that fits", model::Quoted(text)));
  }
}

void JsonCursor::Read(int32_t& out) { ReadInteger(out); }
void JsonCursor::Read(int64_t& out) { ReadInteger(out); }
void JsonCursor::Read(uint64_t& out) { ReadInteger(out); }

void JsonCursor::Read(double& out) {
  if (!Expect(Kind::kNumber, "a number")) return;
  const std::string_view text = Number();
  if (!ok()) return;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) {
    out = value;
  } else {
    Fail(fmt::format("{} is not a number that fits", model::Quoted(text)));
  }
}

void JsonCursor::ReadAsText(std::string& out) {
  if (Peek() == Kind::kText) return Read(out);
  const size_t start = Here();
  Skip();
  if (ok()) out = text_.substr(start, at_ - start);
}

void JsonCursor::Skip() {
  switch (Peek()) {
    case Kind::kObject: return Object([this](std::string_view) { Skip(); });
    case Kind::kList: return List([this] { Skip(); });
    case Kind::kText: {
      scratch_.clear();
      return String(scratch_);
    }
    case Kind::kNumber: Number(); return;
    case Kind::kBool: Literal(Next() == 't' ? "true" : "false"); return;
    case Kind::kNull: Literal("null"); return;
    case Kind::kNothing: return Fail("expected a value");
  }
}

size_t JsonCursor::Here() {
  SkipSpace();
  return at_;
}

// The cursor stands at the opening quote.
void JsonCursor::String(std::string& out) {
  ++at_;
  while (ok()) {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' && static_cast<uint8_t>(text_[at_]) >= 0x20) {
      ++at_;
    }
    out.append(text_.substr(start, at_ - start));
    if (Take('"')) return;
    if (Take('\\')) {
      Escape(out);
    } else {
      Fail(at_ == text_.size() ? "the text has no end" : "a control character must be escaped");
    }
  }
}

void JsonCursor::Escape(std::string& out) {
  static constexpr std::string_view kLetters = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t letter = kLetters.find(Next()); at_ < text_.size() && letter != std::string_view::npos) {
    out.push_back(kMeanings[letter]);
    ++at_;
    return;
  }
  if (!Take('u')) return Fail("unknown escape");
  uint32_t unit = HexUnit();
  if (unit >= 0xD800 && unit <= 0xDFFF) {
    const uint32_t low = unit < 0xDC00 && Take('\\') && Take('u') ? HexUnit() : 0;
    if (low < 0xDC00 || low > 0xDFFF) return Fail("half of a surrogate pair alone");
    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
  }
  if (ok()) model::AppendUtf8(out, unit);
}

uint32_t JsonCursor::HexUnit() {
  uint32_t unit = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
  if (error != std::errc() || digits.size() < 4 || end != digits.data() + 4) {
    Fail("expected four hexadecimal digits");
    return 0;
  }
  at_ += 4;
  return unit;
}

bool JsonCursor::Literal(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) {
    Fail(fmt::format("expected {}", word));
    return false;
  }
  at_ += word.size();
  return true;
}

void JsonCursor::SkipSpace() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool JsonCursor::Take(char c) {
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

std::string JsonCursor::Path() const {
  std::string path;
  for (const Part& part : path_) {
    if (part.is_list) {
      path += fmt::format("[{}]", part.index);
    } else if (!part.key.empty()) {
      path += (path.empty() ? "" : ".") + Shown(part.key);
    }
  }
  return path;
}

void JsonCursor::Fail(std::string_view what) {
  if (!status_.ok()) return;
  const std::string path = Path();
  status_ = Status(Code::kInvalidArgument, path.empty() ? fmt::format("byte {}: {}", at_, what)
                                                        : fmt::format("{}: {} (byte {})", path, what, at_));
}

}  // namespace muster::scheduler
