// Emptying: closes nodes that are there while that makes the fleet cheaper.
//
//   MoveIntoRoom  a node goes if all its units find room on other nodes; the dearest for what it carries first
//   Replace       sets of nodes go if their units cost less in that room and on machines bought for them; a set that
//                 does not pay is tried in halves, down to single nodes
//   then a search over the machines that were bought, and MoveIntoRoom again with the room on them
//
// One packing lives through all trials; what does not pay is undone. Room is looked for from where the last unit of the
// same group found some, for room only shrinks while nodes close. Effort is counted in steps: one step is one group of
// units tried on one node. Every change makes the fleet cheaper, so it never ends dearer than it began.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/build.h"
#include "planner/packing.h"

namespace muster::planner {

struct EmptyingOptions {
  std::vector<std::optional<int64_t>> prices;  // by fixed bin, micro-dollars; nothing: the node stays
  uint64_t trial_steps = 0;                    // of all trials together
  uint64_t search_steps = 0;
  std::function<bool(uint64_t done)> go_on;  // asked by the search; false ends it
};

class Emptying {
 public:
  // Every unit is on its bin. Both outlive it.
  Emptying(Packing& packing, Builder& builder, EmptyingOptions options);

  void Run();

  const std::vector<uint32_t>& closed() const { return closed_; }  // in the order in which they went
  int64_t saved() const { return saved_; }                         // micro-dollars
  uint64_t steps() const { return steps_ + builder_.steps(); }

 private:
  void RankNodes();
  void ListTargets();
  void MoveIntoRoom();
  void Replace();
  void TrySets(std::span<const uint32_t> nodes);
  // Closes them if that saves money. `buys`: whether machines may be bought for what finds no room.
  bool TryToClose(std::span<const uint32_t> nodes, bool buys);
  // False: a unit found none, and `all` was asked for.
  bool FillRoom(const std::vector<uint32_t>& groups, bool all);
  uint32_t FindRoom(uint32_t group, uint32_t lot);
  bool CanBeBought(uint32_t group) const;
  bool IsOpen(uint32_t node) const { return options_.prices[node] && !packing_.bins()[node].closed; }
  bool goes_on() const { return steps() < options_.trial_steps; }

  Packing& packing_;
  Builder& builder_;
  const EmptyingOptions options_;
  std::vector<uint32_t> order_;                             // nodes that may go, the dearest for what they carry first
  std::vector<int64_t> counts_;                             // units of each kind
  std::vector<uint32_t> targets_;                           // bins to look for room on, those that surely stay first
  std::vector<size_t> cursor_;                              // by group: no target before it has room
  std::vector<std::pair<uint32_t, size_t>> moved_cursors_;  // of the trial, as they were
  std::vector<uint32_t> closed_;
  int64_t saved_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace muster::planner
