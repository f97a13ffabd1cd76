#include "base/hash.h"

#include <cstddef>

namespace muster {

void Hasher::Add(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * (i % 8));
    if (i % 8 == 7) {
      Add(word);
      word = 0;
    }
  }
  Add(word);
  Add(bytes.size());
}

}  // namespace muster
