// Standing: whether this scheduler may decide: it leads, its store answers, and it has seen the store as it was when it
// began to lead. A leader's writes are guarded by the key of the election, so everything that an earlier leader has
// written lies before that key; a scheduler that decided on an older copy would give away room that is taken.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/probe.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/store.h"
#include "core/scheduler/types.h"

namespace muster::scheduler {

class Standing {
 public:
  struct State {
    bool leading = false;
    std::string leader;
    bool listed = false;
    std::optional<WallTime> stale_since;
    std::string why;                  // the store does not answer
    contract::Revision led_from = 0;  // the revision of the key of the election
    contract::Revision seen = 0;      // of the copy

    MUSTER_FIELDS(State, leading, leader, listed, stale_since, why, led_from, seen)
  };

  explicit Standing(State state) : state_(std::move(state)) {}

  void SetLeader(const LeadershipChanged& changed) {
    state_.leading = changed.leading;
    state_.leader = changed.leader;
    state_.led_from = changed.leading && !MUTANT("scheduler.leads_before_it_has_seen") ? changed.leader_revision : 0;
  }
  // What was seen was another store: whether this scheduler still leads is known once an election has shown in this
  // one.
  void StartOver() { state_.seen = 0; }
  void SetSeen(contract::Revision revision) { state_.seen = std::max(state_.seen, revision); }
  void SetListed() {
    state_.listed = true;
    state_.stale_since.reset();
  }
  void SetLost(const Status& why, WallTime now) {
    if (!state_.stale_since) state_.stale_since = now;
    state_.why = why.message();
  }

  bool active() const { return state_.leading && store_answers() && caught_up(); }
  bool caught_up() const { return state_.seen >= state_.led_from; }
  bool store_answers() const { return state_.listed && !state_.stale_since; }
  // Why a change is refused now; OK if it is not.
  Status MayChange() const {
    if (!state_.leading) {
      return {Code::kUnavailable,
              state_.leader.empty() ? std::string("this scheduler does not lead, and no leader is known yet: try again")
                                    : fmt::format("this scheduler does not lead: ask {}", state_.leader)};
    }
    if (!state_.listed) return {Code::kUnavailable, "the store has not been read yet: try again"};
    if (!caught_up()) return {Code::kUnavailable, "this scheduler has just begun to lead: try again"};
    if (state_.stale_since) {
      return {Code::kUnavailable, fmt::format("the store does not answer ({}): try again", state_.why)};
    }
    return {};
  }
  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace muster::scheduler
