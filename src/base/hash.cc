#include "base/hash.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace muster {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

void Hasher::Add(std::string_view bytes) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t word = 0;
  for (; left >= 8; left -= 8, at += 8) {
    std::memcpy(&word, at, 8);
    Add(word);
  }
  word = 0;
  if (left > 0) std::memcpy(&word, at, left);
  Add(word);
  Add(bytes.size());
}

}  // namespace muster
