// Table: rows of words in columns as wide as they must be, two spaces apart; the first row is the head.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

using Rows = std::vector<std::vector<std::string>>;

std::string FormatTable(const Rows& rows);

// "-" for nothing.
inline std::string OrDash(std::string text) { return text.empty() ? "-" : std::move(text); }

}  // namespace muster::cli
