// Gets: machines whose state is in doubt, and the calls that ask the provider for them by name. A machine is in doubt
// when it is not known how a transition ended, when a list that is too old to be believed showed something else of it,
// or when a sweep did not show it. No action starts on such a machine.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "core/shard/calls.h"
#include "core/shard/config.h"
#include "core/shard/machines.h"
#include "core/shard/step_context.h"

namespace muster::shard {

class Gets {
 public:
  struct State {
    std::set<std::string, std::less<>> scheduled;
    std::set<std::string, std::less<>> asked;  // the call is open
    MonoTime next;                             // no call before

    MUSTER_FIELDS(State, scheduled, asked, next)
  };

  // What is referred to outlives this.
  Gets(const Config& config, Calls& calls, Machines& machines, State state)
      : config_(config), calls_(calls), machines_(machines), state_(std::move(state)) {}

  void Start(MonoTime now) { state_.next = now; }
  void ScheduleGet(const std::string& id) { state_.scheduled.insert(id); }
  // A later read has shown the machine.
  void Cancel(const std::string& id) { state_.scheduled.erase(id); }
  bool InDoubt(const std::string& id) const { return state_.scheduled.contains(id) || state_.asked.contains(id); }

  void Ask(StepContext& ctx);
  // The call for the machine has ended.
  void OnDone(const std::string& id) { state_.asked.erase(id); }
  void BackOff(MonoTime now) { state_.next = now + config_.retry_first; }
  // When Ask has something to do; MonoTime::max() if it has not.
  MonoTime NextWake() const {
    return !state_.scheduled.empty() && state_.asked.empty() ? state_.next : MonoTime::max();
  }

  const State& state() const { return state_; }

 private:
  const Config& config_;
  Calls& calls_;
  Machines& machines_;
  State state_;
};

}  // namespace muster::shard
