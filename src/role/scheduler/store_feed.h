// StoreFeed: tells a scheduler core what its store holds and who leads, as the core's own events: one StoreListed, then
// StoreChanged; StoreLost when the store does not answer, and StoreListed again when it does, or when it went back to
// an earlier revision; LeadershipChanged; and which lease stored events have.
//
// A store that several schedulers share has an election: the leader holds a key with a lease of three seconds. Resign
// gives it up, so that another leads at once, and compacts the store's history (store/compactor.h). A store that
// belongs to one process has no election: that process always leads, and the store bounds its history itself.
//
// Thread-safety: `tell` runs on threads of the store and of the feed, one call at a time for rows and one at a time for
// leadership. Resign from one thread, before the destructor. The store outlives the feed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/scheduler/types.h"
#include "host/thread_schedule.h"
#include "store/candidate.h"
#include "store/compactor.h"
#include "store/mirror.h"
#include "store/rotating_lease.h"
#include "store/store.h"

namespace muster::scheduler {

struct StoreFeedOptions {
  std::string prefix;   // of every key
  std::string address;  // of this scheduler, for others
  bool election = false;
  Duration lost_after = 5s;
  Duration event_ttl = 1h;
  Duration compact_every = 5min;  // with an election; zero: never
};

class StoreFeed {
 public:
  using Tell = std::function<void(Event)>;

  // Begins at once.
  StoreFeed(store::Store& store, StoreFeedOptions options, Tell tell);
  ~StoreFeed();
  StoreFeed(const StoreFeed&) = delete;
  StoreFeed& operator=(const StoreFeed&) = delete;

  // Gives up leadership, if there is an election, and waits for the store up to a second. Idempotent.
  void Resign();
  // OK, or why the store cannot be used.
  Status store_status() const;

 private:
  void Take(store::MirrorEvent event);
  void SetStatus(Status status);
  void Lead(const store::CandidateEvent& event);

  const StoreFeedOptions options_;
  const Tell tell_;
  std::optional<contract::Revision> term_;  // of the candidate's handler: leads since that revision
  bool resigned_ = false;
  mutable std::mutex mu_;
  Status status_{Code::kUnavailable, "the store was not read yet"};  // guarded by mu_
  // Last, in this order: each uses those before.
  host::ThreadSchedule schedule_;
  std::unique_ptr<store::Compactor> compactor_;  // none without an election, or where it is switched off
  std::unique_ptr<store::Mirror> mirror_;
  std::unique_ptr<store::Candidate> candidate_;
  std::unique_ptr<store::RotatingLease> event_lease_;
};

}  // namespace muster::scheduler
