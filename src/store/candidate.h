// Candidate: takes part in an election for as long as it lives. It is granted a lease, renews it, campaigns with it
// (campaign.h), and stands again with another lease when that one has ended; so that a core needs to handle only two
// events: Leading and Following.
//
//   store::Candidate candidate(store, schedule, {.key = "/leader", .value = address}, [&](store::CandidateEvent event)
//   {
//     std::visit([&](auto& e) { host.Post(std::move(e)); }, event);
//   });
//
// Invariants:
//   1. Of all candidates for a key, one at a time is before the `until` of its last Leading, if their clocks run at one
//      speed and nothing but a lease deletes the key: `until` is a ttl after the call of the last renewal that
//      succeeded.
//   2. A candidate begins as a follower. Following is given when `until` has passed without a renewal, and when another
//      leads. The core looks at `until` all the same: the event may be late.
//   3. Leading is given with every renewal, about every third of the ttl. While `key.modified` is the same, it is one
//      term.
//
// Thread-safety: the handler runs on threads of the store and of the schedule, one call at a time, in order. It must
// not block, and neither resign nor destroy the candidate. It does not run after the destructor has come back. Store
// and schedule outlive the candidate.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "base/status.h"
#include "contract/store_view.h"
#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

struct CandidateOptions {
  std::string key;
  std::string value;       // who leads, for the others
  Duration ttl = 3s;       // of the lease
  Duration timeout = 1s;   // of each call
  Duration pause = 200ms;  // after a call that failed
};

using CandidateEvent = std::variant<contract::Leading, contract::Following>;

class Candidate {
 public:
  using Handler = std::function<void(CandidateEvent)>;

  // Begins at once.
  Candidate(Store& store, Schedule& schedule, CandidateOptions options, Handler handler);
  // Does not resign: another leads when the lease has ended.
  ~Candidate();
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  // Stops for good: Following is given if it led, and the lease is revoked, so that another leads at once. `done` gets
  // how that ended, as a store gives it; OK if there was no lease. Once.
  void Resign(std::function<void(Status)> done);

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::store
