#include "core/shard/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/probe.h"

namespace muster::shard {
namespace {

using model::MachineState;

// Whether the provider said no, and would say so again.
bool IsRefusal(Code code) {
  return code != Code::kUnavailable && code != Code::kDeadlineExceeded && code != Code::kResourceExhausted &&
         code != Code::kCancelled && code != Code::kInternal;
}

std::string WrongState(MachineState state) { return fmt::format("it is {}", model::StateName(state)); }

// The provider is away, or too busy to answer: nothing is said about the machine.
bool IsOutage(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
}

// The data of this Configure went with its session: that says nothing about the template of the cluster.
bool IsOfThisCall(const Status& status) { return status.code() == Code::kAborted; }

// A provider puts the status that a transition ended with into last_error.
bool SaysOutOfStock(const std::string& last_error) {
  return last_error.find(CodeName(Code::kResourceExhausted)) != std::string::npos;
}

bool IsGang(const model::Profile& profile) {
  return std::ranges::any_of(profile.requirements(), [](const model::Requirement& requirement) {
    return requirement.op == model::Operator::kSame;
  });
}

// The action of a transition that an earlier life began, or whose acknowledgement was lost.
contract::ActionView UnknownAction(const model::Machine& before, StepContext& ctx) {
  using enum OperationKind;
  const OperationKind kind = before.state == MachineState::kCreating      ? kProvision
                             : before.state == MachineState::kSpeculative ? kProvision
                             : before.state == MachineState::kConfiguring ? kBootstrap
                             : before.state == MachineState::kDraining    ? kReclaim
                                                                          : kDelete;
  return {.cycle = ctx.cycle.number(),
          .decided = ctx.now.wall,
          .kind = std::string(OperationKindName(kind)),
          .machine_id = before.id,
          .cluster_id = before.cluster};
}

}  // namespace

Executor::Executor(const Deps& deps, State state) : deps_(deps), state_(std::move(state)) {
  for (auto& [id, operation] : state_.operations) {
    if (operation.deadline) deadlines_.emplace(*operation.deadline, id);
    Count(operation, 1);
  }
  for (const auto& [token, unanswered] : state_.unanswered) {
    instructed_.emplace(unanswered.instruction.nodes.front(), token);
  }
}

void Executor::Count(const Operation& operation, int64_t by) {
  if (operation.kind == OperationKind::kPreempt) return;
  size_t& open = open_for_[BeneficiaryOf(operation)];
  open += static_cast<size_t>(by);
  counted_ += static_cast<size_t>(by);
  if (open == 0) open_for_.erase(BeneficiaryOf(operation));
}

void Executor::AddClusters(Clusters::Names& used) const {
  for (const auto& [id, operation] : state_.operations) {
    used.insert(operation.cluster);
    if (operation.need) used.insert(operation.need->cluster);
  }
  for (const auto& [token, unanswered] : state_.unanswered) used.insert(unanswered.cluster);
  for (const auto& [id, acknowledged] : state_.acknowledged) used.insert(acknowledged.action.cluster_id);
}

QueueLoad Executor::LoadFor(const std::string& cluster) const {
  const auto open = open_for_.find(cluster);
  return {.all = counted_, .of_cluster = open == open_for_.end() ? 0 : open->second};
}

InProgress Executor::InProgressOf(const Operation& operation) const {
  InProgress in_progress{
      .from = StartOf(operation.kind), .to = DuringOf(operation.kind), .calling = operation.stage == Stage::kCalling};
  if (operation.kind == OperationKind::kBootstrap) {
    in_progress.cluster = operation.cluster;
    in_progress.metadata = StampOf(operation, deps_.config.id, deps_.lifecycle.epoch());
  }
  return in_progress;
}

std::map<std::string, InProgress, std::less<>> Executor::AllInProgress() const {
  std::map<std::string, InProgress, std::less<>> all;
  for (const auto& [id, operation] : state_.operations) all.emplace(id, InProgressOf(operation));
  return all;
}

// Sixteen hexadecimal digits that no other blob request or instruction of this shard has.
std::string Executor::NewToken() {
  return fmt::format("{:08x}{:08x}", deps_.lifecycle.epoch() & 0xffffffff, ++state_.tokens & 0xffffffff);
}

// --- starting

const model::Machine* Executor::FreeMachine(const std::string& id) const {
  const Tracked* tracked = deps_.machines.Find(id);
  if (tracked == nullptr || state_.operations.contains(id) || deps_.gets.InDoubt(id)) return nullptr;
  if (deps_.machines.AsideOf(id) != SetAside::kNo) return nullptr;
  return &*tracked->record;
}

Readiness Executor::ReadinessOf(const engine::fast::NamedAction& named, MonoTime now) {
  const engine::Action& action = named.action;
  const OperationKind kind = OperationKindOf(action.kind);
  const model::Machine* machine = FreeMachine(action.machine);
  if (machine == nullptr || machine->state != StartOf(kind)) return Readiness::kBusy;
  const std::string& cluster = BeneficiaryOf(action);
  const int64_t configured = deps_.machines.BoundTo(cluster).configured;
  const bool bootstraps = kind == OperationKind::kBootstrap;
  if (bootstraps && !deps_.rails.MayBootstrap(configured, GrowingIn(cluster, now))) return Readiness::kGrows;
  const bool takes = kind == OperationKind::kPreempt && action.need;
  const bool gang = takes && named.profile && IsGang(*named.profile);
  if (takes && !deps_.rails.MayTake(cluster, gang, configured, GrowingIn(cluster, now), now)) {
    PROBE("shard.takes_later");
    return Readiness::kOnTrial;
  }
  const Holds& holds = deps_.rails.holds();
  if (!holds.Blocks(kind, *machine, action.cluster, now)) return Readiness::kReady;
  // The engine is told of every other hold: it waits for a probe.
  return bootstraps && holds.HasFailedLast(cluster) ? Readiness::kOnTrial : Readiness::kBusy;
}

int64_t Executor::GrowingIn(const std::string& cluster, MonoTime now) {
  if (stuck_at_ != now) stuck_.clear();
  stuck_at_ = now;
  const Machines::Bound& bound = deps_.machines.BoundTo(cluster);
  const auto growing = std::ssize(bound.configuring);
  // Few enough whatever hangs: most cycles ask no further.
  const int64_t first = deps_.config.first_bootstraps;
  if (first == 0 || growing < first || MUTANT("shard.stuck_ones_count")) return growing;
  const auto [stuck, is_new] = stuck_.try_emplace(cluster, 0);
  // How long those that a life finds Configuring have been so is not known: they count from its start.
  if (is_new) {
    stuck->second = deps_.machines.ConfiguringSince(cluster, now - kConfigureIsStuck, deps_.lifecycle.warm_until());
  }
  if (stuck->second > 0) PROBE("shard.configure_is_stuck");
  return growing - stuck->second;
}

void Executor::Start(const engine::fast::NamedAction& named, StepContext& ctx) {
  const engine::Action& action = named.action;
  StartOperation(action.machine,
                 {.kind = OperationKindOf(action.kind),
                  .cluster = action.cluster,
                  .need = action.need,
                  .profile = named.profile,
                  .reason = action.reason,
                  .grace_seconds = action.grace.count(),
                  .cycle = ctx.cycle.number(),
                  .decided = ctx.now},
                 ctx);
}

void Executor::StartOperation(const std::string& id, Operation started, StepContext& ctx) {
  const auto [found, is_new] = state_.operations.emplace(id, std::move(started));
  MUSTER_CHECK(is_new, "machine {} has an operation already", id);
  Operation& operation = found->second;
  Count(operation, 1);
  state_.acknowledged.erase(id);
  deps_.rails.holds().OnStarted(operation.kind, *deps_.machines.Find(id)->record, operation.cluster, ctx.now.mono);
  deps_.machines.SetInProgress(id, InProgressOf(operation));
  operation.line = deps_.log.Add(ViewOf(id, operation), ctx);
  if (operation.kind == OperationKind::kBootstrap) return AskBlob(id, operation, ctx);
  if (IsWithdrawal(operation.kind)) return Instruct(id, operation, ctx);
  Enqueue(id, operation);
}

void Executor::AskBlob(const std::string& id, Operation& operation, StepContext& ctx) {
  operation.stage = Stage::kAsking;
  operation.token = NewToken();
  operation.blob.clear();
  operation.blob_until.reset();
  state_.machine_of_token[operation.token] = id;
  SetDeadline(id, operation, ctx.now.mono + deps_.config.blob_timeout);
  deps_.sessions.Send(operation.cluster,
                      contract::BootstrapRequest{.request_id = operation.token,
                                                 .requirements = operation.profile->requirements(),
                                                 .cluster_id = operation.cluster},
                      ctx);
}

void Executor::Instruct(const std::string& id, Operation& operation, StepContext& ctx) {
  operation.stage = Stage::kInstructed;
  operation.token = NewToken();
  const bool preempts = operation.kind == OperationKind::kPreempt;
  contract::ReclaimInstruction instruction{.instruction_id = operation.token,
                                           .nodes = {id},
                                           .grace_period_seconds = operation.grace_seconds,
                                           .preemptor_priority = preempts ? operation.profile->priority() : 0};
  if (!deps_.sessions.Has(operation.cluster)) return Enqueue(id, operation);  // of a cluster that is decommissioned
  state_.unanswered.emplace(operation.token, Unanswered{.cluster = operation.cluster, .instruction = instruction});
  instructed_.emplace(id, operation.token);
  SetDeadline(id, operation, ctx.now.mono + deps_.config.ack_timeout);
  deps_.sessions.Send(operation.cluster, std::move(instruction), ctx);
}

void Executor::Enqueue(const std::string& id, Operation& operation) {
  operation.stage = Stage::kQueued;
  SetDeadline(id, operation, std::nullopt);
  const bool urgent = operation.kind == OperationKind::kPreempt && !MUTANT("shard.preempt_waits");
  (urgent ? state_.preempts : state_.lanes[BeneficiaryOf(operation)]).push_back(id);
}

std::optional<std::string> Executor::TakeNext() {
  // A Preempt that hangs must not be all that is tried while the provider seems to be away.
  const bool lane_first =
      state_.outage.attempts % 2 == 1 && !state_.lanes.empty() && !MUTANT("shard.only_preempts_are_tried");
  if (!state_.preempts.empty() && !lane_first) {
    std::string id = std::move(state_.preempts.front());
    state_.preempts.pop_front();
    return id;
  }
  if (state_.lanes.empty()) return std::nullopt;
  auto lane = state_.lanes.upper_bound(state_.last_lane);
  if (lane == state_.lanes.end() || MUTANT("shard.no_turns")) lane = state_.lanes.begin();
  state_.last_lane = lane->first;
  std::string id = std::move(lane->second.front());
  lane->second.pop_front();
  if (lane->second.empty()) state_.lanes.erase(lane);
  return id;
}

// --- what clusters answer

void Executor::OnBlob(const std::string& cluster, const contract::BootstrapResponse& response, StepContext& ctx) {
  const auto token = state_.machine_of_token.find(response.request_id);
  if (token == state_.machine_of_token.end()) {
    PROBE("shard.late_blob");
    return;
  }
  const std::string id = token->second;
  Operation& operation = state_.operations.find(id)->second;
  if (operation.cluster != cluster || operation.stage != Stage::kAsking) return;
  state_.machine_of_token.erase(token);
  if (!response.error.empty()) {
    deps_.rails.holds().OnConfigureFailed(id, cluster, ctx);
    return EndOperation(id, Outcome::kBlobError, response.error, ctx);
  }
  if (!operation.blob_until) ctx.Emit(Lasted{.leg = Leg::kBlob, .took = ctx.now.mono - operation.decided.mono});
  operation.blob = response.user_data;
  if (response.ttl > 0s && !MUTANT("shard.blob_keeps_for_ever")) {
    // A ttl beyond what time can hold is as good as none.
    constexpr std::chrono::seconds kLongest = std::chrono::hours(24 * 365);
    operation.blob_until = ctx.now.mono + std::min(response.ttl, kLongest);
  }
  Enqueue(id, operation);
}

void Executor::OnReclaimAck(const std::string& cluster, const contract::ReclaimAck& ack) {
  const auto unanswered = state_.unanswered.find(ack.instruction_id);
  if (unanswered == state_.unanswered.end() || unanswered->second.cluster != cluster) {
    PROBE("shard.late_ack");
    return;
  }
  const std::string id = unanswered->second.instruction.nodes.front();
  EndInstruction(ack.instruction_id);
  const auto operation = state_.operations.find(id);
  if (operation == state_.operations.end() || operation->second.token != ack.instruction_id) return;
  if (operation->second.stage == Stage::kInstructed) Enqueue(id, operation->second);
}

void Executor::OnSessionOpened(const std::string& cluster, StepContext& ctx) {
  for (const auto& [token, unanswered] : state_.unanswered) {
    if (unanswered.cluster != cluster || MUTANT("shard.instructions_not_resent")) continue;
    PROBE("shard.instruction_resent");
    deps_.sessions.Send(cluster, unanswered.instruction, ctx);
    const auto operation = state_.operations.find(unanswered.instruction.nodes.front());
    if (operation == state_.operations.end() || operation->second.token != token) continue;
    if (operation->second.stage != Stage::kInstructed) continue;
    SetDeadline(operation->first, operation->second, ctx.now.mono + deps_.config.ack_timeout);
  }
}

void Executor::OnSessionEnded(const std::string& cluster, StepContext& ctx) {
  std::vector<std::string> asking;
  for (auto& [id, operation] : state_.operations) {
    if (operation.cluster != cluster) continue;
    const bool has_blob = operation.stage == Stage::kQueued && operation.kind == OperationKind::kBootstrap;
    if (operation.stage == Stage::kAsking || has_blob) asking.push_back(id);
    if (operation.stage == Stage::kInstructed) SetDeadline(id, operation, ctx.now.mono + deps_.config.give_up);
  }
  for (const std::string& id : asking) {
    PROBE("shard.session_lost_while_asking");
    EndOperation(id, Outcome::kNoSession, "the cluster's session ended", ctx);
  }
  // Only turns take ids out of a lane, and there are none while the provider is away.
  const auto lane = state_.lanes.find(cluster);
  if (lane == state_.lanes.end()) return;
  std::erase_if(lane->second, [&](const std::string& id) { return !state_.operations.contains(id); });
  if (lane->second.empty()) state_.lanes.erase(lane);
}

// --- deadlines

void Executor::SetDeadline(const std::string& id, Operation& operation, std::optional<MonoTime> deadline) {
  if (operation.deadline) deadlines_.erase({*operation.deadline, id});
  operation.deadline = deadline;
  if (deadline) deadlines_.emplace(*deadline, id);
}

void Executor::RunDeadlines(StepContext& ctx) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= ctx.now.mono) {
    OnDeadline(std::string(deadlines_.begin()->second), ctx);
  }
}

void Executor::OnDeadline(const std::string& id, StepContext& ctx) {
  Operation& operation = state_.operations.find(id)->second;
  if (operation.stage == Stage::kAsking) {
    PROBE("shard.blob_timeout");
    deps_.rails.holds().OnConfigureFailed(id, operation.cluster, ctx);
    return EndOperation(id, Outcome::kBlobTimeout, "the cluster did not answer", ctx);
  }
  MUSTER_CHECK(operation.stage == Stage::kInstructed, "machine {} has a deadline in no stage that has one", id);
  if (!deps_.sessions.Has(operation.cluster)) {
    PROBE("shard.instruction_given_up");
    return EndOperation(id, Outcome::kNoSession, "the cluster's session did not come back", ctx);
  }
  PROBE("shard.drained_unacknowledged");
  Enqueue(id, operation);
}

// --- the provider

std::optional<std::pair<Outcome, std::string>> Executor::Obstacle(const Operation& operation, const Tracked& tracked,
                                                                  MonoTime now) const {
  const MachineState state = tracked.record->state;
  if (state != StartOf(operation.kind)) return std::pair(Outcome::kStaleState, WrongState(state));
  if (!IsRepair(operation.kind) &&
      deps_.rails.holds().Blocks(operation.kind, *tracked.record, operation.cluster, now)) {
    PROBE("shard.held_in_queue");
    return std::pair(Outcome::kOnHold, std::string("others like it failed meanwhile"));
  }
  const bool taken = operation.kind == OperationKind::kPreempt && operation.need;
  if (taken && deps_.rails.holds().IsClusterHeld(operation.need->cluster, now)) {
    return std::pair(Outcome::kOnHold, fmt::format("Configures of {} failed meanwhile", operation.need->cluster));
  }
  const std::optional<Outcome> outcome = deps_.rails.Obstacle(operation, deps_.sessions.Has(operation.cluster));
  if (!outcome) return std::nullopt;
  return std::pair(*outcome, std::string(*outcome == Outcome::kNoSession ? "the cluster's session ended" : ""));
}

bool Executor::MayCall(MonoTime now) const {
  if (state_.calling >= deps_.config.execute_concurrency) return false;
  return state_.outage.attempts == 0 || (now >= state_.outage.until && state_.calling == 0);
}

MonoTime Executor::NextWake() const {
  MonoTime next = deadlines_.empty() ? MonoTime::max() : deadlines_.begin()->first;
  if (state_.outage.attempts > 0 && state_.calling == 0 && HasQueued()) next = std::min(next, state_.outage.until);
  return next;
}

void Executor::CallProvider(StepContext& ctx) {
  while (MayCall(ctx.now.mono)) {
    const std::optional<std::string> next = TakeNext();
    if (!next) return;
    const std::string& id = *next;
    const auto found = state_.operations.find(id);
    if (found == state_.operations.end() || found->second.stage != Stage::kQueued) continue;
    Operation& operation = found->second;
    Tracked& tracked = *deps_.machines.Find(id);
    if (auto obstacle = Obstacle(operation, tracked, ctx.now.mono)) {
      PROBE("shard.obstacle");
      EndOperation(id, obstacle->first, std::move(obstacle->second), ctx);
      continue;
    }
    if (operation.blob_until && ctx.now.mono >= *operation.blob_until) {
      PROBE("shard.blob_expired");
      AskBlob(id, operation, ctx);
      continue;
    }
    operation.stage = Stage::kCalling;
    ++state_.calling;
    state_.called.insert_or_assign(id, ctx.now.mono);
    deps_.machines.SetCalling(id);
    tracked.not_before = deps_.machines.NextMoment();
    tracked.missed = false;
    operation.call =
        deps_.calls.Open({.kind = OpenCall::Kind::kTransition, .machine = id, .begun = tracked.not_before});
    ctx.Emit(Call{.id = operation.call,
                  .to = std::string(kProvider),
                  .request = RequestOf(id, operation),
                  .timeout = deps_.config.call_timeout});
  }
}

PartnerRequest Executor::RequestOf(const std::string& id, const Operation& operation) {
  const int64_t epoch = deps_.lifecycle.epoch();
  const contract::FenceToken fence{.shard_id = deps_.config.id, .epoch = epoch, .sequence = ++state_.sequence};
  switch (operation.kind) {
    case OperationKind::kBootstrap:
      return contract::ConfigureRequest{.machine_id = id,
                                        .cluster_id = operation.cluster,
                                        .bootstrap_blob = operation.blob,
                                        .fence = fence,
                                        .shard_metadata = StampOf(operation, deps_.config.id, epoch)};
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

std::optional<contract::MachineRecord> Executor::OnTransitionDone(const CallDone& done, const OpenCall& call,
                                                                  StepContext& ctx) {
  --state_.calling;
  if (!IsOutage(done.status)) state_.answered = ctx.now.mono;
  const std::string& id = call.machine;
  const auto found = state_.operations.find(id);
  const bool late = found == state_.operations.end() || found->second.call != done.id;
  if (late) PROBE("shard.late_transition");  // its machine was dropped meanwhile
  if (done.status.code() == Code::kFailedPrecondition && !MUTANT("shard.fenced_goes_on")) {
    OnFenced(id, done.status, ctx);
    return std::nullopt;
  }
  if (late) return std::nullopt;
  Tracked& tracked = *deps_.machines.Find(id);
  tracked.not_before = deps_.machines.NextMoment();
  const bool hangs = HangsAlone(id, done.status);
  if (IsOutage(done.status)) {
    if (!hangs || state_.outage.attempts > 0) OnOutage(done.status, ctx);
  } else if (ctx.now.mono >= state_.outage.until) {
    state_.outage = {};
  }
  if (!done.status.ok()) {
    PROBE("shard.transition_failed");
    deps_.gets.ScheduleGet(id);  // whether it happened is not known
    OnTransitionFailed(id, found->second, done.status, hangs, ctx);
    return std::nullopt;
  }
  if (tracked.missed) {
    PROBE("shard.look_after_call");
    deps_.gets.ScheduleGet(id);
  }
  if (found->second.kind == OperationKind::kDelete) ++ctx.counters.idle_releases;
  state_.acknowledged.insert_or_assign(
      id, Acknowledged{
              .action = ViewOf(id, found->second), .line = found->second.line, .decided = found->second.decided.mono});
  EndOperation(id, Outcome::kSuccess, "", ctx);
  return std::get<contract::TransitionAck>(*done.reply).machine;
}

void Executor::OnFenced(const std::string& id, const Status& status, StepContext& ctx) {
  PROBE("shard.fenced");
  // One that is in the provider's hands already, begun since the fenced call was given up on, ends by its own answer.
  const auto operation = state_.operations.find(id);
  const bool ends = operation != state_.operations.end() &&
                    (operation->second.stage != Stage::kCalling || !deps_.calls.IsOpen(operation->second.call));
  if (ends) EndOperation(id, Outcome::kFenced, status.message(), ctx);
  deps_.machines.Fence(id);
  const std::string advice = fmt::format(
      "{}; another shard {} is at work, or was with a higher epoch: stop it, or start this one with --epoch-at-least "
      "above it",
      status.message(), deps_.config.id);
  ctx.Note(model::Reason::kFenced, id, advice);
  if (deps_.machines.fenced() < 2 || deps_.rails.modes().halted()) return;
  PROBE("shard.halted");
  deps_.rails.Halt();
  ctx.Note(model::Reason::kHalted, deps_.config.id, advice);
}

// It hangs alone if another transition was answered when it had waited for half of its time. Where there was no other,
// because this was the one call to a provider that seemed to be away, an answer to a list says as much.
bool Executor::HangsAlone(const std::string& id, const Status& status) const {
  const auto called = state_.called.find(id);
  if (status.code() != Code::kDeadlineExceeded || called == state_.called.end()) return false;
  if (MUTANT("shard.hanging_is_outage")) return false;
  const MonoTime half = called->second + deps_.config.call_timeout / 2;
  const bool probes = state_.outage.attempts > 0 && called->second >= state_.outage.until;
  return state_.answered >= half || (probes && state_.read >= half);
}

void Executor::OnTransitionFailed(const std::string& id, const Operation& operation, const Status& status, bool hangs,
                                  StepContext& ctx) {
  Holds& holds = deps_.rails.holds();
  const bool never = status.code() == Code::kUnimplemented;
  if (operation.kind == OperationKind::kRepair && IsRefusal(status.code())) deps_.repairs.OnRefused(id);
  if (hangs) {
    PROBE("shard.machine_hangs");
    holds.OnMachineFailed(id, operation.kind, operation.cluster, false, ctx);
  } else if (IsOutage(status) && !MUTANT("shard.outage_holds")) {
    holds.OnUndecided(id);
  } else if (never) {
    holds.OnMachineFailed(id, operation.kind, operation.cluster, true, ctx);
  } else if (StartOf(operation.kind) == MachineState::kSpeculative) {
    holds.OnCreateFailed(*deps_.machines.Find(id)->record, status.code() == Code::kResourceExhausted, ctx);
  } else if (operation.kind == OperationKind::kBootstrap && IsOfThisCall(status)) {
    holds.OnMachineFailed(id, operation.kind, operation.cluster, false, ctx);
  } else if (operation.kind == OperationKind::kBootstrap) {
    holds.OnConfigureFailed(id, operation.cluster, ctx);
  } else {
    holds.OnOtherFailed(id, ctx);
  }
  EndOperation(id, never ? Outcome::kUnimplemented : Outcome::kProviderError, status.ToString(), ctx);
}

// Calls that were open when it went away fail too, and are no further attempts.
void Executor::OnOutage(const Status& status, StepContext& ctx) {
  Outage& outage = state_.outage;
  const Duration first = deps_.config.retry_first;
  if (ctx.now.mono < outage.until) {
    outage.until = std::max(outage.until, ctx.now.mono + first);
    return;
  }
  PROBE("shard.outage");
  if (outage.attempts == 0) ctx.Note(model::Reason::kProviderSilent, "provider", status.ToString());
  outage.attempts = std::min(outage.attempts + 1, 20);
  const Duration pause = first * (int64_t{1} << (outage.attempts - 1));
  outage.until = ctx.now.mono + std::min(pause, std::max(deps_.config.outage_longest, first));
}

// --- the end

void Executor::OnMachineMoved(const model::Machine& before, const model::Machine& machine, StepContext& ctx) {
  if (before.state != machine.state) OnTransitionEnded(before, machine, ctx);
  const auto operation = state_.operations.find(machine.id);
  if (operation == state_.operations.end() || operation->second.stage == Stage::kCalling) return;
  PROBE("shard.overtaken");
  EndOperation(machine.id, Outcome::kStaleState, WrongState(machine.state), ctx);
}

void Executor::OnTransitionEnded(const model::Machine& before, const model::Machine& machine, StepContext& ctx) {
  using enum MachineState;
  if (!model::IsStable(machine.state) && machine.state != kFailed) return;
  Holds& holds = deps_.rails.holds();
  const bool bounced = (before.state == kDraining && machine.state == kConfigured) ||
                       (before.state == kDeleting && machine.state == kIdle);
  if (!bounced) holds.OnMoved(machine.id, ctx);
  const auto known = state_.acknowledged.find(machine.id);
  const bool failed = machine.state == kFailed;
  const bool acknowledged = known != state_.acknowledged.end();
  // A machine that could be bought fails only by a Create, though nobody heard that it began.
  const bool unheard = before.state == kSpeculative && failed && !MUTANT("shard.unheard_create_not_held");
  const bool moved = (!model::IsStable(before.state) && before.state != kFailed) || acknowledged || unheard;
  // A record need not name the cluster of a machine that is being configured, or has failed.
  const std::string cluster = acknowledged ? known->second.action.cluster_id : before.cluster;
  const bool bootstraps = acknowledged && known->second.action.kind == OperationKindName(OperationKind::kBootstrap);
  const bool creating = before.state == kCreating || before.state == kSpeculative;
  const bool configuring = before.state == kConfiguring || (before.state == kIdle && bootstraps);
  const bool create_failed = creating && (failed || (before.state == kCreating && machine.state == kSpeculative));
  const bool configure_failed = configuring && (failed || (before.state == kConfiguring && machine.state == kIdle));
  if (moved && create_failed) {
    holds.OnCreateFailed(machine, SaysOutOfStock(machine.last_error), ctx);
  } else if (moved && creating && machine.state != kSpeculative) {
    holds.OnCreated(machine, ctx);
  } else if (moved && configure_failed) {
    holds.OnConfigureFailed(machine.id, cluster, ctx);
  } else if (bounced) {
    PROBE("shard.drain_bounced");
    holds.OnOtherFailed(machine.id, ctx);
  } else if (moved && machine.state == kConfigured) {
    holds.OnConfigured(machine.id, machine.cluster, ctx);
  } else {
    holds.OnUndecided(machine.id);
  }
  if (moved && (failed || create_failed || configure_failed || bounced)) TellFailed(before, machine, ctx);
  state_.acknowledged.erase(machine.id);
}

void Executor::TellFailed(const model::Machine& before, const model::Machine& machine, StepContext& ctx) {
  PROBE("shard.transition_ended_in_failed");
  const auto known = state_.acknowledged.find(machine.id);
  contract::ActionView view = known == state_.acknowledged.end() ? UnknownAction(before, ctx) : known->second.action;
  view.outcome = OutcomeName(Outcome::kFailed);
  view.error = machine.last_error;
  if (MUTANT("shard.failed_told_as_success")) return;
  ++ctx.counters.outcomes[{view.kind, view.outcome}];
  if (known == state_.acknowledged.end()) {
    deps_.log.Add(view, ctx);
  } else {
    deps_.log.End(known->second.line, view, ctx.now.mono - known->second.decided, ctx);
  }
}

void Executor::VoidInstructions(const std::string& id) {
  for (auto it = instructed_.lower_bound({id, ""}); it != instructed_.end() && it->first == id;) {
    state_.unanswered.erase(it->second);
    it = instructed_.erase(it);
  }
}

void Executor::EndInstruction(const std::string& token) {
  const auto unanswered = state_.unanswered.find(token);
  if (unanswered == state_.unanswered.end()) return;
  instructed_.erase({unanswered->second.instruction.nodes.front(), token});
  state_.unanswered.erase(unanswered);
}

void Executor::OnMachineDropped(const std::string& id, const std::string& detail, StepContext& ctx) {
  if (state_.operations.contains(id)) EndOperation(id, Outcome::kInventoryMiss, detail, ctx);
  state_.acknowledged.erase(id);
  deps_.rails.holds().OnDropped(id, ctx);
  VoidInstructions(id);
}

void Executor::EndOperation(const std::string& id, Outcome outcome, std::string error, StepContext& ctx) {
  const auto found = state_.operations.find(id);
  const Operation operation = found->second;
  SetDeadline(id, found->second, std::nullopt);
  state_.machine_of_token.erase(operation.token);
  // An instruction that is void is not repeated; one that led to a drain is, until it is acknowledged.
  if (outcome != Outcome::kSuccess) EndInstruction(operation.token);
  state_.called.erase(id);
  state_.operations.erase(found);
  Count(operation, -1);
  // A cluster that was told to give the machine up hears that it keeps it.
  const bool told = operation.kind == OperationKind::kReclaim || operation.kind == OperationKind::kPreempt;
  const Tracked* const kept = deps_.machines.Find(id);
  if (told && outcome != Outcome::kSuccess && kept != nullptr && kept->record->cluster == operation.cluster) {
    deps_.sessions.SendNodeState(operation.cluster, *kept->record, ctx);
  }
  if (outcome != Outcome::kSuccess) deps_.rails.holds().OnUndecided(id);  // if it was a probe, another may be
  deps_.machines.ClearInProgress(id);
  if (outcome != Outcome::kSuccess) ctx.cycle.Request();
  if (IsRepair(operation.kind)) deps_.repairs.OnEnded(id, operation.kind, outcome, ctx);
  contract::ActionView view = ViewOf(id, operation);
  view.outcome = OutcomeName(outcome);
  view.error = std::move(error);
  ++ctx.counters.outcomes[{view.kind, view.outcome}];
  deps_.log.End(operation.line, view, ctx.now.mono - operation.decided.mono, ctx);
}

void Executor::CheckInvariants() const {
  size_t deadlines = 0;
  size_t counted = 0;
  size_t calling = 0;
  const bool stopped = !deps_.lifecycle.stopped().ok();
  for (const auto& [id, operation] : state_.operations) {
    MUSTER_CHECK(deps_.machines.Find(id) != nullptr, "an operation on {}, which is not tracked", id);
    deadlines += operation.deadline ? 1 : 0;
    counted += operation.kind == OperationKind::kPreempt ? 0 : 1;
    if (operation.deadline) MUSTER_CHECK(deadlines_.contains({*operation.deadline, id}));
    MUSTER_CHECK(deps_.machines.IsCalling(id) == (operation.stage == Stage::kCalling));
    calling += operation.stage == Stage::kCalling ? 1 : 0;
    if (operation.stage != Stage::kCalling) continue;
    MUSTER_CHECK(deps_.calls.IsOpen(operation.call) || stopped);
    MUSTER_CHECK(deps_.lifecycle.epoch() > 0);
  }
  MUSTER_CHECK(deadlines == deadlines_.size());
  MUSTER_CHECK(state_.called.size() <= calling, "{} calls are timed, {} are open", state_.called.size(), calling);
  MUSTER_CHECK(counted == counted_, "{} operations are counted, there are {}", counted_, counted);
  MUSTER_CHECK(instructed_.size() == state_.unanswered.size());
  if (stopped) return;
  MUSTER_CHECK(deps_.calls.Count(OpenCall::Kind::kTransition) == state_.calling);
  MUSTER_CHECK(state_.calling <= deps_.config.execute_concurrency);
}

}  // namespace muster::shard
