// Packing: units on nodes while a plan is made, and what that costs.
//
// A bin is a node of the plan. A bought one has no type of its own: its type is the cheapest of its cell that its units
// allow and fit, so adding a unit makes the price grow by nothing, or to the next type that is large enough. A fixed
// one is there already and costs nothing; once it is closed it takes nothing either.
//
// Every change can be undone: Begin() starts a trial, Rollback() restores what was there, Commit() keeps it.
//
// Invariants: (1) a bin's used amounts, mask and tallies are those of its items; (2) a bought bin with items has the
// cheapest choice that takes them; (3) left(lot) + the lot's units on bins = its count; (4) cost() is the sum of the
// bins' prices. CheckInvariants() recomputes them.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "planner/problem.h"

namespace muster::planner {

inline constexpr uint32_t kNoChoice = std::numeric_limits<uint32_t>::max();

struct Item {
  uint32_t lot = 0;
  int64_t count = 0;
};

struct Bin {
  uint32_t cell = 0;
  uint32_t choice = kNoChoice;  // of a bought bin with items
  uint32_t fixed = kNoChoice;   // position in Problem::fixed; kNoChoice: the bin is bought
  uint32_t mask = 0;            // of a bought bin: node classes that every item allows
  bool closed = false;          // a fixed bin that goes
  std::vector<int64_t> used;
  std::vector<Item> items;
  std::vector<Tally> tallies;
};

// Lots of equal request, mask and cell.
struct Group {
  uint32_t request = 0;
  uint32_t mask = 0;
  uint32_t cell = kAnyCell;
  std::vector<uint32_t> lots;
  int64_t left = 0;    // units without a bin
  bool plain = false;  // no lot has limits, matches or units it must be near
};

class Packing {
 public:
  // The problem outlives the packing.
  Packing(const Problem& problem, std::vector<Lot> lots);

  const Problem& problem() const { return *problem_; }
  const std::vector<Bin>& bins() const { return bins_; }
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Lot>& lots() const { return lots_; }
  int64_t left(uint32_t lot) const { return left_[lot]; }
  int64_t left_in_all() const { return left_in_all_; }
  uint32_t group_of(uint32_t lot) const { return group_of_[lot]; }
  const DenseKind& kind_of(uint32_t lot) const { return problem_->kinds[lots_[lot].kind]; }
  const std::vector<int64_t>& request_of(uint32_t lot) const { return problem_->requests[kind_of(lot).request]; }
  int64_t cost() const { return cost_; }
  int64_t PriceOf(const Bin& bin) const { return bin.choice == kNoChoice ? 0 : problem_->choices[bin.choice].price; }

  // Whether rules between units let one more of the lot on the bin. Room is not looked at.
  bool Allows(const Bin& bin, uint32_t lot) const;
  // Whether the others on the bin could stay without one unit of the lot.
  bool MayLeave(const Bin& bin, uint32_t lot) const;
  // The choice that the bin would have with one more unit of the group: the same or a dearer one, by at most so much.
  // kNoChoice: none fits; a fixed bin that fits has its own, which is any other number.
  uint32_t ChoiceWith(const Bin& bin, const Group& group, int64_t most_growth) const;
  // The first lot of the group with units left that the bin allows; kNoChoice: none.
  uint32_t LotFor(const Bin& bin, const Group& group) const;

  // A bought bin in the cell without items.
  Bin EmptyBin(uint32_t cell) const;
  // Adds units to a bin that is not one of bins(): counts are not touched and its choice is left alone.
  void AddTo(Bin& bin, uint32_t lot, int64_t count) const;
  // The cheapest choice for what the bin holds; kNoChoice: none.
  uint32_t CheapestFor(const Bin& bin, uint32_t from = 0) const;

  // Takes a bin made with EmptyBin and AddTo; its units must be left. Returns its position.
  uint32_t Open(Bin bin);
  // Adds units that are left to the bin at the position; they must fit (checked).
  void Place(uint32_t bin, uint32_t lot, int64_t count);
  // Takes every unit off a bought bin; they are left again.
  void Empty(uint32_t bin);
  // Takes every unit off a fixed bin, which takes none from then on.
  void Close(uint32_t bin);
  // Takes units off.
  void Remove(uint32_t bin, uint32_t lot, int64_t count);

  void Begin();
  void Commit();
  void Rollback();

  void CheckInvariants() const;

 private:
  uint32_t BothMasks(uint32_t a, uint32_t b) const;
  void Save(uint32_t bin);
  void TakeOff(const Bin& bin);                  // its units are left again
  void Settle(uint32_t bin, uint32_t from = 0);  // recomputes a bin's choice, from this one on, and the cost
  void Recount(Bin& bin) const;
  bool Fits(std::span<const int64_t> capacity, const std::vector<int64_t>& used,
            const std::vector<int64_t>& more) const;

  const Problem* problem_;
  std::vector<Lot> lots_;
  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_;
  std::vector<int64_t> left_;
  int64_t left_in_all_ = 0;
  std::vector<Bin> bins_;
  std::vector<uint32_t> spare_;  // positions of bought bins without items
  int64_t cost_ = 0;
  // Masks of the problem and their intersections, made as they come up.
  mutable std::vector<std::vector<bool>> masks_;
  mutable std::map<std::pair<uint32_t, uint32_t>, uint32_t> both_;
  uint32_t every_class_ = 0;
  // The trial.
  bool trying_ = false;
  std::vector<std::pair<uint32_t, Bin>> saved_;
  std::vector<bool> is_saved_;  // by position; as long as the bins of the trial's beginning
  size_t saved_bins_ = 0;
  std::vector<uint32_t> saved_spare_;
  std::vector<std::pair<uint32_t, int64_t>> left_changes_;
  int64_t saved_cost_ = 0;
};

}  // namespace muster::planner
