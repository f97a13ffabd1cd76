// MemoryStore: a store in memory, on any schedule, with every fault a real store has: answers that come late or never,
// commits that happened though the caller saw Unknown, watches that lag, history that is compacted under them, and
// times without any answer. With a VirtualSchedule or the simulator's kernel it is deterministic: one seed, one run.
//
// Durable it is not. Leases end by the schedule's time.
//
// Thread-safety: as its schedule's. The store may be destroyed before the schedule, not after it.
#pragma once

#include <cstdint>
#include <memory>

#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

struct MemoryFaults {
  Duration min_delay{};  // of a request, and again of its answer
  Duration max_delay{};
  uint32_t slow_per_mille = 0;  // takes up to `slow` instead
  Duration slow = 10s;
  uint32_t lost_request_per_mille = 0;  // nothing happens, and the caller sees DEADLINE_EXCEEDED
  uint32_t lost_answer_per_mille = 0;   // it happens, and the caller sees DEADLINE_EXCEEDED
  Duration max_watch_lag{};             // of each batch
  uint32_t compact_per_mille = 0;       // a commit is followed by a compaction of all history
};

class MemoryStore final : public Store {
 public:
  // The schedule outlives the store.
  explicit MemoryStore(Schedule& schedule, MemoryFaults faults = {}, uint64_t seed = 1);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void Range(KeyRange range, Duration timeout, RangeDone done) override;
  void Commit(Transaction transaction, Duration timeout, CommitDone done) override;
  std::unique_ptr<WatchHandle> Watch(KeyRange range, Revision from, WatchHandler handler) override;
  void Grant(Duration ttl, Duration timeout, LeaseDone done) override;
  void KeepAlive(LeaseId lease, Duration timeout, LeaseDone done) override;
  void Revoke(LeaseId lease, Duration timeout, Done done) override;
  void Compact(Revision revision, Duration timeout, Done done) override;

  // From the schedule's thread only.
  void SetFaults(MemoryFaults faults);
  // While it is not reachable, requests are lost and watches stand still.
  void SetReachable(bool reachable);
  // The store is lost, and begins again with what Rows() once said, or with nothing: `{.revision = 1}`. Who uses it is
  // not told; leases and their keys are gone.
  void GoBackTo(const RangeReply& backup);
  // What the store holds at this moment, whatever its faults: for those who judge a simulated world.
  RangeReply Rows() const;
  Revision revision() const;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::store
