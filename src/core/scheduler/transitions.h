// Transitions: every change of a workload's record that the scheduler decides by itself, in one place: what is written,
// which event and which decision go with it, and the reason.
//
// All of them edit the draft of a workload, which must not be busy. Stateless.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "contract/agent.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/reasons.h"
#include "core/scheduler/step_context.h"

namespace muster::scheduler {

// 5 s, 10 s, 20 s, ... up to the cap, for the first, second, third, ... time.
Duration BackoffOf(const Config& config, int32_t times);

class Transitions {
 public:
  Transitions(const Config& config, const StoreCopy& copy, Drafts& drafts);

  // --- nodes
  // `why` is the sentence of the placement.
  void Assign(const std::string& id, const std::string& node, std::string_view why, StepContext& ctx);
  // No node; it is placed anew.
  void Unassign(const std::string& id, Action action, Reason reason, std::string_view detail, StepContext& ctx);
  // Whether that it waits for `reason` is to be written: not if its record says so and its back-off goes on, for then
  // it was only looked at because room came, nor if its waits have grown to the cap.
  bool IsWaitNews(const std::string& id, std::string_view reason, Now now) const;
  // No node takes it; nothing happens unless that is news. Waits are no attempts.
  void Wait(const std::string& id, bool failover, std::string_view reason, const std::string& message,
            StepContext& ctx);
  // It is to leave its node: stopped there first, within `grace` if given.
  void Evict(const std::string& id, Reason reason, std::string_view detail, std::optional<Duration> grace,
             StepContext& ctx);

  // --- what its agent said
  // Its node does not take it: only the decision, which has the agent's text. Unassign or Evict says what follows.
  void DecideRefused(const std::string& id, const std::string& node, Reason reason, std::string_view text,
                     StepContext& ctx);
  // Something failed: tried again after a pause, or for the last time.
  void CountAttempt(const std::string& id, Reason reason, std::string_view detail, StepContext& ctx);
  // The launch was accepted at `launched`; the state that follows it is not settled yet.
  void SetProgress(const std::string& id, const contract::WorkloadStatus& status, std::optional<WallTime> launched,
                   Action action, StepContext& ctx);
  void SetRunning(const std::string& id, const contract::WorkloadStatus& status, std::optional<WallTime> launched,
                  StepContext& ctx);
  // It ran, and does not any more.
  void SetDrift(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  void SetStopped(const std::string& id, contract::ActualState actual, StepContext& ctx);
  void SetCompleted(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  // Runs long enough: attempts begin anew.
  void ResetAttempts(const std::string& id, StepContext& ctx);
  // The reconciliation cannot tell, or could not delete; `pause` until it is tried again, if it is to be stored. False:
  // that was said before, in the same words.
  bool SetTrouble(const std::string& id, Action action, Reason reason, std::string_view detail,
                  std::optional<Duration> pause, StepContext& ctx);
  void Finalize(const std::string& id, Reason reason, StepContext& ctx);

 private:
  WorkloadRecord& Edit(const std::string& id, model::WorkloadPhase phase, std::string_view reason, std::string message,
                       StepContext& ctx);
  void Decide(const std::string& id, contract::DecisionKind kind, const std::string& node, std::string_view reason,
              std::string message, StepContext& ctx);

  const Config& config_;
  const StoreCopy& copy_;
  Drafts& drafts_;
};

}  // namespace muster::scheduler
