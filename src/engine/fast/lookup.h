// Lookup: from the hash of something kept elsewhere to its 32-bit index. The caller compares; the table only remembers
// 32 bits of hashes. Open addressing, no allocation while it does not grow. Never iterated, so its order decides
// nothing.
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
    const uint32_t tag = TagOf(hash);
    for (size_t i = tag & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.index == kNone) return kNone;
      if (slot.tag == tag && slot.index != kGone && is_it(slot.index)) return slot.index;
    }
  }

  // The entry must not be there yet.
  void Insert(uint64_t hash, uint32_t index) {
    if ((used_ + 1) * 8 > slots_.size() * 5) Grow();
    Place({.tag = TagOf(hash), .index = index});
    ++used_;
    ++live_;
  }

  void Erase(uint64_t hash, uint32_t index) {
    for (size_t i = TagOf(hash) & mask_;; i = (i + 1) & mask_) {
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
    uint32_t tag = 0;
    uint32_t index = kNone;
  };
  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash ^ (hash >> 32)); }

  void Place(const Slot& slot) {
    size_t i = slot.tag & mask_;
    while (slots_[i].index != kNone) i = (i + 1) & mask_;
    slots_[i] = slot;
  }

  void Grow() {
    const size_t size = slots_.empty() ? 64 : live_ * 4 > slots_.size() ? slots_.size() * 2 : slots_.size();
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(size));
    mask_ = size - 1;
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.index == kNone || slot.index == kGone) continue;
      Place(slot);
      ++used_;
    }
  }

  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
  size_t used_ = 0;  // slots that are not empty
  size_t live_ = 0;
};

}  // namespace muster::engine::fast
