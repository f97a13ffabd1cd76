// RotatingLease: a lease for keys that go by themselves some time after they were written: at the earliest after `ttl`,
// at the latest half of that later. A lease gives all its keys one end, so a new one is granted every quarter of that
// time, and is used from then on; those before end by themselves. A store that does not answer is asked again.
//
// Thread-safety: `granted` runs on a thread of the store, one call at a time. The destructor waits for one that runs;
// `granted` must not destroy this. Store and schedule outlive it.
#pragma once

#include <functional>
#include <memory>

#include "base/time.h"
#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

class RotatingLease {
 public:
  using Granted = std::function<void(LeaseId)>;

  // Begins at once.
  RotatingLease(Store& store, Schedule& schedule, Duration ttl, Granted granted);
  ~RotatingLease();
  RotatingLease(const RotatingLease&) = delete;
  RotatingLease& operator=(const RotatingLease&) = delete;

 private:
  class Turns;
  const std::shared_ptr<Turns> turns_;
};

}  // namespace muster::store
