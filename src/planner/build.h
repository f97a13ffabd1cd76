// Builder: the greedy half of the planner. Puts the units that are left on bins, and opens bins for them.
//
//   FillFixed   what is there already takes what it can, before anything is bought
//   OpenPlaces  where exclusive units force more nodes than the amounts do, a node for each of them
//   Grow        every unit goes to the open node whose price grows least, if that is what the unit is worth
//   BuyRest     opens nodes for the rest: of every choice, filled by direction match, the one worth most per dollar
//
// The same input gives the same bins. Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "planner/packing.h"
#include "planner/values.h"

namespace muster::planner {

struct BuildOptions {
  double growth = 1.25;        // the most that a price may grow for one unit, as a multiple of its worth
  double balance = 0.25;       // how much every dimension counts in the direction, besides by its value
  uint32_t choices = 48;       // how many choices are filled on trial for one node
  uint32_t noise_percent = 0;  // by how much scores are disturbed, for a search
};

class Builder {
 public:
  // Both outlive the builder.
  Builder(Packing& packing, const Values& values) : packing_(packing), values_(values) { Prepare(); }

  void FillFixed(const BuildOptions& options);
  void OpenPlaces();
  void Grow(const BuildOptions& options, bool at_any_price = false);
  // Units for which there is no choice stay left.
  void BuyRest(const BuildOptions& options, Rng* noise = nullptr);
  // All of the above.
  void Build(const BuildOptions& options);

  // Trial fills done so far: the measure of effort.
  uint64_t fills() const { return fills_; }

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

  void Prepare();
  uint32_t TwinOf(uint32_t cell) const;
  double LeftWorth(uint32_t cell) const;
  // The first lot of the group that is neither placed nor on the bin that is being filled.
  uint32_t FreeLot(const Bin& bin, const Group& group) const;
  Bin Fill(const Ranked& ranked, uint32_t seed, const BuildOptions& options, Rng* noise);
  std::optional<Filled> BestNode(uint32_t seed, const BuildOptions& options, Rng* noise);
  int64_t TimesPossible(const Bin& bin) const;
  void GrowGroup(uint32_t group, const BuildOptions& options, bool at_any_price);

  Packing& packing_;
  const Values& values_;
  std::vector<Ranked> ranked_;           // by ratio
  std::vector<uint32_t> twin_;           // by cell
  std::vector<uint32_t> by_difficulty_;  // every group, the hardest first
  std::vector<double> difficulty_;
  std::vector<double> requests_;  // row of dimensions for each group
  std::vector<bool> near_;        // groups with units that must find others on their node
  std::vector<uint32_t> active_;  // groups with units left, the hardest first
  std::vector<int64_t> taken_;    // by lot: units on the bin that is being filled
  uint64_t fills_ = 0;
};

}  // namespace muster::planner
