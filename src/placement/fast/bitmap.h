// Bitmap: one bit for each node position, in words of 64.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::placement::fast {

class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(size_t bits) : words_((bits + 63) / 64) {}

  void Set(size_t bit) { words_[bit / 64] |= uint64_t{1} << (bit % 64); }
  void Clear(size_t bit) { words_[bit / 64] &= ~(uint64_t{1} << (bit % 64)); }
  bool Test(size_t bit) const { return (words_[bit / 64] >> (bit % 64) & 1) != 0; }
  size_t words() const { return words_.size(); }
  uint64_t word(size_t index) const { return words_[index]; }
  void And(const Bitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  void Or(const Bitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // Calls see(bit) for every bit that is set, ascending.
  template <class See>
  void ForEach(See see) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        see(i * 64 + static_cast<size_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace muster::placement::fast
