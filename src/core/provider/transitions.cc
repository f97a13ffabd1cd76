#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "core/provider/provider.h"

namespace muster::provider {
namespace {

using contract::OperationKind;
using model::MachineState;

constexpr size_t kLongestId = 512;              // bytes
constexpr size_t kMostShards = 1'024;           // that ever used a token
constexpr size_t kMostGhosts = 1'000;           // of a shard: ids without a machine whose marks are kept
constexpr int64_t kLongestGrace = 366 * 86400;  // seconds
constexpr model::Probability kCertain{1'000'000};
constexpr Duration kLeastTimeout = 1s;

// Where an operation starts, what the machine is while it is under way, and what it is at the end.
struct Edge {
  MachineState from;
  MachineState during;
  MachineState to;
};
constexpr Edge EdgeOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kCreate: return {MachineState::kSpeculative, MachineState::kCreating, MachineState::kIdle};
    case OperationKind::kConfigure: return {MachineState::kIdle, MachineState::kConfiguring, MachineState::kConfigured};
    case OperationKind::kDrain: return {MachineState::kConfigured, MachineState::kDraining, MachineState::kIdle};
    case OperationKind::kDelete: break;
  }
  return {MachineState::kIdle, MachineState::kDeleting, MachineState::kSpeculative};
}

uint64_t& NumberOf(Operations& operations, OperationKind kind) {
  switch (kind) {
    case OperationKind::kCreate: return operations.create;
    case OperationKind::kConfigure: return operations.configure;
    case OperationKind::kDrain: return operations.drain;
    case OperationKind::kDelete: break;
  }
  return operations.remove;
}
uint64_t NumberOf(const MachineRow& row, OperationKind kind) {
  Operations operations = row.operations;
  return NumberOf(operations, kind);
}

void Refuse(contract::RequestId request, Status status, std::vector<Core::Effect>& out) {
  out.push_back(Answer{.request = request, .status = std::move(status)});
}

Duration GraceOf(const contract::ProviderRequest& body) {
  const auto* drain = std::get_if<contract::DrainRequest>(&body);
  if (drain == nullptr) return {};
  return std::chrono::seconds(std::clamp<int64_t>(drain->grace_period_seconds, 0, kLongestGrace));
}

}  // namespace

void Core::OnTransition(const Asked& asked, OperationKind kind, const std::string& machine_id,
                        const contract::FenceToken& fence, Now now, std::vector<Effect>& out) {
  if (machine_id.empty() || machine_id.size() > kLongestId) {
    return Refuse(asked.request,
                  Status(Code::kInvalidArgument, machine_id.empty()
                                                     ? "machine_id is empty; name a machine"
                                                     : fmt::format("machine_id has more than {} bytes", kLongestId)),
                  out);
  }
  Transition transition{.request = asked.request,
                        .kind = kind,
                        .configure = std::get_if<contract::ConfigureRequest>(&asked.body),
                        .grace = GraceOf(asked.body)};
  const auto found = index_.find(machine_id);
  const bool look_first = MUTANT("provider.existence_before_fence") && found == index_.end();
  if (found != index_.end()) transition.machine = found->second;
  const bool repeats_first =
      MUTANT("provider.repetition_before_fence") && found != index_.end() && IsRepetition(transition);
  Status status = look_first || repeats_first ? Status() : PassFence(fence, machine_id, transition.persist);
  if (status.ok() && found == index_.end()) {
    status = Status(Code::kNotFound, fmt::format("{} has no machine {}", config_.name, machine_id));
  }
  if (status.ok()) {
    if (IsRepetition(transition)) {
      PROBE("provider.repeated");
      if (!transition.persist.writes.empty()) out.push_back(std::move(transition.persist));
      out.push_back(Answer{.request = asked.request, .status = {}, .reply = Ack(transition.machine, kind)});
      return;
    }
    status = CheckRequest(transition);
  }
  if (!status.ok()) {
    // A token that passed is spent, also when the call then fails.
    if (MUTANT("provider.failed_call_keeps_its_token") && found != index_.end()) {
      marks_.erase({fence.shard_id, machine_id});
      floors_.erase(fence.shard_id);
    }
    if (!transition.persist.writes.empty()) {
      PROBE("provider.mark_of_a_failed_call");
      out.push_back(std::move(transition.persist));
    }
    return Refuse(asked.request, std::move(status), out);
  }
  Accept(transition, now, out);
}

Status Core::PassFence(const contract::FenceToken& fence, const std::string& machine_id, contract::Persist& persist) {
  if (!fence.given()) return {};
  if (fence.shard_id.size() > kLongestId) {
    return {Code::kInvalidArgument, fmt::format("shard_id has more than {} bytes", kLongestId)};
  }
  const std::pair<std::string, std::string> whose{fence.shard_id, MUTANT("provider.fence_per_shard") ? "" : machine_id};
  const Mark token{.epoch = fence.epoch, .sequence = fence.sequence};
  const auto mark = marks_.find(whose);
  const bool any_epoch = MUTANT("provider.fence_ignores_epoch");
  const bool open = MUTANT("provider.no_fence");
  bool newer = mark == marks_.end() || token > mark->second || open;
  if (!newer && MUTANT("provider.fence_lets_equal_pass")) newer = token == mark->second;
  if (!newer && any_epoch) newer = token.sequence > mark->second.sequence;
  if (!newer) {
    PROBE("provider.fenced");
    ++fenced_;
    return {Code::kFailedPrecondition,
            fmt::format("fenced: shard {} has used epoch {} sequence {} on machine {}, this call carries epoch {} "
                        "sequence {}; draw a newer one",
                        codec::Quote(fence.shard_id), mark->second.epoch, mark->second.sequence, machine_id,
                        fence.epoch, fence.sequence)};
  }
  const auto floor = floors_.find(fence.shard_id);
  const bool no_floor = any_epoch || open || MUTANT("provider.no_epoch_floor");
  if (floor != floors_.end() && fence.epoch < floor->second && !no_floor) {
    PROBE("provider.fenced_by_epoch");
    ++fenced_;
    return {Code::kFailedPrecondition,
            fmt::format("fenced: shard {} has used epoch {}, this call carries epoch {}; a newer process of that shard "
                        "is at work",
                        codec::Quote(fence.shard_id), floor->second, fence.epoch)};
  }
  if (floor == floors_.end() && floors_.size() >= kMostShards) {
    return {Code::kResourceExhausted,
            fmt::format("shard_id: {} shards have used this provider, and no more are remembered", floors_.size())};
  }
  if (MUTANT("provider.mark_only_known_machines") && !index_.contains(machine_id)) return {};
  const std::optional<Mark> before = mark == marks_.end() ? std::nullopt : std::optional(mark->second);
  marks_.insert_or_assign(whose, token);
  floors_[fence.shard_id] = std::max(floor == floors_.end() ? fence.epoch : floor->second, fence.epoch);
  if (!MUTANT("provider.mark_not_durable")) {
    persist.writes.push_back(kMarks.Put(whose, token));
  }
  if (!index_.contains(machine_id)) {
    KeepFewGhosts(fence.shard_id, whose.second, before ? &*before : nullptr, token, persist);
  }
  return {};
}

void Core::KeepFewGhosts(const std::string& shard, const std::string& machine_id, const Mark* before, const Mark& now,
                         contract::Persist& persist) {
  auto& ghosts = ghosts_[shard];
  if (before != nullptr) ghosts.erase({*before, machine_id});
  ghosts.emplace(now, machine_id);
  if (ghosts.size() <= kMostGhosts || MUTANT("provider.ghosts_stay")) return;
  PROBE("provider.ghost_forgotten");
  const auto oldest = ghosts.begin();
  marks_.erase({shard, oldest->second});
  persist.writes.push_back(kMarks.Erase({shard, oldest->second}));
  ghosts.erase(oldest);
}

bool Core::IsRepetition(const Transition& transition) const {
  const MachineRow& row = rows_[transition.machine];
  const Edge edge = EdgeOf(transition.kind);
  const MachineState state = row.machine->state;
  if (state != edge.during && state != edge.to) return false;
  // A machine may stand where this kind of operation ends without ever having gone through it.
  if (NumberOf(row, transition.kind) == 0) return false;
  // Bound to another cluster is no repetition: who asks must not believe that he has the machine.
  if (transition.configure == nullptr || MUTANT("provider.replay_ignores_cluster")) return true;
  return transition.configure->cluster_id == row.machine->cluster;
}

Status Core::CheckRequest(const Transition& transition) const {
  const model::Machine& machine = *rows_[transition.machine].machine;
  if (transition.configure != nullptr && transition.configure->cluster_id.empty()) {
    return {Code::kInvalidArgument, "cluster_id is empty; name the cluster that the machine shall join"};
  }
  const bool repairs = transition.kind == OperationKind::kDelete && machine.state == MachineState::kFailed;
  if (machine.state != EdgeOf(transition.kind).from && !repairs) {
    return {Code::kAborted,
            fmt::format("machine {} is {}{}; {} needs it {}", machine.id, model::StateName(machine.state),
                        machine.last_error.empty() ? "" : fmt::format(" ({})", machine.last_error),
                        contract::OperationName(transition.kind), model::StateName(EdgeOf(transition.kind).from))};
  }
  if (transition.kind == OperationKind::kDelete && !rows_[transition.machine].deletable && !repairs) {
    return {Code::kUnimplemented, fmt::format("machine {} is {} and cannot be given back", machine.id,
                                              model::CapacityTypeName(machine.capacity_type))};
  }
  return {};
}

void Core::Accept(Transition& transition, Now now, std::vector<Effect>& out) {
  MachineRow& row = rows_[transition.machine];
  model::Machine machine = *row.machine;
  machine.state = EdgeOf(transition.kind).during;
  const uint64_t number = log_.newest() + 1;
  if (transition.kind == OperationKind::kCreate) row.operations = {};
  NumberOf(row.operations, transition.kind) = number;
  row.in_flight =
      InFlight{.kind = transition.kind, .bootstrap_blob = {}, .grace = transition.grace, .started = now.wall};
  if (transition.configure != nullptr) {
    row.in_flight->bootstrap_blob = transition.configure->bootstrap_blob;
    machine.cluster = transition.configure->cluster_id;
    machine.shard_metadata = transition.configure->shard_metadata;
  }
  if (transition.kind == OperationKind::kDelete) {
    machine.cluster.clear();
    machine.shard_metadata.clear();
  }
  Change(transition.machine, std::move(machine), transition.persist);
  if (!MUTANT("provider.answer_before_durable")) out.push_back(std::move(transition.persist));
  out.push_back(Answer{.request = transition.request, .status = {}, .reply = Ack(transition.machine, transition.kind)});
  if (MUTANT("provider.answer_before_durable")) out.push_back(std::move(transition.persist));
  AskBackend(transition.machine, now, out);
}

void Core::AskBackend(MachineIndex index, Now now, std::vector<Effect>& out) {
  const MachineRow& row = rows_[index];
  const InFlight& in_flight = *row.in_flight;
  // Wall time, because a restart has no other memory of it; a clock set back only makes the operation longer.
  const Duration elapsed = std::max<Duration>(now.wall - in_flight.started, Duration::zero());
  const uint64_t number = NumberOf(row, in_flight.kind);
  open_calls_.emplace(++last_call_, OpenCall{.machine = index, .operation = number});
  out.push_back(Call{.id = last_call_,
                     .to = "backend",
                     .request = {.id = OperationId(number),
                                 .kind = in_flight.kind,
                                 .machine = row.machine,
                                 .bootstrap_blob = in_flight.bootstrap_blob,
                                 .grace = std::max<Duration>(in_flight.grace - elapsed, Duration::zero())},
                     .timeout = std::max(TimeoutOf(in_flight) - elapsed, kLeastTimeout)});
}

void Core::Resume(Now now, std::vector<Effect>& out) {
  if (!left_over_.writes.empty()) out.push_back(std::exchange(left_over_, {}));
  for (MachineIndex i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].in_flight) continue;
    PROBE("provider.resumed");
    if (MUTANT("provider.resume_under_another_id")) {
      NumberOf(rows_[i].operations, rows_[i].in_flight->kind) = log_.newest() + 1;
      contract::Persist persist;
      Change(i, *rows_[i].machine, persist);
      out.push_back(std::move(persist));
    }
    if (!MUTANT("provider.no_resume")) AskBackend(i, now, out);
  }
}

void Core::OnCallDone(const CallDone& done, std::vector<Effect>& out) {
  const auto call = open_calls_.find(done.id);
  MUSTER_CHECK(call != open_calls_.end(), "the host ended call {}, which is not open", done.id);
  const OpenCall open = call->second;
  open_calls_.erase(call);
  const MachineRow& row = rows_[open.machine];
  if (!row.in_flight || NumberOf(row, row.in_flight->kind) != open.operation) {
    PROBE("provider.late_end");
    if (MUTANT("provider.late_end_unfails") && done.status.ok() && row.machine->state == MachineState::kFailed) {
      contract::Persist persist;
      model::Machine machine = *row.machine;
      machine.state = machine.cluster.empty() ? MachineState::kIdle : MachineState::kConfigured;
      Change(open.machine, std::move(machine), persist);
      out.push_back(std::move(persist));
    }
    return;
  }
  if (!done.status.ok()) {
    PROBE("provider.operation_failed");
    const std::string_view name = contract::OperationName(row.in_flight->kind);
    return Fail(open.machine, fmt::format("{} failed: {}", name, done.status.ToString()), out);
  }
  MUSTER_CHECK(done.reply.has_value(), "call {} ended well without a reply", done.id);
  Finish(open.machine, *done.reply, out);
}

void Core::Finish(MachineIndex index, const contract::OperationDone& done, std::vector<Effect>& out) {
  MachineRow& row = rows_[index];
  const OperationKind kind = row.in_flight->kind;
  if (kind == OperationKind::kCreate && done.host.ref.empty()) {
    return Fail(index, "Create failed: the backend named no host", out);
  }
  model::Machine machine = *row.machine;
  machine.state = EdgeOf(kind).to;
  row.in_flight.reset();
  if (kind == OperationKind::kCreate) machine.host = done.host;
  if (kind == OperationKind::kDrain) {
    if (!MUTANT("provider.drain_keeps_cluster")) machine.cluster.clear();
    if (!MUTANT("provider.drain_keeps_metadata")) machine.shard_metadata.clear();
  }
  if (kind == OperationKind::kDelete) {
    machine.host = {};
    machine.last_error.clear();
    row.interrupted = false;
    const Market& market = markets_.at({machine.instance_type, machine.zone, machine.capacity_type});
    machine.price_per_hour = market.now.price_per_hour;
    machine.interruption_probability = market.now.interruption_probability;
  }
  contract::Persist persist;
  Change(index, std::move(machine), persist);
  out.push_back(std::move(persist));
}

void Core::Fail(MachineIndex index, std::string error, std::vector<Effect>& out) {
  MachineRow& row = rows_[index];
  model::Machine machine = *row.machine;
  machine.state = MachineState::kFailed;
  machine.last_error = MUTANT("provider.failed_without_error") ? "" : std::move(error);
  // What a failed Create may have left behind has a name, so that Delete has something to clean up.
  if (machine.host.empty()) machine.host = {.provider = config_.name, .ref = "remains-of-" + machine.id};
  row.in_flight.reset();
  contract::Persist persist;
  Change(index, std::move(machine), persist);
  out.push_back(std::move(persist));
}

void Core::OnObserved(const contract::MarketMoved& moved, std::vector<Effect>& out) {
  const MarketKey key = MarketOf(moved);
  const auto market = markets_.find(key);
  if (market == markets_.end()) return;
  contract::Persist persist;
  market->second.now = moved;
  persist.writes.push_back(kMarkets.Put(key, moved));
  for (const MachineIndex i : market->second.machines) {
    model::Machine machine = *rows_[i].machine;
    machine.price_per_hour = moved.price_per_hour;
    machine.interruption_probability = rows_[i].interrupted ? kCertain : moved.interruption_probability;
    if (machine != *rows_[i].machine) Change(i, std::move(machine), persist);
  }
  out.push_back(std::move(persist));
}

const MachineRow* Core::FindHost(const std::string& machine_id, const std::string& host_ref,
                                 MachineIndex& index) const {
  const auto found = index_.find(machine_id);
  if (found == index_.end()) return nullptr;
  index = found->second;
  const MachineRow& row = rows_[index];
  if (row.machine->host.ref == host_ref && !host_ref.empty()) return &row;
  PROBE("provider.observed_another_life");
  return nullptr;
}

void Core::OnObserved(const contract::InterruptionNoticed& noticed, std::vector<Effect>& out) {
  MachineIndex index = 0;
  const MachineRow* row = FindHost(noticed.machine_id, noticed.host_ref, index);
  if (row == nullptr || row->interrupted) return;
  PROBE("provider.interruption_noticed");
  rows_[index].interrupted = true;
  model::Machine machine = *row->machine;
  machine.interruption_probability = kCertain;
  contract::Persist persist;
  Change(index, std::move(machine), persist);
  out.push_back(std::move(persist));
}

void Core::OnObserved(const contract::MachineLost& lost, std::vector<Effect>& out) {
  MachineIndex index = 0;
  const MachineRow* row = FindHost(lost.machine_id, lost.host_ref, index);
  if (row == nullptr) return;
  const MachineState state = row->machine->state;
  if (state == MachineState::kDeleting || state == MachineState::kFailed) return;  // on its way out already
  PROBE("provider.machine_lost");
  Fail(index, lost.reason.empty() ? "the hardware is gone" : lost.reason, out);
}

void Core::Change(MachineIndex index, model::Machine machine, contract::Persist& persist) {
  MachineRow& row = rows_[index];
  --counts_[static_cast<size_t>(states_[index])];
  states_[index] = machine.state;
  ++counts_[static_cast<size_t>(machine.state)];
  row.machine = contract::MachineRecord(std::move(machine));
  row.changed = log_.newest() + 1;
  log_.Append(index, row.changed);
  persist.writes.push_back(kMachines.Put(row.machine->id, row));
}

contract::TransitionAck Core::Ack(MachineIndex index, OperationKind kind) const {
  return {.operation_id =
              OperationId(MUTANT("provider.repeat_gets_another_id") ? log_.newest() + 1 : NumberOf(rows_[index], kind)),
          .machine = rows_[index].machine};
}

std::string Core::OperationId(uint64_t number) const {
  return fmt::format("op-{:016x}-{}", numbering_.lineage, number);
}

Duration Core::TimeoutOf(const InFlight& in_flight) const {
  switch (in_flight.kind) {
    case OperationKind::kCreate: return config_.create_timeout;
    case OperationKind::kConfigure: return config_.configure_timeout;
    case OperationKind::kDrain: return config_.drain_timeout + in_flight.grace;
    case OperationKind::kDelete: break;
  }
  return config_.delete_timeout;
}

}  // namespace muster::provider
