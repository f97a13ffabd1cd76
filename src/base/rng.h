// Rng: a seeded generator of random numbers. A value, not a port: copying it copies its future.
//
// Algorithm: xoshiro256** (Blackman and Vigna, 2018), its 256-bit state filled from the seed by four steps of
// SplitMix64. Below() rejects the biased tail, so it is exact and may draw more than once. The stream is part of the
// product: a simulator seed must mean the same run on every compiler and in every release.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace muster {

class Rng {
 public:
  explicit Rng(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound). bound must be positive.
  uint64_t Below(uint64_t bound);
  // Uniform in [low, high], both included.
  int64_t Between(int64_t low, int64_t high);
  // True `numerator` times in `denominator`, on average.
  bool Chance(uint64_t numerator, uint64_t denominator) { return Below(denominator) < numerator; }
  // A generator of its own, for a part whose draws must not shift those of the others. `stream` names the part.
  Rng Fork(uint64_t stream);

  template <class T>
  void Shuffle(std::span<T> items) {
    for (size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[Below(left)]);
  }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace muster
