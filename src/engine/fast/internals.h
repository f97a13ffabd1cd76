// The engine's tables as they are, for tests and benchmarks that measure them. Everything else asks Engine.
#pragma once

#include "engine/fast/cycle.h"
#include "engine/fast/engine.h"

namespace muster::engine::fast {

// Ids are good until the next call that changes the engine.
struct Internals {
  explicit Internals(const Engine& engine)
      : inventory(*engine.inventory_), demand(*engine.demand_), cycle(*engine.cycle_) {}

  const Inventory& inventory;
  const Demand& demand;
  const Cycle& cycle;
};

}  // namespace muster::engine::fast
