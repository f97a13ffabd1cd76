// Requests: what clients and nodes ask to be changed. A request edits the draft of one object, and is answered when
// that draft is durable. A request for an object that is busy waits its turn; one whose commit met a conflict is
// carried out again. Heartbeats change nothing durable and are answered at once.
//
// Invariant: no queue is empty.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/scheduler/agent_calls.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/node_health.h"
#include "core/scheduler/orphans.h"
#include "core/scheduler/quota_use.h"
#include "core/scheduler/reconciler.h"
#include "core/scheduler/refusals.h"
#include "core/scheduler/set_controller.h"
#include "core/scheduler/spec_edits.h"
#include "core/scheduler/standing.h"
#include "core/scheduler/step_context.h"

namespace muster::scheduler {

class Requests {
 public:
  struct State {
    std::map<ObjectId, std::deque<Waiter>> queued;

    MUSTER_FIELDS(State, queued)
  };
  struct Parts {
    const Config& config;
    const Standing& standing;
    const StoreCopy& copy;
    Drafts& drafts;
    SpecEdits& edits;
    NodeHealth& health;
    AgentCalls& calls;
    SetController& sets;
    QuotaUse& quota;
    Refusals& refusals;
    Orphans& orphans;
    Reconciler& reconciler;
  };

  Requests(Parts parts, State state);

  // A request that changes something, or a heartbeat.
  void Handle(const Asked& asked, StepContext& ctx);
  // Those whose object is not busy any more.
  void RunQueued(StepContext& ctx);
  // The draft that requests waited for has ended.
  void OnResolved(Resolved resolved, StepContext& ctx);
  // None can be carried out now.
  void RefuseAll(std::vector<Waiter> waiters, StepContext& ctx);
  bool idle() const;

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  using Reply = Result<contract::ClusterReply>;
  // What a request leads to at once; nothing: it waits for the draft.
  using Outcome = std::optional<Reply>;

  void Carry(const ObjectId& object, Waiter waiter, StepContext& ctx);
  Outcome Change(const contract::RegisterNode& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::ApplyWorkload& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::ApplySpec& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::ApplyQuota& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::DeleteObject& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::RetryWorkload& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::ScaleSet& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::RestartSet& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::CordonNode& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::DrainNode& body, Waiter& waiter, StepContext& ctx);
  Outcome Change(const contract::AcceptNode& body, Waiter& waiter, StepContext& ctx);
  Outcome ApplyTo(const WantedWorkload& wanted, Waiter& waiter, bool dry_run, StepContext& ctx);
  Outcome ApplySet(const contract::ApplySpec& body, Waiter& waiter, StepContext& ctx);
  Outcome StoreSet(SetRecord record, Waiter& waiter, bool dry_run, StepContext& ctx);
  Outcome DeleteNode(const contract::DeleteObject& body, StepContext& ctx);
  std::optional<contract::Done> Unchanged(const std::string& node) const;
  void AnswerAll(const Resolved& resolved, StepContext& ctx);
  Status AdmitRevived(const WorkloadRecord& before) const;
  Status CheckTenant(const ObjectId& object, Waiter& waiter) const;
  Status Charge(const std::string& tenant, Waiter& waiter, StepContext& ctx);
  // What the tenant's quota or rate does not admit. A request that only tries is told, and is no decision.
  Outcome Refuse(const ObjectId& object, const std::string& tenant, Reason reason, Status status, bool dry_run,
                 StepContext& ctx);
  Status CheckReadable(const ObjectId& object) const;
  contract::Applied AppliedOf(const ObjectId& object, const Waiter& waiter) const;

  void OnHeartbeat(const contract::Heartbeat& beat, contract::RequestId request, StepContext& ctx);
  void OnRegistered(const std::string& node, const contract::RegisterNode& body);
  contract::NodeRegistered Registered(const std::string& node, bool remove_others, Now now) const;
  contract::ClusterReply ReplyTo(const Waiter& waiter, const Resolved& resolved, StepContext& ctx);
  static void Answer(contract::RequestId request, Reply reply, StepContext& ctx);

  const Parts p_;
  State state_;
};

}  // namespace muster::scheduler
