#include "store/memory_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <utility>

#include "base/probe.h"
#include "base/rng.h"
#include "store/table.h"

namespace muster::store {
namespace {

Duration RoundUpToSeconds(Duration ttl) { return std::max<Duration>(std::chrono::ceil<std::chrono::seconds>(ttl), 1s); }

Status NoAnswer() { return {Code::kDeadlineExceeded, "the store did not answer in time"}; }
Status LeaseEnded() { return {Code::kNotFound, "the lease has ended"}; }

}  // namespace

// Outlives the store while an action of the schedule refers to it; such an action does nothing then.
class MemoryStore::State : public std::enable_shared_from_this<State> {
 public:
  State(Schedule& schedule, MemoryFaults faults, uint64_t seed) : schedule_(schedule), faults_(faults), rng_(seed) {}

  // `work` makes the reply when the request arrives; `done` gets it, or no_answer(). All run on the schedule.
  template <class Work, class NoAnswerOf, class Reply>
  void Ask(Duration timeout, Work work, NoAnswerOf no_answer, std::function<void(Reply)> done) {
    After({}, [this, timeout, work = std::move(work), no_answer, done = std::move(done)]() mutable {
      const Route route = DrawRoute(timeout);
      if (!route.answered) After(timeout, [no_answer, done] { done(no_answer()); });
      if (!route.arrives) return;
      After(route.there, [this, route, work = std::move(work), done = std::move(done)]() mutable {
        Reply reply = work(*this);
        if (MUTANT("store.retried_after_lost_answer") && !route.answered) reply = work(*this);
        if (!route.answered) return;
        After(route.back, [reply = std::move(reply), done = std::move(done)]() mutable { done(std::move(reply)); });
      });
    });
  }

  // Runs `action` if the store still lives then.
  template <class Action>
  void After(Duration delay, Action action) {
    auto shared = std::make_shared<Action>(std::move(action));
    schedule_.After(delay, [self = shared_from_this(), shared] {
      if (!self->closed_) (*shared)();
    });
  }

  CommitOutcome Commit(const Transaction& transaction) {
    CommitOutcome outcome = table_.Apply(transaction);
    if (rng_.Chance(faults_.compact_per_mille, 1000)) static_cast<void>(table_.Compact(table_.revision()));
    Changed();
    return outcome;
  }
  RangeReply Read(const KeyRange& range) const { return table_.Read(range); }
  Revision revision() const { return table_.revision(); }
  Status CompactTo(Revision revision) {
    Status status = table_.Compact(revision);
    Changed();  // watches learn that they are too late
    return status;
  }

  Lease Grant(Duration ttl) {
    const LeaseId id = table_.AddLease();
    leases_[id] = {.ttl = ttl, .ends = schedule_.now() + ttl};
    EndLeaseWhenDue(id, ttl);
    return {.id = id, .ttl = ttl};
  }
  Result<Lease> KeepAlive(LeaseId id) {
    const auto found = leases_.find(id);
    if (found == leases_.end()) return std::unexpected(LeaseEnded());
    found->second.ends = schedule_.now() + found->second.ttl;
    return Lease{.id = id, .ttl = found->second.ttl};
  }
  Status Revoke(LeaseId id) {
    if (!table_.EndLease(id)) return LeaseEnded();
    leases_.erase(id);
    Changed();
    return {};
  }

  void AddWatch(KeyRange range, Revision from, std::shared_ptr<WatchGate> gate) {
    const uint64_t id = ++last_watch_;
    watches_[id] = {.range = std::move(range), .next = from, .gate = std::move(gate)};
    PumpSoon(id);
  }

  void Close() { closed_ = true; }
  void SetFaults(MemoryFaults faults) { faults_ = faults; }
  void SetReachable(bool reachable) {
    reachable_ = reachable;
    Changed();
  }
  void GoBackTo(const RangeReply& backup) {
    table_.GoBackTo(backup);
    leases_.clear();
    Changed();
  }

 private:
  struct HeldLease {
    Duration ttl{};
    MonoTime ends;
  };
  struct OpenWatch {
    KeyRange range;
    Revision next = 0;
    std::shared_ptr<WatchGate> gate;
    bool pump_due = false;
  };
  struct Route {
    bool arrives = true;
    bool answered = true;
    Duration there{};
    Duration back{};
  };

  Duration DrawDelay() {
    if (rng_.Chance(faults_.slow_per_mille, 1000)) return DrawUpTo(faults_.slow);
    return faults_.min_delay + DrawUpTo(faults_.max_delay - faults_.min_delay);
  }
  Duration DrawUpTo(Duration most) {
    return most <= Duration::zero() ? Duration::zero() : Duration(rng_.Between(0, most.count()));
  }
  Route DrawRoute(Duration timeout) {
    Route route;
    route.there = DrawDelay();
    route.back = DrawDelay();
    route.arrives = reachable_ && !rng_.Chance(faults_.lost_request_per_mille, 1000);
    const bool lost = rng_.Chance(faults_.lost_answer_per_mille, 1000);
    route.answered = route.arrives && !lost && route.there + route.back <= timeout;
    if (route.arrives && !route.answered) PROBE("store.happened_unanswered");
    return route;
  }

  void EndLeaseWhenDue(LeaseId id, Duration in) {
    After(in, [this, id] {
      const auto found = leases_.find(id);
      if (found == leases_.end()) return;
      if (found->second.ends > schedule_.now()) return EndLeaseWhenDue(id, found->second.ends - schedule_.now());
      leases_.erase(found);
      table_.EndLease(id);
      Changed();
    });
  }

  void Changed() {
    std::erase_if(watches_, [](const auto& watch) { return !watch.second.gate->open(); });
    for (const auto& [id, watch] : watches_) PumpSoon(id);
  }
  void PumpSoon(uint64_t id) {
    if (std::exchange(watches_.at(id).pump_due, true)) return;
    After(DrawUpTo(faults_.max_watch_lag), [this, id] { Pump(id); });
  }
  // Gives a watch what has happened since it was given something.
  void Pump(uint64_t id) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;
    OpenWatch& watch = found->second;
    watch.pump_due = false;
    if (!reachable_) return;
    if (watch.next <= table_.compacted() && !MUTANT("store.compacted_not_said")) {
      PROBE("store.watch_compacted");
      const auto gate = watch.gate;
      watches_.erase(found);
      gate->Deliver(Compacted{table_.compacted()});
      return;
    }
    WatchBatch batch{.revision = 0, .changes = table_.History(watch.range, watch.next)};
    watch.next = std::max(watch.next, table_.revision() + (MUTANT("store.watch_repeats") ? 0 : 1));
    if (batch.changes.empty()) return;
    if (MUTANT("store.watch_reorders")) std::ranges::reverse(batch.changes);
    batch.revision = batch.changes.back().now.modified;
    const auto gate = watch.gate;  // the handler may change watches_
    gate->Deliver(batch);
  }

  // Set at construction.
  Schedule& schedule_;

  // Owned by the schedule's thread.
  MemoryFaults faults_;
  Rng rng_;
  Table table_;
  std::map<LeaseId, HeldLease> leases_;
  std::map<uint64_t, OpenWatch> watches_;
  uint64_t last_watch_ = 0;
  bool reachable_ = true;

  std::atomic<bool> closed_ = false;
};

MemoryStore::MemoryStore(Schedule& schedule, MemoryFaults faults, uint64_t seed)
    : state_(std::make_shared<State>(schedule, faults, seed)) {}
MemoryStore::~MemoryStore() { state_->Close(); }

void MemoryStore::SetFaults(MemoryFaults faults) { state_->SetFaults(faults); }
RangeReply MemoryStore::Rows() const { return state_->Read(contract::EveryKey()); }
Revision MemoryStore::revision() const { return state_->revision(); }

void MemoryStore::SetReachable(bool reachable) { state_->SetReachable(reachable); }
void MemoryStore::GoBackTo(const RangeReply& backup) { state_->GoBackTo(backup); }

void MemoryStore::Range(KeyRange range, Duration timeout, RangeDone done) {
  state_->Ask(
      timeout, [range = std::move(range)](State& state) -> Result<RangeReply> { return state.Read(range); },
      []() -> Result<RangeReply> { return std::unexpected(NoAnswer()); }, std::move(done));
}

void MemoryStore::Commit(Transaction transaction, Duration timeout, CommitDone done) {
  if (Status status = Validate(transaction); !status.ok()) {
    return state_->After({}, [status, done = std::move(done)] { done(contract::Unknown{status}); });
  }
  state_->Ask(
      timeout, [transaction = std::move(transaction)](State& state) { return state.Commit(transaction); },
      []() -> CommitOutcome { return contract::Unknown{NoAnswer()}; }, std::move(done));
}

std::unique_ptr<WatchHandle> MemoryStore::Watch(KeyRange range, Revision from, WatchHandler handler) {
  auto gate = std::make_shared<WatchGate>(std::move(handler));
  state_->After({}, [state = state_.get(), range = std::move(range), from, gate]() mutable {
    state->AddWatch(std::move(range), from, std::move(gate));
  });
  return std::make_unique<WatchHandle>(std::move(gate));
}

void MemoryStore::Grant(Duration ttl, Duration timeout, LeaseDone done) {
  state_->Ask(
      timeout, [ttl = RoundUpToSeconds(ttl)](State& state) -> Result<Lease> { return state.Grant(ttl); },
      []() -> Result<Lease> { return std::unexpected(NoAnswer()); }, std::move(done));
}

void MemoryStore::KeepAlive(LeaseId lease, Duration timeout, LeaseDone done) {
  state_->Ask(
      timeout, [lease](State& state) { return state.KeepAlive(lease); },
      []() -> Result<Lease> { return std::unexpected(NoAnswer()); }, std::move(done));
}

void MemoryStore::Revoke(LeaseId lease, Duration timeout, Done done) {
  state_->Ask(timeout, [lease](State& state) { return state.Revoke(lease); }, NoAnswer, std::move(done));
}

void MemoryStore::Compact(Revision revision, Duration timeout, Done done) {
  state_->Ask(timeout, [revision](State& state) { return state.CompactTo(revision); }, NoAnswer, std::move(done));
}

}  // namespace muster::store
