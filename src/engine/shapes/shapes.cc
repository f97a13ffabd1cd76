#include "engine/shapes/shapes.h"

#include <algorithm>
#include <array>

namespace muster::engine {
namespace {

constexpr std::array kShapes{
    Shape{"aggregated-500k", "500,000 Idle machines, 800 needs of 62 or 63", Aggregated500k},
    Shape{"cold-mixed", "1,000 needs of three priorities on 5,000 Idle machines in 4 buckets", ColdMixed},
    Shape{"colocated-5k", "18,000 machines, 2,580 needs, 98 % of them gangs", Colocated5k},
    Shape{"degenerate-100k", "100,000 machines, each its own price and rack; 5,000 needs, each its own profile",
          Degenerate100k},
    Shape{"gangs-100k", "100,000 Idle machines in 8 racks, 20,000 one-machine gangs", Gangs100k},
    Shape{"inventory-500k", "a list of 500,000 machines", Inventory500k},
    Shape{"inventory-60k", "a list of 60,000 machines", Inventory60k},
    Shape{"inversions-500k", "500,000 Configured machines, 100 needs that preempt 500 of them", Inversions500k},
    Shape{"keep-450k", "450,000 Configured machines, all of them wanted", Keep450k},
    Shape{"no-victims-450k", "450,000 Configured machines, 100 needs that may preempt none of them", NoVictims450k},
    Shape{"one-to-one-500k", "500,000 Idle machines, 800 needs of 625", OneToOne500k},
    Shape{"one-to-one-500k-single", "500,000 Idle machines, 500,000 needs of one", OneToOne500kSingle},
    Shape{"procurement", "500 needs, each with the choice of 4 to 12 kinds of machines", ProcurementFleet},
    Shape{"realistic-50k", "60,000 Idle machines of 144 classes, 50,000 one-machine needs", Realistic50k},
    Shape{"realistic-50k-same", "realistic-50k with every need a gang", Realistic50kSame},
    Shape{"reclaim-500k", "500,000 Configured machines, two thirds of them unwanted", Reclaim500k},
    Shape{"uber-500k", "2,252,000 machines, 2,000 clusters, some 463,000 needs", Uber500k},
    Shape{"uber-50k", "225,200 machines, 200 clusters, some 46,000 needs", Uber50k},
    Shape{"uber-5k", "22,526 machines, 20 clusters, some 4,600 needs", Uber5k},
};

}  // namespace

int64_t Scale::Of(int64_t count) const { return std::max<int64_t>(count * times / parts, 1); }

std::span<const Shape> Shapes() { return kShapes; }

const Shape* FindShape(std::string_view name) {
  const auto it = std::ranges::find(kShapes, name, &Shape::name);
  return it == kShapes.end() ? nullptr : &*it;
}

}  // namespace muster::engine
