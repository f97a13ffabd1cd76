// ClaimView: how much of each group is claimed, as one planner sees it.
//
// A planner that works in turn sees what is committed, and nothing else. One that speculates sees that and, on top,
// what it planned for needs before; the groups themselves it leaves alone, so that several may speculate at once.
#pragma once

#include <vector>

#include "engine/fast/inventory.h"

namespace muster::engine::fast {

class ClaimView {
 public:
  explicit ClaimView(Inventory& inventory) : inventory_(inventory) {}

  const Inventory& inventory() const { return inventory_; }

  // From now on claims are noted here only; until EndPrivate().
  void BeginPrivate() {
    is_private_ = true;
    ++phases_;
    if (private_.size() < inventory_.groups()) private_.resize(inventory_.groups());
    ++epoch_;
  }
  void EndPrivate() {
    is_private_ = false;
    ++phases_;
  }
  // While it stays the same, machines are claimed and none is given back.
  uint64_t version() const { return uint64_t{inventory_.cycle()} << 32 | phases_; }

  uint32_t Remaining(GroupId id) const {
    const uint32_t left = inventory_.Remaining(id);
    return is_private_ && private_[id].epoch == epoch_ ? left - private_[id].claimed : left;
  }
  IdSet::Cursor FirstUnclaimed(GroupId id) {
    if (!is_private_) return inventory_.FirstUnclaimed(id);
    Private& own = Open(id);
    const uint32_t claimed = inventory_.group(id).size - Remaining(id);
    if (own.cursor_at < claimed) {
      inventory_.Skip(id, own.cursor, claimed - own.cursor_at);
      own.cursor_at = claimed;
    }
    return own.cursor;
  }
  MachineId Next(GroupId id, IdSet::Cursor& cursor) const { return inventory_.Next(id, cursor); }
  void Claim(GroupId id, uint32_t count) { Open(id).claimed += count; }

  NeedId held_for(GroupId id) const {
    const Group& g = inventory_.group(id);
    return g.cycle == inventory_.cycle() ? g.held_for : kNoId;
  }
  bool pledge_ended(GroupId id) const {
    const Group& g = inventory_.group(id);
    return g.cycle == inventory_.cycle() && g.pledge_ended;
  }

 private:
  struct Private {
    uint32_t epoch = 0;
    uint32_t claimed = 0;
    IdSet::Cursor cursor;
    uint32_t cursor_at = 0;
  };
  Private& Open(GroupId id) {
    Private& own = private_[id];
    if (own.epoch == epoch_) return own;
    own = {.epoch = epoch_};
    const Group& g = inventory_.group(id);
    const bool walked = g.cursor_cycle == inventory_.cycle();
    own.cursor = walked ? g.cursor : g.members.Begin();
    own.cursor_at = walked ? g.cursor_at : 0;
    return own;
  }

  Inventory& inventory_;
  bool is_private_ = false;
  Rows<GroupId, Private> private_;
  uint32_t epoch_ = 0;
  uint32_t phases_ = 0;
};

}  // namespace muster::engine::fast
