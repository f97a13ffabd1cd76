#include "base/weight.h"

#include <cctype>

namespace muster::internal {

std::string NameInFiles(std::string_view member) {
  std::string name;
  bool starts_word = false;
  for (const char c : member) {
    if (c != '_') name.push_back(starts_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c);
    starts_word = c == '_';
  }
  return name;
}

std::string KeyInPath(std::string_view key) {
  constexpr size_t kShown = 64;
  return codec::Quote(key.substr(0, kShown));
}

}  // namespace muster::internal
