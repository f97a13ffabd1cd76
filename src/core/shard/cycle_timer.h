// CycleTimer: the number of the cycle, and when the next one runs. A cycle runs by the clock, and soon after somebody
// requested one; requests that come together make one cycle. Ages of short needs count cycles that are at least a cycle
// interval apart, so that a burst of news makes nothing old.
#pragma once

#include <cstdint>

#include "base/fields.h"
#include "base/probe.h"
#include "base/time.h"
#include "contract/tables.h"
#include "core/shard/config.h"

namespace muster::shard {

inline constexpr contract::Single<int64_t> kCycleRow{"cycle"};
inline constexpr contract::Single<int64_t> kCountedRow{"counted"};

class CycleTimer {
 public:
  struct State {
    int64_t number = 0;  // durable, though not every value of it
    bool due = false;
    bool starved = false;  // the execute queue was full
    MonoTime last;
    int64_t counted = 0;  // durable as the number is: cycles that count for ages
    MonoTime last_counted;

    MUSTER_FIELDS(State, number, due, starved, last, counted, last_counted)
  };

  explicit CycleTimer(const Config& config, State state) : config_(config), state_(state) {}

  void RegisterRows(contract::RowReader& reader) {
    reader.On(kCycleRow, [this](int64_t number) { state_.number = number; });
    reader.On(kCountedRow, [this](int64_t counted) { state_.counted = counted; });
  }
  void Start(MonoTime now) {
    state_.last = state_.last_counted = now - config_.cycle_interval;
    if (state_.counted == 0) state_.counted = state_.number;  // an earlier build counted every cycle
  }

  int64_t number() const { return state_.number; }
  int64_t counted() const { return state_.counted; }
  // When the last cycle ran.
  MonoTime last() const { return state_.last; }
  // Whether the cycle that runs now counts for ages.
  bool counts() const { return state_.last == state_.last_counted; }
  // The next cycle runs soon.
  void Request() { state_.due = true; }
  // The next cycle runs soon after the last operation has ended.
  void RequestWhenQueueIsEmpty() { state_.starved = true; }
  MonoTime Next(bool queue_empty) const {
    const bool soon = state_.due || (state_.starved && queue_empty);
    return state_.last + (soon ? config_.cycle_gap : config_.cycle_interval);
  }
  void Begin(MonoTime now) {
    const bool counts = now - state_.last_counted >= config_.cycle_interval || MUTANT("shard.every_cycle_ages");
    state_ = {.number = state_.number + 1,
              .last = now,
              .counted = state_.counted + (counts ? 1 : 0),
              .last_counted = counts ? now : state_.last_counted};
  }

  const State& state() const { return state_; }

 private:
  const Config& config_;
  State state_;
};

}  // namespace muster::shard
