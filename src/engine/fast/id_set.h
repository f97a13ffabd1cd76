// IdSet: the machines of a group in the order of their ids.
//
// Most machines come in bulk and in order, and most leave from the front, so they sit in one sorted array. A machine
// that leaves stays behind in it as a gap until gaps are half of it; one that comes in between waits in a short second
// array. A walk skips the gaps: `lives(m)` says whether m is still in the group.
//
// Invariants (Verify): 1. both arrays are in the order of labels, without repetition, and fit their block. 2. As many
// machines live as are counted, all of the second array among them. 3. Before the place where a walk begins there are
// only gaps.
//
// A fleet may have a group for every machine, so the set itself is two words and keeps the rest with its machines.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "engine/fast/ids.h"

namespace muster::engine::fast {

using Labels = Rows<MachineId, uint64_t>;  // orders machines by id

class IdSet {
 public:
  uint32_t size() const { return Get(kLive); }

  // `labels` orders machines by id; `lives` is true for exactly the machines in the set, the new one included.
  template <class Lives>
  void Add(MachineId machine, const Labels& labels, const Lives& lives) {
    if (main_ + late_ == capacity()) Grow();
    Set(kLive, size() + 1);
    const auto less = [&](MachineId a, MachineId b) { return labels[a] < labels[b]; };
    if (main_ == 0 || less(main().back(), machine)) {
      block_[kIds + main_++] = machine;
      return;
    }
    const auto at = std::lower_bound(main().begin(), main().end(), machine, less);
    if (at != main().end() && *at == machine && !MUTANT("fast.gap_forgotten")) {  // it had left a gap
      Set(kFirst, std::min(Get(kFirst), static_cast<uint32_t>(at - main().begin())));
      return;
    }
    MachineId* const begin = late().data();  // before it there is room for one more
    *std::move(begin, std::lower_bound(begin, begin + late_, machine, less), begin - 1) = machine;
    ++late_;
    if (late_ > 64 && late_ * 8 > main_) Compact(labels, lives);
  }

  // The caller has already marked the machine as gone.
  template <class Lives>
  void Remove(MachineId machine, const Labels& labels, const Lives& lives) {
    Set(kLive, size() - 1);
    if (size() == 0) return Clear();
    const auto less = [&](MachineId a, MachineId b) { return labels[a] < labels[b]; };
    const auto at = std::lower_bound(late().begin(), late().end(), machine, less);
    if (at != late().end() && *at == machine) {
      std::move_backward(late().begin(), at, at + 1);
      --late_;
      return;
    }
    uint32_t first = Get(kFirst);
    while (first < main_ && !lives(main()[first])) ++first;
    Set(kFirst, first);
    if (main_ > 64 && size() * 2 < main_) Compact(labels, lives);
  }

  struct Cursor {
    uint32_t main = 0;
    uint32_t late = 0;
  };
  Cursor Begin() const { return {.main = Get(kFirst), .late = 0}; }
  // The machine at the cursor, which moves on; kNoMachine at the end.
  template <class Lives>
  MachineId Next(Cursor& cursor, const Labels& labels, const Lives& lives) const {
    while (!IsGapless() && cursor.main < main_ && !lives(main()[cursor.main])) ++cursor.main;
    const bool has_main = cursor.main < main_;
    const bool has_late = cursor.late < late_;
    if (has_late &&
        (!has_main || (labels[late()[cursor.late]] < labels[main()[cursor.main]] && !MUTANT("fast.late_last"))))
      return late()[cursor.late++];
    return has_main ? main()[cursor.main++] : kNoMachine;
  }

  // Moves the cursor over `count` machines, or to the end.
  template <class Lives>
  void Skip(Cursor& cursor, uint32_t count, const Labels& labels, const Lives& lives) const {
    if (IsGapless() && late_ == 0) {
      cursor.main = std::min(main_, cursor.main + count);
      return;
    }
    for (; count > 0; --count) Next(cursor, labels, lives);
  }

  // Gaps go too; a small block stays for the next machines.
  void Clear() {
    if (capacity() > kSmall) block_ = nullptr;
    if (block_ != nullptr) {
      Set(kLive, 0);
      Set(kFirst, 0);
    }
    main_ = late_ = 0;
  }
  // Forgets the machines that left, so that their rows may be given to others.
  template <class Lives>
  void DropGaps(const Labels& labels, const Lives& lives) {
    if (size() < main_ + late_) Compact(labels, lives);
  }
  // The first invariant that does not hold; empty if all do.
  template <class Lives>
  std::string Verify(const Labels& labels, const Lives& lives) const {
    if (main_ + size_t{late_} > capacity()) return fmt::format("id set: {} + {} in {}", main_, late_, capacity());
    const auto label = [&](MachineId m) { return labels[m]; };
    if (!std::ranges::is_sorted(main(), std::ranges::less_equal(), label)) return "id set: machines are out of order";
    if (!std::ranges::is_sorted(late(), std::ranges::less_equal(), label)) return "id set: late ones are out of order";
    const auto live = std::ranges::count_if(main(), lives);
    if (live + late_ != size()) return fmt::format("id set: {} + {} machines, counted {}", live, late_, size());
    if (std::ranges::any_of(main().first(std::min(main_, Begin().main)), lives)) return "id set: it begins too late";
    if (!std::ranges::all_of(late(), lives)) return "id set: a late one is gone";
    return "";
  }
  size_t bytes() const { return block_ == nullptr ? 0 : (kIds + capacity()) * sizeof(MachineId); }

 private:
  // A block's words: how many machines it has room for, how many live, before which place there are only gaps; then
  // the machines: main from the front, late at the end.
  enum Word : uint8_t { kCapacity, kLive, kFirst, kIds };
  static constexpr uint32_t kSmall = 16;

  uint32_t Get(Word word) const { return block_ == nullptr ? 0 : block_[word].value(); }
  void Set(Word word, uint32_t value) { block_[word] = MachineId(value); }

  uint32_t capacity() const { return Get(kCapacity); }
  std::span<MachineId> all() const {
    return block_ == nullptr ? std::span<MachineId>() : std::span(block_.get() + kIds, capacity());
  }
  std::span<MachineId> main() const { return all().first(main_); }  // sorted; may hold gaps
  std::span<MachineId> late() const { return all().last(late_); }   // sorted; no gaps

  bool IsGapless() const { return main_ - Begin().main + late_ == size(); }

  static IdSet WithRoomFor(uint32_t machines) {
    IdSet set;
    set.block_ = std::make_unique_for_overwrite<MachineId[]>(kIds + machines);
    set.Set(kCapacity, machines);
    set.Set(kLive, 0);
    set.Set(kFirst, 0);
    return set;
  }

  void Grow() {
    IdSet larger = WithRoomFor(capacity() + capacity() / 2 + 3);
    larger.main_ = main_;
    larger.late_ = late_;
    larger.Set(kLive, size());
    larger.Set(kFirst, Get(kFirst));
    std::ranges::copy(main(), larger.main().begin());
    std::ranges::copy(late(), larger.late().begin());
    *this = std::move(larger);
  }

  template <class Lives>
  void Compact(const Labels& labels, const Lives& lives) {
    const auto live =
        std::span(main().begin(), std::remove_if(main().begin(), main().end(), [&](MachineId m) { return !lives(m); }));
    IdSet compact = WithRoomFor(static_cast<uint32_t>(live.size()) + late_);
    compact.main_ = compact.capacity();
    compact.Set(kLive, compact.capacity());
    std::ranges::merge(
        live, late(), compact.main().begin(), {}, [&](MachineId m) { return labels[m]; },
        [&](MachineId m) { return labels[m]; });
    *this = std::move(compact);
  }

  std::unique_ptr<MachineId[]> block_;  // none: it is empty
  uint32_t main_ = 0;
  uint32_t late_ = 0;
};

}  // namespace muster::engine::fast
