// Lookup: from the hash of something kept elsewhere to its 32-bit index. The caller compares; the table only remembers
// 32 bits of hashes. Open addressing, no allocation while it does not grow. Never iterated, so its order decides
// nothing.
#pragma once

#include <algorithm>
#include <bit>
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
    if ((used_ + 1) * 8 > slots_.size() * 5) Grow(live_ + 1);
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

  // Makes room for so many entries in all.
  void Reserve(size_t count) {
    if (count * 8 > slots_.size() * 5) Grow(count);
  }
  // Asks for the memory of an entry that will be looked for in a moment.
  // (Always inline: g++ 12 takes the call for one without effect and drops it.)
  [[gnu::always_inline]] void Prefetch(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[TagOf(hash) & mask_], 1);
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

  // To a size that has room for `count` entries and does not fill up soon.
  void Grow(size_t count) {
    const size_t size = std::bit_ceil(std::max({count * 8 / 5 + 1, live_ * 2, size_t{64}}));
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
