// Lookup: from the hash of something kept elsewhere to its id. The caller compares; the table only remembers 32 bits of
// hashes. Open addressing, no allocation while it does not grow. Never iterated, so its order decides nothing.
//
// Invariants (Verify): 1. as many slots hold an entry, or held one, as are counted. 2. An entry is reached from where
// its hash says without passing an empty slot. 3. No id is there twice.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "engine/fast/ids.h"

namespace muster::engine::fast {

template <class Id>
class Lookup {
 public:
  size_t size() const { return live_; }

  // The id whose entry `is_it` accepts; the invalid one if there is none.
  template <class IsIt>
  Id Find(uint64_t hash, const IsIt& is_it) const {
    if (slots_.empty()) return {};
    const uint32_t tag = TagOf(hash);
    for (size_t i = tag & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.index == kNone) return {};
      if (slot.tag == tag && slot.index != kGone && is_it(Id(slot.index))) return Id(slot.index);
    }
  }

  // The entry must not be there yet.
  void Insert(uint64_t hash, Id id) {
    if ((used_ + 1) * 8 > slots_.size() * 5) Grow(live_ + 1);
    Place({.tag = TagOf(hash), .index = id.value()});
    ++used_;
    ++live_;
  }

  // The id whose entry `is_it` accepts, or the new one that `make` gives it.
  template <class IsIt, class Make>
  Id FindOrAdd(uint64_t hash, const IsIt& is_it, const Make& make) {
    const Id known = Find(hash, is_it);
    if (known.valid()) return known;
    const Id id = make();
    Insert(hash, id);
    return id;
  }

  void Erase(uint64_t hash, Id id) {
    if (slots_.empty()) return;
    for (size_t i = TagOf(hash) & mask_;; i = (i + 1) & mask_) {
      if (slots_[i].index == kNone) return;
      if (slots_[i].index != id.value()) continue;
      slots_[i].index = MUTANT("fast.lookup_hole") ? kNone : kGone;
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

  // The first invariant that does not hold; empty if all do.
  std::string Verify() const {
    std::vector<uint32_t> seen;
    size_t used = 0;
    for (size_t at = 0; at < slots_.size(); ++at) {
      used += slots_[at].index != kNone ? 1 : 0;
      if (slots_[at].index == kNone || slots_[at].index == kGone) continue;
      seen.push_back(slots_[at].index);
      for (size_t i = slots_[at].tag & mask_; i != at; i = (i + 1) & mask_) {
        if (slots_[i].index == kNone) return fmt::format("lookup: entry {} cannot be reached", slots_[at].index);
      }
    }
    if (seen.size() != live_ || used != used_) {
      return fmt::format("lookup: {} entries in {} slots, counted {} in {}", seen.size(), used, live_, used_);
    }
    std::ranges::sort(seen);
    const auto twice = std::ranges::adjacent_find(seen);
    return twice == seen.end() ? "" : fmt::format("lookup: entry {} is there twice", *twice);
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
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
