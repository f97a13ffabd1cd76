// Tied: free groups that tie in a pool, ready to be walked in the order of their machines' ids by one need after the
// other. A walk opens the groups it comes to, and only those: it costs what is picked, not how many groups there are.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/probe.h"
#include "engine/fast/claim_view.h"
#include "engine/fast/id_merge.h"

namespace muster::engine::fast {

class Tied {
 public:
  std::vector<GroupId> groups;

  void Clear() {
    groups.clear();
    version_ = 0;
  }
  // The group whose turn it is; there must be one.
  GroupId First(ClaimView& view) {
    Renew(view);
    for (;;) {
      Head& head = heads_.front();
      const MachineId first = FirstOf(head.group, view);
      if (first == kNoMachine) {
        std::ranges::pop_heap(heads_, After);
        heads_.pop_back();
        continue;
      }
      if (view.inventory().label(first) == head.label) return head.group;
      head.label = view.inventory().label(first);
      SinkFirst(heads_, After);
    }
  }

  // How many machines are left; of `enough` or more, only that they are.
  int64_t Count(const ClaimView& view, int64_t enough) const {
    int64_t count = 0;
    const int64_t stop = MUTANT("fast.counted_short") ? enough - 2 : enough;
    if (version_ == view.version()) {  // the last of the heap are the fullest
      for (size_t i = heads_.size(); i-- > 0 && count < stop;) count += view.Remaining(heads_[i].group);
    } else {
      for (size_t i = groups.size(); i-- > 0 && count < stop;) count += view.Remaining(groups[i]);
    }
    return count;
  }

 private:
  friend class TiedWalk;
  struct Head {
    uint64_t label = 0;
    GroupId group = kNoId;
  };
  static MachineId FirstOf(GroupId g, ClaimView& view) {
    if (view.Remaining(g) == 0) return kNoMachine;
    IdSet::Cursor cursor = view.FirstUnclaimed(g);
    return view.Next(g, cursor);
  }
  static bool After(const Head& a, const Head& b) { return a.label > b.label; }

  // As long as machines are only claimed, a label once read is at most that of the group's first unclaimed machine.
  void Renew(ClaimView& view) {
    if (version_ == view.version() || (version_ != 0 && MUTANT("fast.stale_heads"))) return;
    version_ = view.version();
    heads_.clear();
    for (const GroupId g : groups) {
      const MachineId first = FirstOf(g, view);
      if (first != kNoMachine) heads_.push_back({.label = view.inventory().label(first), .group = g});
    }
    std::ranges::make_heap(heads_, After);
  }

  std::vector<Head> heads_;  // a heap; groups without a machine left are gone
  uint64_t version_ = 0;     // ClaimView::version() for which it holds
};

class TiedWalk {
 public:
  explicit TiedWalk(ClaimView& view) : view_(view), merge_(view) {}

  // Walks `tied`, if given, together with `more` groups. Until End() `tied` must not be walked by another.
  void Begin(Tied* tied, std::span<const GroupId> more) {
    tied_ = tied;
    merge_.Clear();
    groups_.assign(more.begin(), more.end());
    for (const GroupId g : more) merge_.Add(g);
    if (tied_ != nullptr) tied_->Renew(view_);
    Open();
  }
  MachineId machine() const { return merge_.machine(); }
  uint32_t source() const { return merge_.source(); }  // of groups()
  GroupId group() const { return groups_[merge_.source()]; }
  const std::vector<GroupId>& groups() const { return groups_; }  // opened so far
  void Step() {
    merge_.Step();
    Open();
  }
  void End() {
    for (const Tied::Head& head : opened_) {
      tied_->heads_.push_back(head);
      std::ranges::push_heap(tied_->heads_, Tied::After);
    }
    opened_.clear();
  }

 private:
  void Open() {
    if (tied_ == nullptr) return;
    std::vector<Tied::Head>& heads = tied_->heads_;
    while (!heads.empty() && (merge_.empty() || heads.front().label < view_.inventory().label(merge_.machine()))) {
      const GroupId g = heads.front().group;
      std::ranges::pop_heap(heads, Tied::After);
      heads.pop_back();
      groups_.push_back(g);
      const MachineId first = merge_.Add(g);
      if (first != kNoMachine) opened_.push_back({.label = view_.inventory().label(first), .group = g});
    }
  }

  ClaimView& view_;
  IdMerge merge_;
  Tied* tied_ = nullptr;
  std::vector<GroupId> groups_;
  std::vector<Tied::Head> opened_;  // taken out of `tied_`
};

}  // namespace muster::engine::fast
