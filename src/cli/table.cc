#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cli {

namespace {

// How many bytes at the front of the text must not reach a terminal as they are; 0: they may.
size_t Unprintable(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
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
    const auto byte = [&](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
    if (length == 0) printable += text.front();
    if (length == 1) printable += fmt::format("\\x{:02x}", byte(0));
    if (length == 2) printable += fmt::format("\\u{:04x}", (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f));
    if (length == 3) {
      printable += fmt::format("\\u{:04x}", (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return printable;
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
