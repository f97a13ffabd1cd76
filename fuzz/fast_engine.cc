// Any bytes as the choices behind a world and its history: the fast engine decides as the reference does.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "engine/compare.h"
#include "engine/flavours.h"

// The first byte says what the others make: a history of a random world, or of a crowd small enough to be quick.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  muster::engine::Choices choices(std::vector<uint8_t>(data + 1, data + size));
  muster::engine::Comparison comparison;
  const size_t worlds = muster::engine::kFlavours.size();
  const size_t kind = data[0] % (worlds + 4);
  if (kind < worlds) {
    const muster::engine::Scene scene = RandomScene(choices, muster::engine::kFlavours[kind]);
    const auto broken = RunHistory(choices, scene, 6, comparison.AsFunction());
    MUSTER_CHECK(!broken, "{}", *broken);
  } else {
    muster::engine::Crowd crowd = RandomCrowd(choices, muster::engine::kCrowds[kind - worlds]);
    const auto broken = RunCrowd(choices, std::move(crowd), 8, comparison.AsFunction());
    MUSTER_CHECK(!broken, "{}", *broken);
  }
  MUSTER_CHECK(comparison.difference().empty(), "{}", comparison.difference());
  return 0;
}
