// PrintableLines: a text of our own lines with words of others in it, as it may go to a terminal: as Printable, but
// ends of lines and tabs stay.
#pragma once

#include <string>
#include <string_view>

namespace muster::cli {

std::string PrintableLines(std::string_view text);

}  // namespace muster::cli
