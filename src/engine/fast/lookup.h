// Lookup: from the hash of something kept elsewhere to its 32-bit index. The caller compares; the table only remembers
// hashes. Open addressing, no allocation while it does not grow. Never iterated, so its order decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace muster::engine::fast {

class Lookup {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // The index whose entry `is_it` accepts, or kNone.
  template <class IsIt>
  uint32_t Find(uint64_t hash, const IsIt& is_it) const {
    if (slots_.empty()) return kNone;
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.index == kNone) return kNone;
      if (slot.tag == tag && slot.index != kGone && is_it(slot.index)) return slot.index;
    }
  }

  // The entry must not be there yet.
  void Insert(uint64_t hash, uint32_t index) {
    if ((used_ + 1) * 8 > slots_.size() * 5) Grow();
    Place(hash, index);
    ++used_;
    ++live_;
  }

  void Erase(uint64_t hash, uint32_t index) {
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      if (slots_[i].index == kNone) return;
      if (slots_[i].index != index) continue;
      slots_[i].index = kGone;
      --live_;
      return;
    }
  }

  void Reserve(size_t count) {
    while (slots_.size() * 5 < (count + 1) * 8) Grow();
  }

 private:
  static constexpr uint32_t kGone = 0xfffffffe;
  struct Slot {
    uint64_t low = 0;  // the part of the hash that places it, kept for growing
    uint32_t tag = 0;
    uint32_t index = kNone;
  };

  void Place(uint64_t hash, uint32_t index) {
    size_t i = hash & mask_;
    while (slots_[i].index != kNone) i = (i + 1) & mask_;
    slots_[i] = {.low = hash, .tag = static_cast<uint32_t>(hash >> 32), .index = index};
  }

  void Grow() {
    const size_t size = slots_.empty() ? 64 : live_ * 4 > slots_.size() ? slots_.size() * 2 : slots_.size();
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(size));
    mask_ = size - 1;
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.index == kNone || slot.index == kGone) continue;
      Place(slot.low, slot.index);
      ++used_;
    }
  }

  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
  size_t used_ = 0;  // slots that are not empty
  size_t live_ = 0;
};

}  // namespace muster::engine::fast
