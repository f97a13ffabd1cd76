#include "store/rotating_lease.h"

#include <algorithm>
#include <utility>

#include "store/guarded.h"

namespace muster::store {
namespace {

constexpr Duration kTimeout = 5s;
constexpr Duration kPause = 5s;

}  // namespace

class RotatingLease::Turns : public Guarded {
 public:
  Turns(Store& store, Schedule& schedule, Duration ttl, Granted granted)
      : store_(store), schedule_(schedule), ttl_(ttl), granted_(std::move(granted)) {}

  void Begin() {
    RunLocked([this] { Grant(); });
  }

 private:
  // Under the lock. The last key of a lease is written a turn after it was granted.
  void Grant() {
    store_.Grant(ttl_ + ttl_ / 4, kTimeout, Callback([this](const Result<Lease>& lease) {
                   if (lease) granted_(lease->id);
                   const Duration pause = lease ? ttl_ / 4 : std::min<Duration>(kPause, ttl_ / 4);
                   schedule_.After(pause, Callback([this] { Grant(); }));
                 }));
  }
  void Closed() override {}

  Store& store_;
  Schedule& schedule_;
  const Duration ttl_;
  const Granted granted_;
};

RotatingLease::RotatingLease(Store& store, Schedule& schedule, Duration ttl, Granted granted)
    : turns_(std::make_shared<Turns>(store, schedule, ttl, std::move(granted))) {
  turns_->Begin();
}

RotatingLease::~RotatingLease() { turns_->Close(); }

}  // namespace muster::store
