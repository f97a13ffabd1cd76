#include "engine/shapes/shapes.h"

#include <algorithm>
#include <array>

namespace muster::engine {
namespace {

constexpr std::array kShapes{
    Shape{"cold-mixed", "1,000 needs of three priorities on 5,000 Idle machines in 4 buckets", ColdMixed},
    Shape{"colocated-5k", "18,000 machines, 2,580 needs, 98 % of them gangs", Colocated5k},
    Shape{"gangs-100k", "100,000 Idle machines in 8 racks, 20,000 one-machine gangs", Gangs100k},
    Shape{"realistic-50k", "60,000 Idle machines of 144 classes, 50,000 one-machine needs", Realistic50k},
    Shape{"realistic-50k-same", "realistic-50k with every need a gang", Realistic50kSame},
};

}  // namespace

int64_t Scale::Of(int64_t count) const { return std::max<int64_t>(count * times / parts, 1); }

std::span<const Shape> Shapes() { return kShapes; }

const Shape* FindShape(std::string_view name) {
  const auto it = std::ranges::find(kShapes, name, &Shape::name);
  return it == kShapes.end() ? nullptr : &*it;
}

}  // namespace muster::engine
