// CycleTimer: the number of the cycle, and when the next one runs. A cycle runs by the clock, and soon after somebody
// requested one; requests that come together make one cycle.
#pragma once

#include <cstdint>

#include "base/fields.h"
#include "base/time.h"
#include "contract/tables.h"
#include "core/shard/config.h"

namespace muster::shard {

inline constexpr contract::Single<int64_t> kCycleRow{"cycle"};

class CycleTimer {
 public:
  struct State {
    int64_t number = 0;  // durable, though not every value of it
    bool due = false;
    bool starved = false;  // the execute queue was full
    MonoTime last;

    MUSTER_FIELDS(State, number, due, starved, last)
  };

  explicit CycleTimer(const Config& config, State state) : config_(config), state_(state) {}

  void RegisterRows(contract::RowReader& reader) {
    reader.On(kCycleRow, [this](int64_t number) { state_.number = number; });
  }
  void Start(MonoTime now) { state_.last = now - config_.cycle_interval; }

  int64_t number() const { return state_.number; }
  // The next cycle runs soon.
  void Request() { state_.due = true; }
  // The next cycle runs soon after the last operation has ended.
  void RequestWhenQueueIsEmpty() { state_.starved = true; }
  MonoTime Next(bool queue_empty) const {
    const bool soon = state_.due || (state_.starved && queue_empty);
    return state_.last + (soon ? config_.cycle_gap : config_.cycle_interval);
  }
  void Begin(MonoTime now) { state_ = {.number = state_.number + 1, .last = now}; }

  const State& state() const { return state_; }

 private:
  const Config& config_;
  State state_;
};

}  // namespace muster::shard
