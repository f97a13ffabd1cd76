// Pool: the Parallel of production, real threads. The thread that calls For works too, so a pool of width N starts N-1.
//
// Work is handed out one index at a time: with unequal pieces no thread waits for another until the work is gone.
//
// Thread-safety: calls to For may not overlap (the contract of Parallel), also not from inside fn; both are checked.
// fn must not throw: an exception in it ends the program.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace muster::host {

class Pool final : public Parallel {
 public:
  using Statistics = std::function<void(std::string_view what, uint64_t nanos)>;

  // The width is at least 1. `took` gets the statistics of whoever uses the pool, on its thread.
  explicit Pool(size_t width, Statistics took = [](std::string_view, uint64_t) {});
  ~Pool() override;  // joins the threads
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void For(size_t n, const std::function<void(size_t)>& fn) override;
  void OneAtATime(const std::function<void()>& step) override {
    const std::lock_guard lock(step_);
    step();
  }
  uint64_t Nanos() const override;
  void Took(std::string_view what, uint64_t nanos) override { took_(what, nanos); }
  size_t width() const override { return threads_.size() + 1; }

 private:
  struct Job {
    const std::function<void(size_t)>& fn;
    const size_t n;
    std::atomic<size_t> next = 0;  // the first index nobody has taken
    void Drain() noexcept;
  };
  void Work();

  const Statistics took_;
  std::mutex mu_;
  std::condition_variable wake_;  // a job was posted, or stop_
  std::condition_variable idle_;  // working_ fell to 0
  Job* job_ = nullptr;            // guarded by mu_
  size_t working_ = 0;            // guarded by mu_: threads that hold a pointer to the job
  uint64_t posted_ = 0;           // guarded by mu_: jobs so far, so that a thread takes part in each at most once
  bool stop_ = false;             // guarded by mu_
  std::mutex step_;               // held by OneAtATime
  std::vector<std::jthread> threads_;
};

}  // namespace muster::host
