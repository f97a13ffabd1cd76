#include "host/json_object.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

namespace muster::host {
namespace {

unsigned char Byte(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (Unicode, table 3-7: overlong
// forms, surrogates and numbers above U+10FFFF are not well formed).
size_t SequenceLength(std::string_view text) {
  const unsigned char first = Byte(text, 0);
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || Byte(text, 1) < low || Byte(text, 1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (Byte(text, i) < 0x80 || Byte(text, i) > 0xBF) return 0;
  }
  return length;
}

std::string JsonValue(const log::Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return JsonQuote(v);
        } else if constexpr (std::is_same_v<T, double>) {
          return std::isfinite(v) ? fmt::format("{}", v) : JsonQuote(fmt::format("{}", v));
        } else {
          return fmt::format("{}", v);
        }
      },
      value.data);
}

// Of a character of up to three bytes; none that matters here is longer.
unsigned CodePoint(std::string_view text, size_t length) {
  if (length == 1) return Byte(text, 0);
  if (length == 2) return (Byte(text, 0) & 0x1FU) << 6 | (Byte(text, 1) & 0x3FU);
  if (length == 3) return (Byte(text, 0) & 0x0FU) << 12 | (Byte(text, 1) & 0x3FU) << 6 | (Byte(text, 2) & 0x3FU);
  return 0xFFFD;
}

// Control characters, those of C1 too, line ends of Unicode, and what turns the direction of the text that follows.
bool SteersATerminal(unsigned code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x061C || (code >= 0x200E && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string JsonQuote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (const unsigned code = CodePoint(text, length); SteersATerminal(code)) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

JsonObject& JsonObject::Add(std::string_view key, const log::Value& value) {
  text_ += fmt::format("{}{}:{}", text_.empty() ? "{" : ",", JsonQuote(key), JsonValue(value));
  return *this;
}

std::string JsonObject::Take() {
  const std::string text = std::exchange(text_, {});
  return text.empty() ? "{}" : text + '}';
}

}  // namespace muster::host
