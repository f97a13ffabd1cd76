// Worker: a few threads for work that is too long for the thread that has it, such as encoding a list of 100,000
// machines for a caller while the loop goes on.
//
// Thread-safety: Post may be called from any thread, also from posted work.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace muster::rpc {

class Worker {
 public:
  explicit Worker(size_t threads);
  ~Worker();  // finishes what was posted; nothing may be posted any more
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `work` soon, in order of posting with one thread. It must not throw.
  void Post(std::function<void()> work);

 private:
  void Run();

  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;  // guarded by mu_
  bool stop_ = false;                        // guarded by mu_
  std::vector<std::jthread> threads_;        // last: they use the rest
};

}  // namespace muster::rpc
