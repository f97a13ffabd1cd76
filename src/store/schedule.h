// Schedule: when the work of a MemoryStore runs. The simulator's kernel, a queue on virtual time (VirtualSchedule), or
// a thread (host::ThreadSchedule).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/time.h"

namespace muster::store {

class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual MonoTime now() const = 0;
  // Runs `action` that much later, never inside the call, and one action at a time; those of one moment in the order
  // they were given. Not after the schedule is destroyed.
  virtual void After(Duration delay, std::function<void()> action) = 0;
};

// Virtual time that moves when it is told to. One thread.
class VirtualSchedule final : public Schedule {
 public:
  MonoTime now() const override { return now_; }
  void After(Duration delay, std::function<void()> action) override {
    queue_.emplace(std::pair(now_ + delay, next_++), std::move(action));
  }
  // Runs the next action, at its moment. False if there is none, or none until `end`.
  bool RunOne(MonoTime end = MonoTime::max()) {
    if (queue_.empty() || queue_.begin()->first.first > end) return false;
    const auto entry = queue_.extract(queue_.begin());
    now_ = entry.key().first;
    entry.mapped()();
    return true;
  }
  void RunFor(Duration span) {
    const MonoTime end = now_ + span;
    while (RunOne(end)) {
    }
    now_ = end;
  }

 private:
  MonoTime now_ = MonoTime(1h);
  uint64_t next_ = 0;
  std::map<std::pair<MonoTime, uint64_t>, std::function<void()>> queue_;
};

}  // namespace muster::store
