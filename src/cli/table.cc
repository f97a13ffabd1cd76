#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/utf8.h"

namespace muster::cli {

namespace {

// How many bytes the character at the front has; 0: they are no UTF-8. A terminal may take such a byte for a control
// character of eight bits, and one that is written in more bytes than it needs for what it stands for.
size_t LengthOf(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length > text.size()) return 0;
  return model::FindInvalidUtf8(text.substr(0, length)) == std::string_view::npos ? length : 0;
}

// How many bytes at the front of the text must not reach a terminal as they are; 0: they may.
size_t Unprintable(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (byte(0) < 0x20 || byte(0) == 0x7f || LengthOf(text) == 0) return 1;
  if (byte(0) == 0xd8 && byte(1) == 0x9c) return 2;                                        // U+061C
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;                      // C1
  if (byte(0) == 0xe2 && byte(1) == 0x80 && (byte(2) & 0xfe) == 0x8e) return 3;            // U+200E, U+200F
  if (byte(0) == 0xe2 && byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) return 3;  // U+2028 to U+202E
  if (byte(0) == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9) return 3;  // U+2066 to U+2069
  return 0;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t length = Unprintable(text);
    const size_t whole = length == 0 ? LengthOf(text) : length;
    const auto byte = [&](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
    if (length == 0) printable += text.substr(0, whole);
    if (length == 1) printable += fmt::format("\\x{:02x}", byte(0));
    if (length == 2) printable += fmt::format("\\u{:04x}", (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f));
    if (length == 3) {
      printable += fmt::format("\\u{:04x}", (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f));
    }
    text.remove_prefix(whole);
  }
  return printable;
}

std::string ShellWord(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+:@%,=").contains(c);
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string FormatTable(const Rows& given) {
  Rows rows = given;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = Printable(cell);
  }
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace muster::cli
