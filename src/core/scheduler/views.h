// Views: nodes, workloads, sets and events as clients see them: what is durable, and what agents last measured.
#pragma once

#include <optional>
#include <string>

#include "contract/cluster_views.h"
#include "core/scheduler/node_health.h"
#include "core/scheduler/orphans.h"
#include "core/scheduler/reconciler.h"
#include "core/scheduler/rooms.h"
#include "core/scheduler/store_copy.h"

namespace muster::scheduler {

contract::EventView EventViewOf(const EventRecord& event);

class Views {
 public:
  Views(const StoreCopy& copy, const NodeHealth& health, const Rooms& rooms, const Orphans& orphans,
        const Reconciler& reconciler);

  // The object must be in the store.
  contract::NodeView Node(const std::string& id) const;
  contract::WorkloadView Workload(const std::string& id) const;
  contract::SetView Set(const std::string& name) const;
  // For watchers.
  contract::ObjectChanged Changed(const ObjectId& object) const;

 private:
  const StoreCopy& copy_;
  const NodeHealth& health_;
  const Rooms& rooms_;
  const Orphans& orphans_;
  const Reconciler& reconciler_;
};

}  // namespace muster::scheduler
