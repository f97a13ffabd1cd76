#include "host/pool.h"

#include <chrono>
#include <utility>

#include "base/check.h"

namespace muster::host {

Pool::Pool(size_t width, Statistics took) : took_(std::move(took)) {
  MUSTER_CHECK(width >= 1, "a pool needs at least the calling thread");
  threads_.reserve(width - 1);
  for (size_t i = 1; i < width; ++i) threads_.emplace_back([this] { Work(); });
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mu_);
    MUSTER_CHECK(job_ == nullptr, "a pool is destroyed while For runs");
    stop_ = true;
  }
  wake_.notify_all();
  threads_.clear();  // joins, before the members that the threads use go away
}

void Pool::Job::Drain() noexcept {
  // Relaxed is enough: what fn wrote is published by the mutex when the thread leaves the job.
  for (size_t i = next.fetch_add(1, std::memory_order_relaxed); i < n;
       i = next.fetch_add(1, std::memory_order_relaxed)) {
    fn(i);
  }
}

uint64_t Pool::Nanos() const {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void Pool::For(size_t n, const std::function<void(size_t)>& fn) {
  Job job{.fn = fn, .n = n};
  {
    const std::lock_guard lock(mu_);
    MUSTER_CHECK(job_ == nullptr, "calls to Pool::For overlap");
    job_ = &job;
    ++posted_;
  }
  if (n > 1) wake_.notify_all();
  job.Drain();
  // Taking the job back lets a thread that wakes up late pass by: only those at work are waited for.
  std::unique_lock lock(mu_);
  job_ = nullptr;
  idle_.wait(lock, [this] { return working_ == 0; });
}

void Pool::Work() {
  uint64_t seen = 0;
  std::unique_lock lock(mu_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || (job_ != nullptr && posted_ != seen); });
    if (stop_) return;
    seen = posted_;
    Job& job = *job_;
    ++working_;
    lock.unlock();
    job.Drain();
    lock.lock();
    if (--working_ == 0) idle_.notify_one();
  }
}

}  // namespace muster::host
