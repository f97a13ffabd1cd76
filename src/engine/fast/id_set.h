// IdSet: the machines of a group in the order of their ids.
//
// Most machines come in bulk and in order, and most leave from the front, so they sit in one sorted array. A machine
// that leaves stays behind in it as a gap until gaps are half of it; one that comes in between waits in a short second
// array. Whoever walks the set skips the gaps: `lives(m)` says whether m is still in the group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/probe.h"
#include "engine/fast/ids.h"

namespace muster::engine::fast {

class IdSet {
 public:
  uint32_t size() const { return size_; }

  // `labels` orders machines by id; `lives` is true for exactly the machines in the set, the new one included.
  template <class Lives>
  void Add(MachineId machine, const std::vector<uint64_t>& labels, const Lives& lives) {
    ++size_;
    const auto less = [&](MachineId a, MachineId b) { return labels[a] < labels[b]; };
    if (main_.empty() || less(main_.back(), machine)) {
      main_.push_back(machine);
      return;
    }
    const auto at = std::lower_bound(main_.begin(), main_.end(), machine, less);
    if (at != main_.end() && *at == machine && !MUTANT("fast.gap_forgotten")) {  // it had left a gap
      first_ = std::min(first_, static_cast<uint32_t>(at - main_.begin()));
      return;
    }
    late_.insert(std::lower_bound(late_.begin(), late_.end(), machine, less), machine);
    if (late_.size() > 64 && late_.size() * 8 > main_.size()) Compact(labels, lives);
  }

  // The caller has already marked the machine as gone.
  template <class Lives>
  void Remove(MachineId machine, const std::vector<uint64_t>& labels, const Lives& lives) {
    --size_;
    const auto less = [&](MachineId a, MachineId b) { return labels[a] < labels[b]; };
    const auto at = std::lower_bound(late_.begin(), late_.end(), machine, less);
    if (at != late_.end() && *at == machine) {
      late_.erase(at);
      return;
    }
    while (first_ < main_.size() && !lives(main_[first_])) ++first_;
    if (main_.size() > 64 && size_ * 2 < main_.size()) Compact(labels, lives);
    if (size_ == 0) Clear();
  }

  // Calls visit(machine) in order until it returns false.
  template <class Lives, class Visit>
  void Walk(const std::vector<uint64_t>& labels, const Lives& lives, const Visit& visit) const {
    Cursor cursor = Begin();
    for (MachineId m = Next(cursor, labels, lives); m != kNoMachine; m = Next(cursor, labels, lives)) {
      if (!visit(m)) return;
    }
  }

  struct Cursor {
    uint32_t main = 0;
    uint32_t late = 0;
  };
  Cursor Begin() const { return {.main = first_, .late = 0}; }
  // The machine at the cursor, which moves on; kNoMachine at the end.
  template <class Lives>
  MachineId Next(Cursor& cursor, const std::vector<uint64_t>& labels, const Lives& lives) const {
    while (cursor.main < main_.size() && !lives(main_[cursor.main])) ++cursor.main;
    const bool has_main = cursor.main < main_.size();
    const bool has_late = cursor.late < late_.size();
    if (has_late &&
        (!has_main || (labels[late_[cursor.late]] < labels[main_[cursor.main]] && !MUTANT("fast.late_last"))))
      return late_[cursor.late++];
    return has_main ? main_[cursor.main++] : kNoMachine;
  }

  void Clear() {
    main_.clear();
    late_.clear();
    first_ = 0;
    size_ = 0;
  }
  // Forgets the machines that left, so that their rows may be given to others.
  template <class Lives>
  void DropGaps(const std::vector<uint64_t>& labels, const Lives& lives) {
    if (size_ < main_.size() + late_.size()) Compact(labels, lives);
  }
  size_t bytes() const { return (main_.capacity() + late_.capacity()) * sizeof(MachineId); }

 private:
  template <class Lives>
  void Compact(const std::vector<uint64_t>& labels, const Lives& lives) {
    std::erase_if(main_, [&](MachineId m) { return !lives(m); });
    const auto middle = static_cast<ptrdiff_t>(main_.size());
    main_.insert(main_.end(), late_.begin(), late_.end());
    std::inplace_merge(main_.begin(), main_.begin() + middle, main_.end(),
                       [&](MachineId a, MachineId b) { return labels[a] < labels[b]; });
    late_.clear();
    first_ = 0;
  }

  std::vector<MachineId> main_;  // sorted; may hold gaps
  std::vector<MachineId> late_;  // sorted; no gaps
  uint32_t first_ = 0;           // before it in main_ there are only gaps
  uint32_t size_ = 0;
};

}  // namespace muster::engine::fast
