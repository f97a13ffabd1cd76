#include "bench/plans.h"

#include <array>

namespace muster::bench {

std::span<const Plan> Plans() {
  static constexpr std::array kPlans{
      Plan{.shape = "gangs-100k"},
      Plan{.shape = "realistic-50k"},
      Plan{.shape = "realistic-50k-same"},
      Plan{.shape = "colocated-5k", .warm = true},
      Plan{.shape = "inversions-500k"},
      Plan{.shape = "no-victims-450k"},
      Plan{.shape = "reclaim-500k", .surplus_hold = Duration::zero()},
      Plan{.shape = "keep-450k"},
      Plan{.shape = "inventory-60k", .inventory = true},
      Plan{.shape = "inventory-500k", .inventory = true},
      Plan{.shape = "uber-5k", .warm = true},
      Plan{.shape = "uber-50k", .warm = true},
      Plan{.shape = "uber-500k", .warm = true},
      Plan{.shape = "aggregated-500k", .warm = true},
      Plan{.shape = "one-to-one-500k"},
      Plan{.shape = "one-to-one-500k-single"},
      Plan{.shape = "procurement"},
      Plan{.shape = "degenerate-100k"},
      Plan{.shape = "cold-mixed"},
  };
  return kPlans;
}

}  // namespace muster::bench
