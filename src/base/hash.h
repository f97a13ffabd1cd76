// Hash: a 64-bit digest that is the same on every machine, compiler and run. For event-log hashes, journals and
// digests of decisions; not against an adversary.
//
// Algorithm: eight bytes at a time (little endian, the last word padded with zeros and followed by the length), each
// folded in by multiply and xor-shift.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

class Hasher {
 public:
  void Add(uint64_t word) {
    state_ = (state_ ^ word) * 0x9ddfea08eb382d69;
    state_ ^= state_ >> 29;
    state_ *= 0xff51afd7ed558ccd;
    state_ ^= state_ >> 32;
  }
  void Add(std::string_view bytes);
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x6d757374657231ULL;
};

inline uint64_t Hash(std::string_view bytes) {
  Hasher hasher;
  hasher.Add(bytes);
  return hasher.value();
}

}  // namespace muster
