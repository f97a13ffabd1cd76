// IdMerge: the unclaimed machines of several groups, in the order of their ids.
#pragma once

#include <algorithm>
#include <vector>

#include "base/probe.h"
#include "engine/fast/claim_view.h"

namespace muster::engine::fast {

// Brings a heap in order again whose first element was made larger.
template <class T, class After>
void SinkFirst(std::vector<T>& heap, const After& after) {
  const T moved = heap.front();
  size_t at = 0;
  for (size_t child = 1; child < heap.size(); child = 2 * at + 1) {
    if (child + 1 < heap.size() && after(heap[child], heap[child + 1])) ++child;
    if (!after(moved, heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

class IdMerge {
 public:
  explicit IdMerge(ClaimView& view) : view_(view) {}

  void Clear() {
    heads_.clear();
    sources_ = 0;
  }
  // Groups are numbered in the order they are added. The first machine, if there is one.
  MachineId Add(GroupId group) {
    Head head{.cursor = view_.FirstUnclaimed(group), .group = group, .source = sources_++};
    if (!Load(head)) return kNoMachine;
    heads_.push_back(head);
    std::ranges::push_heap(heads_, After);
    return head.machine;
  }

  bool empty() const { return heads_.empty(); }
  MachineId machine() const { return heads_.front().machine; }
  uint32_t source() const { return heads_.front().source; }

  void Step() {
    if (Load(heads_.front())) {
      SinkFirst(heads_, After);
    } else {
      DropSource();
    }
  }
  // Leaves out what is left of the group whose turn it is.
  void DropSource() {
    std::ranges::pop_heap(heads_, After);
    heads_.pop_back();
  }

 private:
  struct Head {
    IdSet::Cursor cursor;
    GroupId group = kNoId;
    uint32_t source = 0;
    MachineId machine = kNoMachine;
    uint64_t label = 0;
  };
  static bool After(const Head& a, const Head& b) {
    return MUTANT("fast.merge_order") ? a.source > b.source : a.label > b.label;
  }

  // False: there is no machine left.
  bool Load(Head& head) {
    head.machine = view_.Next(head.group, head.cursor);
    if (head.machine == kNoMachine) return false;
    head.label = view_.inventory().label(head.machine);
    return true;
  }

  ClaimView& view_;
  std::vector<Head> heads_;
  uint32_t sources_ = 0;
};

}  // namespace muster::engine::fast
