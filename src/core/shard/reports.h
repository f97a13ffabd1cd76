// Reports: tells the coordinator now and then of the shard's machines and of the needs it cannot cover, and applies the
// instructions that come back with the answer. The shard works the same without a coordinator.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/coordinator.h"
#include "core/shard/calls.h"
#include "core/shard/config.h"
#include "core/shard/engine_view.h"
#include "core/shard/lifecycle.h"
#include "core/shard/machines.h"
#include "core/shard/owned_set.h"
#include "core/shard/reconcile.h"
#include "core/shard/step_context.h"

namespace muster::shard {

class Reports {
 public:
  struct State {
    MonoTime next;
    bool open = false;                                  // a report has not been answered
    std::map<std::string, contract::InstructAck> acks;  // by instruction, until the coordinator knows

    MUSTER_FIELDS(State, next, open, acks)
  };
  // The parts it works with; all outlive it.
  struct Deps {
    const Config& config;
    Lifecycle& lifecycle;
    Calls& calls;
    const EngineView& engine;
    const Machines& machines;
    OwnedSet& owned;
    Reconcile& reconcile;
  };

  explicit Reports(const Deps& deps, State state) : deps_(deps), state_(std::move(state)) {}

  void Start(MonoTime now) { state_.next = now; }
  // Sends a report if one is due. The engine has decided.
  void Send(StepContext& ctx);
  void OnDone(const CallDone& done, StepContext& ctx);
  // When Send has something to do; MonoTime::max() without a coordinator or while a report is open.
  MonoTime NextWake() const { return deps_.config.coordinator.empty() || state_.open ? MonoTime::max() : state_.next; }

  const State& state() const { return state_; }

 private:
  contract::InstructAck ApplyInstruction(const contract::CoordinatorInstruction& instruction, StepContext& ctx);
  std::vector<contract::Shortfall> Shortfalls() const;
  contract::ShardSummary Summary() const;

  const Deps deps_;
  State state_;
};

}  // namespace muster::shard
