// Comparison: the reference and the fast placer side by side, through batches and changes. The first difference ends
// it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/fast/placer.h"
#include "placement/random_world.h"
#include "placement/types.h"

namespace muster::placement {

// What the worlds of a search reached.
struct Reach {
  std::map<std::string, uint64_t> reasons;  // of outcomes and of refused nodes, by name
  std::array<uint64_t, 6> decided_by{};     // which member of the score told the best node from the second best
  std::map<std::string, uint64_t> changes;  // of histories, by name
  uint64_t batches = 0;
  uint64_t units = 0;
};

class Comparison {
 public:
  Comparison(const Scene& scene, Reach& reach);

  // Each changes both worlds.
  void Place(const std::vector<Unit>& batch);
  void RandomChange(Rng& rng);

  // "" as long as both agree.
  const std::string& difference() const { return difference_; }
  const World& world() const { return world_; }
  int& next() { return next_; }

 private:
  void CompareState();
  void CountScores(const Unit& unit);
  void ChangeNode(Rng& rng);
  void RemoveNode(Rng& rng);
  void ChangeSettings(Rng& rng);
  void AddToPlacer(PlacedUnit placed);
  void AddKind(const Kind& kind);
  void ForgetKinds();
  // The fast placer's index of a kind of the world; a forgotten kind gets one again.
  KindIndex InPlacer(KindIndex kind);
  Unit InPlacer(Unit unit);

  Reach& reach_;
  const Policy policy_;
  World world_;
  fast::Placer placer_;
  std::vector<std::optional<KindIndex>> indexes_;  // by kind of the world, in the fast placer; nothing: forgotten
  int next_ = 1000;                                // number of the next unit and node
  std::string difference_;
};

// One world and its batch; the difference, "" if there is none.
std::string CompareScene(uint64_t seed, Reach& reach);
// The same for a world of more nodes than a block has, and a longer batch.
std::string CompareWide(uint64_t seed, Reach& reach);
// The same for a world in which units are preempted.
std::string CompareCrowded(uint64_t seed, Reach& reach);
// A world and so many changes, with a batch after every second one.
std::string CompareHistory(uint64_t seed, int changes, Reach& reach);

}  // namespace muster::placement
