// Campaign: an election by the store. A candidate that holds a lease tries to create one key with it; the candidate
// whose key it is leads until the key is gone. The key's value says who leads, so that others can be told.
//
//   Campaign campaign(store, schedule, {.key = "/leader", .value = address, .lease = lease.id}, [](const Leadership&) {
//   ... });
//
// The candidate renews its lease by itself (Store::KeepAlive). It may act as the leader only until a ttl has passed
// since it *sent* the last renewal that succeeded; and it guards what it writes with the key's revision
// (IfUnchanged(key, leader.modified)), so that a leader that was too slow writes nothing.
//
// Invariants:
//   1. Of all candidates for a key, one at a time is told that it leads: the one whose lease the key has.
//   2. A commit whose outcome is Unknown is looked for before it is tried again: a candidate learns that it leads
//      though it was never told so.
//
// Thread-safety: as a store's. The handler runs on threads of the store and of the schedule, one call at a time, and
// may destroy the campaign. Destroying it does not resign: revoke the lease, or delete the key.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

struct CampaignRequest {
  std::string key;
  std::string value;
  LeaseId lease = 0;
  Duration timeout = 5s;   // of each call
  Duration pause = 200ms;  // after a call that failed
};

struct Leadership {
  enum class Kind : uint8_t {
    kLeading,    // `leader` is the own key
    kFollowing,  // `leader` is another's key, or nothing while there is none
    kEnded,      // the lease has ended, and with it the campaign; a follower is told when it stands again
  };
  Kind kind = Kind::kFollowing;
  std::optional<KeyValue> leader;
};

class Campaign {
 public:
  using Handler = std::function<void(const Leadership&)>;

  // Begins at once. Store and schedule outlive the campaign.
  Campaign(Store& store, Schedule& schedule, CampaignRequest request, Handler handler);
  ~Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::store
