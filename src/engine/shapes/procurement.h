// Procurement instances: one need, a few classes of machines to buy, and the question what a good buyer pays. They
// measure the quality of [P1.cover] against the exact optimum.
//
// An instance is a function of its number and its draw: base/rng.h seeded with 12'000 + number gives, in this order,
// the dimensions (1 to 3), the demand in units, the classes (4 to 12), and of each class its units, its price (the sum
// of its units x $0.01, less or more up to 30 % in whole per cents) and for Draw::kLimited its count. Otherwise there
// are of each class as many as cover the need alone.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/types.h"

namespace muster::engine {

enum class Draw : uint8_t {
  kAmple,    // 1 to 100 pods of 1 to 4 units in each dimension; machines of 1, 2, 4, ... 32 x (1 to 4 units in each)
  kLimited,  // the same, with a count from 1 to as many as cover the need alone; class 0 is ample, so a cover exists
  kSkewed,   // 1 to 400 units in each dimension; machines of 1 to 64 units in each: shapes that fit each other badly
};

struct MachineClass {
  std::vector<int64_t> units;  // by dimension
  int64_t price_micros = 0;    // a multiple of kPriceStepMicros
  int64_t count = 0;
};
inline constexpr int64_t kPriceStepMicros = 100;

struct Procurement {
  std::vector<int64_t> demand;  // units by dimension, each at least 1
  std::vector<MachineClass> classes;
};

inline constexpr uint64_t kProcurements = 500;
Procurement MakeProcurement(uint64_t number, Draw draw);

// The need and its machines, all in one state: Idle or Speculative. Machine ids are "<class>-<n>".
World WorldOf(const Procurement& procurement, model::MachineState state);

}  // namespace muster::engine
