#include "base/rng.h"

#include <bit>
#include <limits>

#include "base/check.h"

namespace muster {
namespace {

uint64_t SplitMix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix64(seed);
}

uint64_t Rng::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t carried = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= carried;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Rng::Below(uint64_t bound) {
  MUSTER_CHECK(bound > 0);
  // The largest multiple of `bound` that 64 bits hold; draws at or above it would favour small results.
  const uint64_t limit = std::numeric_limits<uint64_t>::max() - std::numeric_limits<uint64_t>::max() % bound;
  uint64_t draw = Next();
  while (draw >= limit) draw = Next();
  return draw % bound;
}

int64_t Rng::Between(int64_t low, int64_t high) {
  MUSTER_CHECK(low <= high);
  const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t draw = width == 0 ? Next() : Below(width);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + draw);
}

Rng Rng::Fork(uint64_t stream) { return Rng(Next() ^ (stream * 0x9e3779b97f4a7c15)); }

}  // namespace muster
