// The mixtures of worlds that the searches draw from.
#pragma once

#include <cstdlib>
#include <vector>

#include "engine/crowd.h"
#include "engine/random_world.h"

namespace muster::engine {

inline uint64_t SearchScale() {
  const char* scale = std::getenv("MUSTER_SEARCH_SCALE");
  return scale == nullptr ? 1 : std::strtoull(scale, nullptr, 10);
}

inline Choices ChoicesFor(uint64_t seed) {
  Rng rng(seed);
  return Choices::Random(rng, 500);
}

inline Scene SceneFor(uint64_t seed, const SceneOptions& options = {}) {
  Choices choices = ChoicesFor(seed);
  return RandomScene(choices, options);
}

inline const std::vector<SceneOptions> kFlavours = {
    {},
    {.clusters = 2, .tight = true, .slow = true},
    {.max_machines = 8, .max_needs = 4, .clusters = 1, .with_memory = false, .tight = true, .gangs = 7, .spreads = 0},
    {.max_machines = 10, .max_needs = 5, .clusters = 1, .slow = true, .gangs = 4, .spreads = 2},
    {.max_machines = 8, .max_needs = 4, .clusters = 1, .with_memory = false, .tight = true, .gangs = 0, .spreads = 7},
    {.max_machines = 9, .max_needs = 5, .clusters = 1, .with_memory = false, .tight = true, .max_count = 2, .gangs = 8},
    {.max_machines = 10, .max_needs = 6, .clusters = 2, .tight = true, .slow = true, .gangs = 5, .spreads = 1},
    {.holds = true},
    {.max_needs = 5, .clusters = 2, .tight = true, .gangs = 4, .spreads = 2, .holds = true},
    {.clusters = 2, .gangs = 2, .spreads = 1, .full = true},
    {.max_needs = 5, .clusters = 2, .tight = true, .slow = true, .gangs = 6, .spreads = 1, .full = true},
};

// The first four are small, so that a search is quick.
inline const std::vector<CrowdOptions> kCrowds = {
    {.min_machines = 10, .max_machines = 40, .max_needs = 8, .clusters = 2, .classes = 4, .gangs = 3, .spreads = 3},
    {.min_machines = 20, .max_machines = 60, .max_needs = 12, .clusters = 2},
    {.min_machines = 20, .max_machines = 90, .max_needs = 5, .clusters = 2, .gangs = 0, .spreads = 0, .cold = true},
    {.min_machines = 10, .max_machines = 50, .max_needs = 12, .clusters = 3, .classes = 4, .starved = true},
    {.max_needs = 20, .classes = 3},
    {.min_machines = 30, .max_machines = 120, .clusters = 3, .classes = 12, .gangs = 4, .spreads = 2},
    {.max_machines = 200, .max_needs = 30, .classes = 4, .gangs = 0, .spreads = 0},
    {.max_machines = 200, .max_needs = 30, .cold = true},
    {.max_machines = 200, .max_needs = 30, .starved = true},
};

// For one decision: long covers for a need or two, needs that take from each other, many that buy at once.
inline const std::vector<CrowdOptions> kFirstSights = {
    {.max_machines = 200, .max_needs = 2, .clusters = 1, .classes = 8, .gangs = 0, .spreads = 0, .cold = true},
    {.min_machines = 8, .max_machines = 30, .max_needs = 10, .clusters = 2, .gangs = 0, .spreads = 0, .starved = true},
    {.max_machines = 120, .clusters = 3, .classes = 10, .gangs = 0, .cold = true},
};

inline Choices CrowdChoicesFor(uint64_t seed) {
  Rng rng(seed);
  return Choices::Random(rng, 3000);
}

}  // namespace muster::engine
