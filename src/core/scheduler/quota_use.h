// QuotaUse: what every workload and set has of its tenant's quota, drafts included, and the tenants' rates.
//
// Invariant: what an object holds follows from its record with its draft.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/store_copy.h"
#include "core/scheduler/tenants.h"

namespace muster::scheduler {

class QuotaUse {
 public:
  struct State {
    Tenants::Buckets buckets;

    MUSTER_FIELDS(State, buckets)
  };

  QuotaUse(const StoreCopy& copy, const Drafts& drafts, State state);

  // The object holds what it should; of a quota: it is as the store says.
  void Sync(const ObjectId& object);
  // Whether the object may hold `after` instead of what it has. `runs`: it is to run already, so that no more than it
  // has is not refused; what begins to run is admitted like what is new, though it may hold something from before.
  Status Admit(const ObjectId& object, const std::optional<Holding>& after, bool runs) const;
  Status TakeApply(const std::string& tenant, MonoTime now) { return tenants_.TakeApply(tenant, now); }
  std::vector<contract::QuotaView> Views(const std::string& tenant) const { return tenants_.Views(tenant); }

  State state() const { return {.buckets = tenants_.buckets()}; }
  void Rebuild();
  void CheckInvariants() const;

 private:
  using Holdings = std::vector<Holding>;  // one for each tenant; two while an object changes its tenant
  Holdings Wanted(const ObjectId& object) const;

  const StoreCopy& copy_;
  const Drafts& drafts_;
  Tenants tenants_;
  std::map<ObjectId, Holdings> holdings_;  // of objects that hold something
};

}  // namespace muster::scheduler
