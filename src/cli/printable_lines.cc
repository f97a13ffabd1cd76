#include "cli/printable_lines.h"

#include "cli/table.h"

namespace muster::cli {

std::string PrintableLines(std::string_view text) {
  std::string shown;
  for (size_t end = text.find_first_of("\n\t"); end != std::string_view::npos; end = text.find_first_of("\n\t")) {
    shown += Printable(text.substr(0, end));
    shown += text[end];
    text.remove_prefix(end + 1);
  }
  return shown + Printable(text);
}

}  // namespace muster::cli
