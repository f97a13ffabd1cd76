// Table: rows of words in columns as wide as they must be, two spaces apart; the first row is the head.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

using Rows = std::vector<std::vector<std::string>>;

// Columns, with control characters shown (Printable).
std::string FormatTable(const Rows& rows);

// Text of others, as it may go to a terminal: control characters and those that turn the direction of writing come out
// as \x1b or \u202e.
std::string Printable(std::string_view text);

// A word as a shell takes it for one.
std::string ShellWord(std::string_view word);

// "-" for nothing.
inline std::string OrDash(std::string text) { return text.empty() ? "-" : std::move(text); }

}  // namespace muster::cli
