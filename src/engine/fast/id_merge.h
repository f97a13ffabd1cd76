// IdMerge: the unclaimed machines of several groups, in the order of their ids.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/fast/inventory.h"

namespace muster::engine::fast {

class IdMerge {
 public:
  explicit IdMerge(Inventory& inventory) : inventory_(inventory) {}

  // Groups are numbered in the order they are added. The first `skip` unclaimed machines are passed over.
  void Add(GroupId group, uint32_t skip = 0) {
    Head head{.cursor = inventory_.FirstUnclaimed(group), .group = group, .source = sources_++};
    for (uint32_t i = 0; i < skip; ++i) inventory_.Next(group, head.cursor);
    Load(head);
  }

  bool empty() const { return heads_.empty(); }
  MachineId machine() const { return heads_.front().machine; }
  uint32_t source() const { return heads_.front().source; }

  void Step() {
    Head head = heads_.front();
    DropSource();
    Load(head);
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
  static bool After(const Head& a, const Head& b) { return a.label > b.label; }

  void Load(Head& head) {
    head.machine = inventory_.Next(head.group, head.cursor);
    if (head.machine == kNoMachine) return;
    head.label = inventory_.label(head.machine);
    heads_.push_back(head);
    std::ranges::push_heap(heads_, After);
  }

  Inventory& inventory_;
  std::vector<Head> heads_;
  uint32_t sources_ = 0;
};

}  // namespace muster::engine::fast
