// Execute: from a decided action to the provider's acknowledgement.
//
//   Bootstrap          ask the cluster for its blob -> Configure
//   Provision          Create; once it is Idle the engine, to which it is pledged, has it bootstrapped
//   Preempt, Reclaim   tell the cluster -> Drain
//   Delete             Delete
//
// Guards: a machine has one operation at a time and rests after one that failed; it is where the action starts, when
// the action begins and again when its turn has come; and so many calls at most are in the provider's hands.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/shard.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;
using model::MachineState;

OperationKind KindOf(engine::ActionKind kind) {
  switch (kind) {
    case engine::ActionKind::kBootstrap: return OperationKind::kBootstrap;
    case engine::ActionKind::kProvision: return OperationKind::kProvision;
    case engine::ActionKind::kPreempt: return OperationKind::kPreempt;
    case engine::ActionKind::kReclaim: return OperationKind::kReclaim;
    case engine::ActionKind::kDelete: break;
  }
  return OperationKind::kDelete;
}

bool Takes(OperationKind kind) { return kind == OperationKind::kPreempt || kind == OperationKind::kReclaim; }

contract::ActionView ViewOf(const std::string& id, const Operation& operation) {
  return {.cycle = operation.cycle,
          .decided = operation.decided.wall,
          .kind = std::string(OperationKindName(operation.kind)),
          .machine_id = id,
          .cluster_id = operation.cluster,
          .need_fingerprint = operation.need ? operation.need->fingerprint : "",
          .need_group = operation.need ? operation.need->group : "",
          .reason = operation.reason,
          .grace_seconds = operation.grace_seconds,
          .outcome = "pending"};
}

}  // namespace

// Sixteen hexadecimal digits that no other question or instruction of this shard has.
std::string Core::NewToken() { return fmt::format("{:08x}{:08x}", epoch_ & 0xffffffff, ++tokens_ & 0xffffffff); }

bool Core::MayBegin(const engine::Action& action, MonoTime now) const {
  const auto tracked = machines_.find(action.machine);
  if (tracked == machines_.end()) return false;
  if (operations_.contains(action.machine)) return false;
  const auto retry = retries_.find(action.machine);
  if (retry != retries_.end() && now < retry->second.until) return false;
  // Whose state is in doubt is looked at first.
  if (to_look_.contains(action.machine) || looking_.contains(action.machine)) return false;
  return tracked->second.record->state == StartOf(KindOf(action.kind));
}

void Core::Begin(const engine::fast::NamedAction& named, Turn& turn) {
  const engine::Action& action = named.action;
  if (action.kind == engine::ActionKind::kReclaim) SpendReclaim(action.cluster, turn);
  Enter(action.machine,
        {.kind = KindOf(action.kind),
         .cluster = action.cluster,
         .need = action.need,
         .profile = named.profile,
         .reason = action.reason,
         .grace_seconds = action.grace.count(),
         .cycle = cycle_,
         .decided = turn.now},
        turn);
}

void Core::Enter(const std::string& id, Operation begun, Turn& turn) {
  const Tracked& tracked = machines_.find(id)->second;
  Count(id, tracked, -1);
  operations_.erase(id);
  Operation& operation = operations_.emplace(id, std::move(begun)).first->second;
  Count(id, tracked, 1);
  Show(id, tracked);
  operation.line = Log(ViewOf(id, operation), turn);
  if (operation.kind == OperationKind::kBootstrap) return AskBlob(id, operation, turn);
  if (Takes(operation.kind)) return Instruct(id, operation, turn);
  Enqueue(id, operation);
}

void Core::AskBlob(const std::string& id, Operation& operation, Turn& turn) {
  operation.stage = Stage::kAsking;
  operation.token = NewToken();
  operation.blob.clear();
  operation.blob_until.reset();
  token_of_[operation.token] = id;
  SetDeadline(id, operation, turn.now.mono + config_.blob_timeout);
  SendTo(clusters_.find(operation.cluster)->second,
         contract::BootstrapRequest{.request_id = operation.token,
                                    .requirements = operation.profile->requirements(),
                                    .cluster_id = operation.cluster},
         turn);
}

void Core::Instruct(const std::string& id, Operation& operation, Turn& turn) {
  operation.stage = Stage::kInstructed;
  operation.token = NewToken();
  const bool preempts = operation.kind == OperationKind::kPreempt;
  contract::ReclaimInstruction instruction{.instruction_id = operation.token,
                                           .nodes = {id},
                                           .grace_period_seconds = operation.grace_seconds,
                                           .preemptor_priority = preempts ? operation.profile->priority() : 0};
  unanswered_.emplace(operation.token, Unanswered{.cluster = operation.cluster, .instruction = instruction});
  SetDeadline(id, operation, turn.now.mono + config_.ack_timeout);
  SendTo(clusters_.find(operation.cluster)->second, std::move(instruction), turn);
}

void Core::Enqueue(const std::string& id, Operation& operation) {
  operation.stage = Stage::kQueued;
  SetDeadline(id, operation, std::nullopt);
  queue_.push_back(id);
}

void Core::SetDeadline(const std::string& id, Operation& operation, std::optional<MonoTime> deadline) {
  if (operation.deadline) deadlines_.erase({*operation.deadline, id});
  operation.deadline = deadline;
  if (deadline) deadlines_.emplace(*deadline, id);
}

void Core::RunDeadlines(Turn& turn) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= turn.now.mono) {
    OnDeadline(std::string(deadlines_.begin()->second), turn);
  }
}

void Core::OnDeadline(const std::string& id, Turn& turn) {
  Operation& operation = operations_.find(id)->second;
  if (operation.stage == Stage::kAsking) {
    PROBE("shard.blob_timeout");
    BackOff(id, false, turn.now.mono);
    return EndOperation(id, "blob_timeout", "the cluster did not answer", turn);
  }
  MUSTER_CHECK(operation.stage == Stage::kInstructed, "machine {} has a deadline in no stage that has one", id);
  if (clusters_.find(operation.cluster)->second.session == 0) {
    PROBE("shard.instruction_given_up");
    unanswered_.erase(operation.token);
    return EndOperation(id, "no_session", "the cluster's session did not come back", turn);
  }
  PROBE("shard.drained_unacknowledged");
  Enqueue(id, operation);
}

std::pair<std::string_view, std::string> Core::Obstacle(const Operation& operation, const Tracked& tracked) const {
  const MachineState state = tracked.record->state;
  if (state != StartOf(operation.kind)) return {"stale_state", fmt::format("it is {}", model::StateName(state))};
  const ActuationMode mode = ModeFor(operation.cluster, operation.need);
  const bool by_hand = operation.reason == model::Reason::kRepairByHand;
  if (mode != ActuationMode::kActive && !by_hand && !MUTANT("shard.pause_ignored")) {
    return {mode == ActuationMode::kPaused ? "suppressed" : "dryrun", ""};
  }
  const bool needs_session = operation.kind == OperationKind::kBootstrap || Takes(operation.kind);
  if (needs_session && clusters_.find(operation.cluster)->second.session == 0 && !MUTANT("shard.session_not_needed")) {
    return {"no_session", "the cluster's session ended"};
  }
  return {};
}

void Core::CallProvider(Turn& turn) {
  while (!queue_.empty() && calling_ < config_.execute_concurrency) {
    const std::string id = std::move(queue_.front());
    queue_.pop_front();
    const auto found = operations_.find(id);
    if (found == operations_.end() || found->second.stage != Stage::kQueued) continue;
    Operation& operation = found->second;
    Tracked& tracked = machines_.find(id)->second;
    if (auto [outcome, why] = Obstacle(operation, tracked); !outcome.empty()) {
      PROBE("shard.obstacle");
      EndOperation(id, outcome, std::move(why), turn);
      continue;
    }
    if (operation.blob_until && turn.now.mono >= *operation.blob_until) {
      PROBE("shard.blob_expired");
      AskBlob(id, operation, turn);
      continue;
    }
    operation.stage = Stage::kCalling;
    ++calling_;
    tracked.not_before = ++moment_;
    tracked.missed = false;
    operation.call = OpenACall({.kind = OpenCall::Kind::kTransition, .machine = id, .begun = moment_});
    turn.out.push_back(Call{.id = operation.call,
                            .to = std::string(kProvider),
                            .request = RequestOf(id, operation),
                            .timeout = config_.call_timeout});
  }
}

PartnerRequest Core::RequestOf(const std::string& id, const Operation& operation) {
  const contract::FenceToken fence{.shard_id = config_.id, .epoch = epoch_, .sequence = ++sequence_};
  switch (operation.kind) {
    case OperationKind::kBootstrap:
      return contract::ConfigureRequest{.machine_id = id,
                                        .cluster_id = operation.cluster,
                                        .bootstrap_blob = operation.blob,
                                        .fence = fence,
                                        .shard_metadata = StampOf(operation, config_.id, epoch_)};
    case OperationKind::kProvision:
    case OperationKind::kRecreate: return contract::CreateRequest{.machine_id = id, .fence = fence};
    case OperationKind::kPreempt:
    case OperationKind::kReclaim:
      return contract::DrainRequest{.machine_id = id, .grace_period_seconds = operation.grace_seconds, .fence = fence};
    case OperationKind::kDelete:
    case OperationKind::kRepair: break;
  }
  return contract::DeleteRequest{.machine_id = id, .fence = fence};
}

void Core::OnTransitionDone(const CallDone& done, const OpenCall& call, Turn& turn) {
  --calling_;
  const std::string& id = call.machine;
  const auto found = operations_.find(id);
  if (found == operations_.end() || found->second.call != done.id) {
    PROBE("shard.late_transition");  // its machine was dropped meanwhile
    return;
  }
  if (done.status.code() == Code::kFailedPrecondition && !MUTANT("shard.fenced_goes_on")) {
    PROBE("shard.fenced");
    EndOperation(id, "fenced", done.status.message(), turn);
    return StopNow(Status(Code::kFailedPrecondition,
                          fmt::format("{}; another shard {} is at work, or was with a higher epoch: stop it, or start "
                                      "this one with --epoch-at-least above it",
                                      done.status.message(), config_.id)),
                   turn);
  }
  Tracked& tracked = machines_.find(id)->second;
  tracked.not_before = ++moment_;
  const OperationKind kind = found->second.kind;
  if (!done.status.ok()) {
    PROBE("shard.transition_failed");
    // Whether it happened is not known: the provider is asked.
    Look(id);
    const bool never = done.status.code() == Code::kUnimplemented;
    BackOff(id, never, turn.now.mono);
    return EndOperation(id, never ? "unimplemented" : "provider_error", done.status.ToString(), turn);
  }
  if (tracked.missed) {
    PROBE("shard.look_after_call");
    Look(id);
  }
  const contract::MachineRecord record = std::get<contract::TransitionAck>(*done.reply).machine;
  if (kind == OperationKind::kDelete) ++counters_.idle_releases;
  EndOperation(id, "success", "", turn);
  if (record->id != id || !Screen(*record, turn)) {
    Look(id);
  } else if (!(tracked.record == record)) {
    Change(id, tracked, record, turn);
  }
}

void Core::EndOperation(const std::string& id, std::string_view outcome, std::string error, Turn& turn) {
  const auto found = operations_.find(id);
  const Operation operation = found->second;
  SetDeadline(id, found->second, std::nullopt);
  token_of_.erase(operation.token);
  // An instruction that is void is not repeated; one that led to a drain is, until it is acknowledged.
  if (outcome != "success") unanswered_.erase(operation.token);
  const Tracked& tracked = machines_.find(id)->second;
  Count(id, tracked, -1);
  operations_.erase(found);
  Count(id, tracked, 1);
  Show(id, tracked);
  if (outcome != "success") MakeDue();
  if (operation.kind >= OperationKind::kRepair) RepairEnded(id, operation.kind, outcome, turn);
  contract::ActionView view = ViewOf(id, operation);
  ++counters_.outcomes[{view.kind, std::string(outcome)}];
  view.outcome = outcome;
  view.error = std::move(error);
  LogEnd(operation.line, view, turn.now.mono - operation.decided.mono, turn);
}

void Core::BackOff(const std::string& id, bool for_long, MonoTime now) {
  Retry& retry = retries_[id];
  retry.failures = std::min(retry.failures + 1, 20);
  const Duration pause = config_.retry_first * (int64_t{1} << (retry.failures - 1));
  retry.until = now + (for_long ? config_.retry_longest : std::min(pause, config_.retry_longest));
}

}  // namespace muster::shard
