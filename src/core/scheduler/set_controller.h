// SetController: gives every set the members it should have, as its plan says (sets.h). A set is planned again whenever
// its record or a member changed, or a member is not busy any more: a step about one that is busy is taken in a later
// plan. One plan edits a bounded number of members, so that a large set holds nothing up, and goes on in the next step,
// with the sets that had no turn before it. While thousands of drafts wait for the store no set is planned: each draft
// is a copy of its record. A set whose counts are beyond what is admitted, from an earlier version or another program,
// is noted and left as it is.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/fields.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/set_members.h"
#include "core/scheduler/spec_edits.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/store_copy.h"

namespace muster::scheduler {

class SetController {
 public:
  struct State {
    std::set<std::string> dirty;
    std::string last;  // that had its turn, if others had none

    MUSTER_FIELDS(State, dirty, last)
  };

  SetController(const StoreCopy& copy, Drafts& drafts, SpecEdits& edits, State state);

  void MarkDirty(const std::string& set) { state_.dirty.insert(set); }
  // The workloads whose drafts it edited.
  std::set<std::string> Run(StepContext& ctx);
  // Why the set cannot have its members: an id of one belongs to something else. OK if it can.
  Status CheckMembers(const model::WorkloadSpec& spec) const;
  bool idle() const { return state_.dirty.empty() || TooManyDrafts(); }

  const State& state() const { return state_; }

 private:
  bool TooManyDrafts() const;
  void Plan(const std::string& name, std::set<std::string>& edited, StepContext& ctx);
  void Take(const std::string& name, const SetRecord& set, const SetStep& step, std::set<std::string>& edited,
            StepContext& ctx);

  const StoreCopy& copy_;
  Drafts& drafts_;
  SpecEdits& edits_;
  State state_;
};

}  // namespace muster::scheduler
