// ActionLog: every action that was decided and what became of it: a line of the audit log when it is decided and
// another when it ends. The latest actions are kept for `muster fleet actions`.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "contract/shard.h"
#include "core/shard/step_context.h"

namespace muster::shard {

class ActionLog {
 public:
  struct State {
    std::deque<contract::ActionView> actions;  // the latest last
    uint64_t logged = 0;                       // how many there ever were

    MUSTER_FIELDS(State, actions, logged)
  };

  explicit ActionLog(State state) : state_(std::move(state)) {}

  // The number of the new line.
  uint64_t Add(const contract::ActionView& action, StepContext& ctx);
  // How the action of that line ended.
  void End(uint64_t line, const contract::ActionView& action, Duration took, StepContext& ctx);
  contract::ActionsListed List(const contract::ListActions& query) const;

  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace muster::shard
