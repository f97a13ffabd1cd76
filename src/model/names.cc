#include "model/names.h"

#include <algorithm>

namespace muster::model {
namespace {

// Not std::tolower: names are ASCII and must not depend on the locale.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool SameName(std::string_view a, std::string_view b, LetterCase letter_case) {
  if (letter_case == LetterCase::kExact) return a == b;
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

std::string Quoted(std::string_view text) {
  static constexpr size_t kLongest = 64;
  if (text.size() <= kLongest) return fmt::format("{:?}", text);
  return fmt::format("{:?}... ({} bytes)", text.substr(0, kLongest), text.size());
}

}  // namespace muster::model
