#include "model/text_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/names.h"
#include "model/utf8.h"

namespace muster::model {
namespace {

constexpr size_t kMaxShownKey = 64;
constexpr size_t kMaxShownMessage = 500;

std::string Shortened(std::string_view text, size_t max_bytes) {
  const std::string_view prefix = Utf8Prefix(text, max_bytes);
  return prefix.size() == text.size() ? std::string(text) : fmt::format("{}...", prefix);
}

bool IsPlainKey(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// What a file says must not move the cursor of the terminal that shows the error.
std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

const TextField* TextValue::Find(std::string_view key) const {
  const auto it = std::ranges::find(fields, key, &TextField::key);
  return it == fields.end() ? nullptr : &*it;
}

std::string_view KindName(TextValue::Kind kind) {
  switch (kind) {
    case TextValue::Kind::kNull: return "null";
    case TextValue::Kind::kScalar: return "a scalar";
    case TextValue::Kind::kList: return "a list";
    case TextValue::Kind::kMap: return "a map";
  }
  return "null";
}

std::string FieldPath(std::string_view parent, std::string_view key) {
  if (!IsPlainKey(key)) return fmt::format("{}[{}]", parent, Quoted(key));
  return fmt::format("{}{}{}", parent, parent.empty() ? "" : ".", Shortened(key, kMaxShownKey));
}

std::string ItemPath(std::string_view parent, size_t index) { return fmt::format("{}[{}]", parent, index); }

Status TextError(std::string_view source, TextPosition position, std::string_view path, std::string_view what) {
  std::string message;
  if (!source.empty()) message = fmt::format("{}:", source);
  if (position.line > 0) message += fmt::format("{}:{}:", position.line, position.column);
  if (!message.empty()) message += ' ';
  if (!path.empty()) message += fmt::format("{}: ", path);
  message += Shortened(what, kMaxShownMessage);
  return {Code::kInvalidArgument, Printable(message)};
}

Status TextTooLarge(std::string_view source, size_t bytes, const TextLimits& limits) {
  return TextError(
      source, {}, "",
      fmt::format("{} bytes are more than the limit of {}; split the file, or use JSON lines for large fleets", bytes,
                  limits.max_bytes));
}

}  // namespace muster::model
