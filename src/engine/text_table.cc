#include "engine/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::engine {
namespace {

size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string AlignRows(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string JoinNames(const std::vector<std::string>& names, size_t most) {
  if (most == 0 || names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  const auto shown = names.begin() + static_cast<ptrdiff_t>(most);
  return fmt::format("{} and {} more", fmt::join(names.begin(), shown, ", "), names.size() - most);
}

}  // namespace muster::engine
