#include "host/thread_schedule.h"

#include <algorithm>

#include "store/memory_store.h"

namespace muster::host {
namespace {

// The schedule ends before the store, so that no answer comes from a store that is gone.
class OwnedMemoryStore final : public store::Store {
 public:
  ~OwnedMemoryStore() override { schedule_.Stop(); }

  void Range(store::KeyRange range, Duration timeout, RangeDone done) override {
    store_.Range(std::move(range), timeout, std::move(done));
  }
  void Commit(store::Transaction transaction, Duration timeout, CommitDone done) override {
    store_.Commit(std::move(transaction), timeout, std::move(done));
  }
  std::unique_ptr<store::WatchHandle> Watch(store::KeyRange range, store::Revision from,
                                            store::WatchHandler handler) override {
    return store_.Watch(std::move(range), from, std::move(handler));
  }
  void Grant(Duration ttl, Duration timeout, LeaseDone done) override { store_.Grant(ttl, timeout, std::move(done)); }
  void KeepAlive(store::LeaseId lease, Duration timeout, LeaseDone done) override {
    store_.KeepAlive(lease, timeout, std::move(done));
  }
  void Revoke(store::LeaseId lease, Duration timeout, Done done) override {
    store_.Revoke(lease, timeout, std::move(done));
  }
  void Compact(store::Revision revision, Duration timeout, Done done) override {
    store_.Compact(revision, timeout, std::move(done));
  }

 private:
  ThreadSchedule schedule_;
  store::MemoryStore store_{schedule_};
};

}  // namespace

ThreadSchedule::ThreadSchedule() : thread_([this] { Run(); }) {}

void ThreadSchedule::After(Duration delay, std::function<void()> action) {
  {
    const std::lock_guard lock(mu_);
    queue_.emplace(std::pair(now() + delay, next_++), std::move(action));
  }
  wakes_.notify_one();
}

void ThreadSchedule::Stop() {
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ThreadSchedule::Run() {
  std::unique_lock lock(mu_);
  while (!stopping_) {
    if (queue_.empty()) {
      wakes_.wait(lock);
      continue;
    }
    const Duration left = queue_.begin()->first.first - now();
    if (left > Duration::zero()) {
      wakes_.wait_for(lock, std::min<Duration>(left, 1h));
      continue;
    }
    const auto entry = queue_.extract(queue_.begin());
    lock.unlock();
    entry.mapped()();
    lock.lock();
  }
}

std::unique_ptr<store::Store> MakeMemoryStore() { return std::make_unique<OwnedMemoryStore>(); }

}  // namespace muster::host
