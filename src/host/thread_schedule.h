// ThreadSchedule: a store::Schedule on a thread of its own and real time.
//
// Thread-safety: any thread. Stop is idempotent, waits for the action that runs, and drops the rest.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "host/system_clock.h"
#include "store/schedule.h"
#include "store/store.h"

namespace muster::host {

class ThreadSchedule final : public store::Schedule {
 public:
  ThreadSchedule();
  ~ThreadSchedule() override { Stop(); }
  ThreadSchedule(const ThreadSchedule&) = delete;
  ThreadSchedule& operator=(const ThreadSchedule&) = delete;

  MonoTime now() const override { return clock_.Read().mono; }
  void After(Duration delay, std::function<void()> action) override;
  void Stop();

 private:
  void Run();

  const SystemClock clock_;
  std::mutex mu_;
  std::condition_variable wakes_;
  std::map<std::pair<MonoTime, uint64_t>, std::function<void()>> queue_;  // guarded by mu_
  uint64_t next_ = 0;                                                     // guarded by mu_
  bool stopping_ = false;                                                 // guarded by mu_
  std::thread thread_;
};

// A store in this process's memory, on real time and without faults: what `memory:` names.
std::unique_ptr<store::Store> MakeMemoryStore();

}  // namespace muster::host
