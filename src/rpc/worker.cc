#include "rpc/worker.h"

#include <utility>

namespace muster::rpc {

Worker::Worker(size_t threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  wake_.notify_all();
}

void Worker::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(mu_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void Worker::Run() {
  std::unique_lock lock(mu_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace muster::rpc
