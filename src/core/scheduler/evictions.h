// Evictions: moves the workloads of draining nodes away, within the min-available of their sets. At the deadline of a
// drain min-available no longer counts. What a workload does then is the reconciler's: stopped first, then placed.
#pragma once

#include <set>
#include <string>

#include "base/fields.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/store_copy.h"
#include "core/scheduler/transitions.h"

namespace muster::scheduler {

class Evictions {
 public:
  struct State {
    std::set<std::string> draining;  // nodes
    bool due = false;                // something changed since the last look

    MUSTER_FIELDS(State, draining, due)
  };

  Evictions(const StoreCopy& copy, Drafts& drafts, Transitions& transitions, State state);

  void OnNode(const std::string& node);
  void OnWorkload() { state_.due = state_.due || !state_.draining.empty(); }
  // The workloads whose drafts it edited.
  std::set<std::string> Run(StepContext& ctx);
  bool idle() const { return !state_.due; }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void Drain(const std::string& node, const DrainOrder& order, std::set<std::string>& edited, StepContext& ctx);
  bool MayLeave(const WorkloadRecord& record) const;

  const StoreCopy& copy_;
  Drafts& drafts_;
  Transitions& transitions_;
  State state_;
};

}  // namespace muster::scheduler
