// Which neighbouring groups of a lane tie, so that their machines go by id together.
#pragma once

#include "engine/fast/inventory.h"

namespace muster::engine::fast {

inline bool TiesInPrice(const Inventory& inventory, GroupId a, GroupId b) {
  return inventory.catalogue().cls(inventory.group(a).cls).price ==
         inventory.catalogue().cls(inventory.group(b).cls).price;
}

inline bool TiesInKeepOrder(const Inventory& inventory, GroupId a, GroupId b) {
  const Group& x = inventory.group(a);
  const Group& y = inventory.group(b);
  return x.state == y.state && TiesInPrice(inventory, a, b) &&
         (x.stamp == y.stamp || inventory.stamp(x.stamp).reclamation == inventory.stamp(y.stamp).reclamation);
}

}  // namespace muster::engine::fast
