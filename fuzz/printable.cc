// Any bytes as words of others on a terminal: what is printed is UTF-8 without a character that moves a cursor, ends a
// line or turns the direction of writing; and it is printed once more as it is.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cli/printable_lines.h"
#include "cli/table.h"

namespace {

// The next character, taken off the text.
char32_t Take(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  MUSTER_CHECK((first < 0x80 || (first >= 0xC2 && first < 0xF5)) && length <= text.size(), "{:02x} is printed", first);
  char32_t character = length == 1 ? first : first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    MUSTER_CHECK((next & 0xC0) == 0x80, "{:02x} is printed after {:02x}", next, first);
    character = character << 6 | (next & 0x3F);
  }
  text.remove_prefix(length);
  return character;
}

bool Steers(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

void Check(const std::string& printed, bool lines) {
  for (std::string_view rest = printed; !rest.empty();) {
    const char32_t character = Take(rest);
    if (lines && (character == '\n' || character == '\t')) continue;
    MUSTER_CHECK(!Steers(character), "U+{:04X} is printed", static_cast<uint32_t>(character));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::cli;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string printed = Printable(text);
  Check(printed, false);
  MUSTER_CHECK(Printable(printed) == printed, "printed again, it is another text");
  Check(PrintableLines(text), true);
  Check(FormatTable({{std::string(text), "x"}, {"y", std::string(text)}}), true);
  return 0;
}
