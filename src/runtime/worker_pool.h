// WorkerPool: a few threads that carry out tasks in the order in which they were given.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace muster::runtime {

class WorkerPool {
 public:
  explicit WorkerPool(size_t threads) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  ~WorkerPool() { Stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False after Stop: the task was not taken.
  bool Post(std::function<void()> task) {
    {
      const std::lock_guard lock(mu_);
      if (stopping_) return false;
      tasks_.push_back(std::move(task));
    }
    wakes_.notify_one();
    return true;
  }
  // Carries out what was given and ends the threads. Idempotent; not from a task.
  void Stop() {
    {
      const std::lock_guard lock(mu_);
      stopping_ = true;
    }
    wakes_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void Run() {
    std::unique_lock lock(mu_);
    while (true) {
      wakes_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mu_;
  std::condition_variable wakes_;
  std::deque<std::function<void()>> tasks_;  // guarded by mu_
  bool stopping_ = false;                    // guarded by mu_
  std::vector<std::thread> threads_;
};

}  // namespace muster::runtime
