// Tables: what planners and the cycle read of needs and groups all the time, under short names.
#pragma once

#include "engine/fast/demand.h"
#include "engine/fast/inventory.h"

namespace muster::engine::fast {

class Tables {
 protected:
  Tables(Inventory& inventory, Demand& demand) : inventory_(inventory), demand_(demand) {}

  const NeedRow& need(NeedId n) const { return *demand_.order()[n]; }
  const Catalogue& catalogue() const { return std::as_const(inventory_).catalogue(); }
  const Fit& fit(NeedId n) const { return catalogue().fit_as_is(need(n).fit); }
  size_t dims() const { return catalogue().dimensions(); }
  const Amounts& each(GroupId g) const { return catalogue().each(inventory_.group(g).cls); }
  const ClusterState& cluster(NeedId n) const { return inventory_.cluster(need(n).cluster).state; }
  bool Acquires(NeedId n) const { return cluster(n).acquires(); }

  Inventory& inventory_;
  Demand& demand_;
};

}  // namespace muster::engine::fast
