// Builder: the greedy half of the planner. Puts the units that are left on bins, and opens bins for them.
//
//   FillFixed  what is there already takes what it can, before anything is bought
//   Grow       every unit goes to the open node whose price grows least, if the unit is worth that
//   BuyRest    opens nodes for the rest: of every choice, filled by direction match, the one worth most per dollar.
//              Values follow what is left, so that no resource is used up before the others. Where exclusive units
//              force more nodes than the amounts do, each of them gets a node with its share of all others.
//
// Effort is counted in steps: one step is one group of units tried on one node. The same input gives the same bins.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/packing.h"
#include "planner/values.h"

namespace muster::planner {

struct BuildOptions {
  double balance = 0.25;       // how much every dimension counts in the direction, besides by its value
  double share = 1.5;          // of what is left per exclusive unit that one node may take
  uint32_t choices = 16;       // how many choices are filled on trial for one node
  uint32_t noise_percent = 0;  // by how much scores are disturbed, for a search
  bool reprice = true;         // whether values follow what is left
};

// A range of bins, round the end.
struct BinRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

class Builder {
 public:
  // Both outlive the builder.
  Builder(Packing& packing, const Valuer& valuer);

  void FillFixed();
  // `most`: how much a price may grow for one unit, as a multiple of its worth.
  void Grow(double most, BinRange range);
  // Units for which there is no choice stay left.
  void BuyRest(const BuildOptions& options, Rng* noise = nullptr);
  // Values by what is left, as BuyRest does by itself.
  void Reprice();
  // Values by so many units of each kind, as if no node were there.
  void PriceFor(const std::vector<int64_t>& counts);
  // Values by all units of the problem; `even` as Valuer::Of has it.
  void PriceAll(double even = 0);

  double WorthOf(const Bin& bin) const;
  // 0 is the hardest group.
  uint32_t RankOf(uint32_t group) const { return rank_[group]; }
  uint64_t steps() const { return steps_; }
  // Groups that may have units left; empty: any may. Tells BuyRest and Grow where to look.
  void LookOnlyAt(std::vector<uint32_t> groups) { only_ = std::move(groups); }

 private:
  struct Ranked {  // a choice with what its capacity is worth
    uint32_t choice = 0;
    uint32_t cell = 0;
    double worth = 0;
    double ratio = 0;
  };
  struct Filled {
    Bin bin;
    double ratio = 0;
    int64_t times = 0;
  };

  void Apply(Values values);
  void RankChoices();
  uint32_t TwinOf(uint32_t cell) const;
  void ListActive();
  double LeftWorth(uint32_t cell) const;
  double MostWorth(const BuildOptions& options) const;
  bool TakesPlaceNow(uint32_t group) const;
  // The first lot of the group that is neither placed nor on the bin that is being filled.
  uint32_t FreeLot(const Bin& bin, const Group& group) const;
  Bin Fill(const Ranked& ranked, uint32_t seed, const BuildOptions& options, Rng* noise);
  void FillFrom(std::vector<uint32_t> open, std::vector<int64_t>& room, const std::vector<double>& weight, Bin& bin,
                const BuildOptions& options, Rng* noise);
  void Take(uint32_t group, uint32_t lot, int64_t count, std::vector<int64_t>& room, Bin& bin);
  int64_t TimesThatFit(uint32_t group, const std::vector<int64_t>& room) const;
  std::optional<Filled> BestNode(uint32_t seed, const BuildOptions& options, Rng* noise);
  int64_t TimesPossible(const Bin& bin) const;
  void GrowGroup(uint32_t group, double most, BinRange range);

  Packing& packing_;
  const Valuer& valuer_;
  double even_ = 0;
  Values values_;
  std::vector<double> worth_;            // of one unit of each group
  std::vector<Ranked> ranked_;           // by ratio
  std::vector<uint32_t> twin_;           // by cell
  std::vector<uint32_t> by_difficulty_;  // every group, the hardest first
  std::vector<uint32_t> rank_;           // of each group in by_difficulty_
  std::vector<double> requests_;         // row of dimensions for each group
  std::vector<bool> near_;               // groups with units that must find others on their node
  std::vector<uint32_t> only_;
  std::vector<uint32_t> active_;  // groups with units left, the hardest first
  std::vector<int64_t> taken_;    // by lot: units on the bin that is being filled
  uint64_t steps_ = 0;
};

}  // namespace muster::planner
