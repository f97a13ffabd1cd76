#include "engine/reference/decide.h"

#include "engine/reference/cycle.h"

namespace muster::engine::reference {

// [T.same-answer] [T.settle]
Decision Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy) {
  Cycle cycle = Prepare(world, memory, now, policy);
  Normalise(cycle);
  Phase1(cycle);
  Phase2(cycle);
  Phase3(cycle);
  memory = NextMemory(cycle);
  return Conclude(cycle);
}

}  // namespace muster::engine::reference
