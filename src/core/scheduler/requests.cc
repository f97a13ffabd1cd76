#include "core/scheduler/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/overloaded.h"
#include "base/probe.h"
#include "core/scheduler/sets.h"
#include "model/workload_bounds.h"

namespace muster::scheduler {
namespace {

using model::DesiredState;

// The object that a request changes. Nothing for what changes none.
std::optional<ObjectId> ObjectOf(const contract::ClusterRequest& body) {
  return std::visit(
      Overloaded{
          [](const contract::RegisterNode& r) -> std::optional<ObjectId> { return NodeObject(r.facts.node); },
          [](const contract::ApplyWorkload& r) -> std::optional<ObjectId> { return WorkloadObject(r.workload); },
          [](const contract::ApplySpec& r) -> std::optional<ObjectId> {
            if (r.spec.kind == model::WorkloadKind::kWorkload) return WorkloadObject(r.spec.name);
            return SetObject(r.spec.name);
          },
          [](const contract::ApplyQuota& r) -> std::optional<ObjectId> { return QuotaObject(r.quota.tenant); },
          [](const contract::DeleteObject& r) -> std::optional<ObjectId> { return ObjectId{r.kind, r.name}; },
          [](const contract::RetryWorkload& r) -> std::optional<ObjectId> { return WorkloadObject(r.workload); },
          [](const contract::ScaleSet& r) -> std::optional<ObjectId> { return SetObject(r.set); },
          [](const contract::RestartSet& r) -> std::optional<ObjectId> { return SetObject(r.set); },
          [](const contract::CordonNode& r) -> std::optional<ObjectId> { return NodeObject(r.node); },
          [](const contract::DrainNode& r) -> std::optional<ObjectId> { return NodeObject(r.node); },
          [](const contract::AcceptNode& r) -> std::optional<ObjectId> { return NodeObject(r.node); },
          [](const auto&) -> std::optional<ObjectId> { return std::nullopt; },
      },
      body);
}

// Whether it is to run, and was admitted for that. What is to stop or to go may hold room on its node for a while, and
// with it a part of the quota that it was not admitted for: a stopped one that is retried, or deleted.
bool Runs(const WorkloadRecord* record) {
  return record != nullptr && record->workload.desired == DesiredState::kRunning &&
         record->workload.phase != model::WorkloadPhase::kCompleted;
}

// Why what is declared is too large to be kept; empty if it is not.
std::string SizeProblem(const model::WorkloadTemplate& spec, const std::string& tenant,
                        const std::map<std::string, std::string>& labels) {
  constexpr MostOf kMostOfName{.entries = 0, .bytes = 253};
  if (std::string problem = Beyond(kMostOfName, "tenant", tenant); !problem.empty()) return problem;
  if (std::string problem = model::TextsProblem("labels", labels); !problem.empty()) return problem;
  return model::SizeProblem(spec);
}
std::string SizeProblem(const WantedWorkload& wanted) {
  constexpr MostOf kMostOfName{.entries = 0, .bytes = 253};
  if (std::string problem = Beyond(kMostOfName, "revision", wanted.revision); !problem.empty()) return problem;
  if (std::string problem = model::TextsProblem("metadata", wanted.metadata); !problem.empty()) return problem;
  if (std::string problem = model::TextsProblem("requireLabels", wanted.require_labels); !problem.empty())
    return problem;
  return SizeProblem(wanted.spec, wanted.tenant, wanted.labels);
}

}  // namespace

Requests::Requests(Parts parts, State state) : p_(parts), state_(std::move(state)) {}

void Requests::Answer(contract::RequestId request, Reply reply, StepContext& ctx) {
  if (reply) {
    ctx.Emit(scheduler::Answer{.request = request, .status = {}, .reply = *std::move(reply)});
  } else {
    ctx.Emit(scheduler::Answer{.request = request, .status = std::move(reply).error(), .reply = std::nullopt});
  }
}

// --- the way of a request

void Requests::Handle(const Asked& asked, StepContext& ctx) {
  if (const auto* beat = std::get_if<contract::Heartbeat>(&asked.body)) return OnHeartbeat(*beat, asked.request, ctx);
  if (Status may = p_.standing.MayChange(); !may.ok()) {
    return Answer(asked.request, std::unexpected(std::move(may)), ctx);
  }
  const auto object = ObjectOf(asked.body);
  MUSTER_CHECK(object.has_value(), "request {} changes nothing", asked.request);
  Waiter waiter{.request = asked.request, .body = asked.body, .tenant = asked.tenant};
  if (p_.drafts.Busy(*object) || state_.queued.contains(*object)) {
    state_.queued[*object].push_back(std::move(waiter));
    return;
  }
  Carry(*object, std::move(waiter), ctx);
}

void Requests::Carry(const ObjectId& object, Waiter waiter, StepContext& ctx) {
  if (Status may = CheckTenant(object, waiter); !may.ok()) {
    return Answer(waiter.request, std::unexpected(std::move(may)), ctx);
  }
  const auto change = [&](const auto& body) -> Outcome {
    if constexpr (requires { this->Change(body, waiter, ctx); }) {
      return Change(body, waiter, ctx);
    } else {
      return Error(Code::kInternal, "not a change");
    }
  };
  if (Outcome outcome = std::visit(change, std::as_const(waiter.body))) {
    Answer(waiter.request, *std::move(outcome), ctx);
  } else {
    p_.drafts.AddWaiter(object, std::move(waiter));
    p_.quota.Sync(object);
    if (object.kind == contract::ObjectKind::kWorkload) p_.reconciler.OnRequested(object.name);
    if (object.kind == contract::ObjectKind::kSet) p_.sets.MarkDirty(object.name);
  }
}

void Requests::RunQueued(StepContext& ctx) {
  std::vector<ObjectId> objects;
  for (const auto& [object, queue] : state_.queued) {
    if (!p_.drafts.Busy(object)) objects.push_back(object);
  }
  for (const ObjectId& object : objects) {
    auto node = state_.queued.extract(object);
    for (Waiter& waiter : node.mapped()) Carry(object, std::move(waiter), ctx);
  }
}

void Requests::OnResolved(Resolved resolved, StepContext& ctx) {
  switch (resolved.kind) {
    case Resolved::Kind::kCommitted: return AnswerAll(resolved, ctx);
    case Resolved::Kind::kRefused:
      for (const Waiter& waiter : resolved.waiters) Answer(waiter.request, std::unexpected(resolved.status), ctx);
      return;
    case Resolved::Kind::kAgain:
      if (resolved.waiters.empty()) return;
      PROBE("scheduler.request_again");
      std::deque<Waiter>& queue = state_.queued[resolved.object];
      queue.insert(queue.begin(), std::make_move_iterator(resolved.waiters.begin()),
                   std::make_move_iterator(resolved.waiters.end()));
  }
}

// Of several registrations of a native node in one commit the last one has the epoch; the others must not act with it.
void Requests::AnswerAll(const Resolved& resolved, StepContext& ctx) {
  const auto native = [](const Waiter& waiter) {
    const auto* body = std::get_if<contract::RegisterNode>(&waiter.body);
    return body != nullptr && body->facts.native;
  };
  const auto last = std::ranges::find_if(resolved.waiters.rbegin(), resolved.waiters.rend(), native);
  for (const Waiter& waiter : resolved.waiters) {
    if (native(waiter) && &waiter != &*last) {
      PROBE("scheduler.registered_twice");
      Answer(waiter.request, Error(Code::kAborted, "the node registered again meanwhile: register"), ctx);
    } else {
      Answer(waiter.request, ReplyTo(waiter, resolved, ctx), ctx);
    }
  }
}

void Requests::RefuseAll(std::vector<Waiter> waiters, StepContext& ctx) {
  for (auto& [object, queue] : std::exchange(state_.queued, {})) {
    std::ranges::move(queue, std::back_inserter(waiters));
  }
  for (const Waiter& waiter : waiters) Answer(waiter.request, std::unexpected(p_.standing.MayChange()), ctx);
}

bool Requests::idle() const {
  return std::ranges::none_of(state_.queued, [&](const auto& entry) { return !p_.drafts.Busy(entry.first); });
}

void Requests::CheckInvariants() const {
  for (const auto& [object, queue] : state_.queued)
    MUSTER_CHECK(!queue.empty(), "the queue of {} is empty", object.name);
}

contract::Applied Requests::AppliedOf(const ObjectId& object, const Waiter& waiter) const {
  contract::Applied applied{.result = waiter.result, .store_revision = p_.copy.RevisionOf(object)};
  if (object.kind == contract::ObjectKind::kWorkload) {
    if (const WorkloadRecord* record = p_.copy.Find<WorkloadRecord>(object.name)) {
      applied.revision = record->agent_revision;
      if (record->workload.assigned_node.empty() && record->waits > 0) applied.refusal = record->message;
    }
  } else if (const SetRecord* set = p_.copy.Find<SetRecord>(object.name);
             set != nullptr && object.kind == contract::ObjectKind::kSet) {
    applied.revision = set->revision;
  }
  return applied;
}

contract::ClusterReply Requests::ReplyTo(const Waiter& waiter, const Resolved& resolved, StepContext& ctx) {
  if (const auto* body = std::get_if<contract::RegisterNode>(&waiter.body)) {
    const std::string& node = resolved.object.name;
    const bool remove_others = !body->facts.native || p_.orphans.OnReported(node, body->running, true, ctx);
    OnRegistered(node, *body);
    return Registered(node, remove_others, ctx.now);
  }
  const bool applies = std::holds_alternative<contract::ApplyWorkload>(waiter.body) ||
                       std::holds_alternative<contract::ApplySpec>(waiter.body) ||
                       std::holds_alternative<contract::ApplyQuota>(waiter.body);
  if (applies) {
    contract::Applied applied = AppliedOf(resolved.object, waiter);
    applied.store_revision = resolved.revision;
    return applied;
  }
  return contract::Done{.message = {}, .store_revision = resolved.revision};
}

// Whether who asks may change the object. What a tenant applies is its own, whether or not the request says so.
Status Requests::CheckTenant(const ObjectId& object, Waiter& waiter) const {
  const std::string& tenant = waiter.tenant;
  if (tenant.empty() || MUTANT("scheduler.tenant_unbounded")) return {};
  const auto denied = [&](std::string_view what) {
    return Status(Code::kPermissionDenied, fmt::format("tenant {} may not change {}", tenant, what));
  };
  std::string* named = nullptr;
  if (auto* apply = std::get_if<contract::ApplyWorkload>(&waiter.body)) named = &apply->tenant;
  if (auto* apply = std::get_if<contract::ApplySpec>(&waiter.body)) named = &apply->spec.tenant;
  if (named != nullptr && named->empty()) *named = tenant;
  if (named != nullptr && *named != tenant) return denied(fmt::format("what belongs to tenant {}", *named));
  const std::string* owner = &tenant;
  if (object.kind == contract::ObjectKind::kWorkload) {
    if (const auto* record = p_.drafts.Find<WorkloadRecord>(object.name)) owner = &record->workload.tenant;
  } else if (object.kind == contract::ObjectKind::kSet) {
    if (const auto* record = p_.drafts.Find<SetRecord>(object.name)) owner = &record->spec.tenant;
  } else {
    return denied("nodes and quotas");
  }
  if (*owner == tenant) return {};
  return denied(fmt::format("{} {}, which is not its own", contract::ObjectKindName(object.kind), object.name));
}

// --- workloads

Status Requests::Charge(const std::string& tenant, Waiter& waiter, StepContext& ctx) {
  if (waiter.charged) return {};
  waiter.charged = true;
  return p_.quota.TakeApply(tenant, ctx.now.mono);
}

Requests::Outcome Requests::Refuse(const ObjectId& object, const std::string& tenant, Reason reason, Status status,
                                   bool dry_run, StepContext& ctx) {
  if (!dry_run) p_.refusals.Tell(tenant, object, reason, status, ctx);
  return std::unexpected(std::move(status));
}

Status Requests::CheckReadable(const ObjectId& object) const {
  const bool known = object.kind == contract::ObjectKind::kWorkload
                         ? p_.copy.Find<WorkloadRecord>(object.name) != nullptr
                     : object.kind == contract::ObjectKind::kSet  ? p_.copy.Find<SetRecord>(object.name) != nullptr
                     : object.kind == contract::ObjectKind::kNode ? p_.copy.Find<NodeRecord>(object.name) != nullptr
                                                                  : p_.copy.Find<model::Quota>(object.name) != nullptr;
  if (known || p_.copy.RevisionOf(object) == 0) return {};
  return {Code::kDataLoss, fmt::format("the record of {} {} in the store cannot be read: repair or remove it",
                                       contract::ObjectKindName(object.kind), object.name)};
}

// What has stopped holds nothing of its tenant's quota until it is to run again.
Status Requests::AdmitRevived(const WorkloadRecord& before) const {
  WorkloadRecord next = before;
  next.workload.desired = DesiredState::kRunning;
  next.workload.phase = model::WorkloadPhase::kPending;
  return p_.quota.Admit(WorkloadObject(before.workload.id), HoldingOf(next), Runs(&before));
}

Requests::Outcome Requests::ApplyTo(const WantedWorkload& wanted, Waiter& waiter, bool dry_run, StepContext& ctx) {
  const ObjectId object = WorkloadObject(wanted.id);
  if (std::string problem = SizeProblem(wanted); !problem.empty()) return InvalidArgument(std::move(problem));
  if (Status readable = CheckReadable(object); !readable.ok()) return std::unexpected(readable);
  if (const WorkloadRecord* owned = p_.drafts.Find<WorkloadRecord>(wanted.id);
      owned != nullptr && owned->workload.set != wanted.set) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("workload {} is a member of set {}: change the set", wanted.id, owned->workload.set));
  }
  const WorkloadRecord next = p_.edits.Preview(wanted, ctx.now);
  if (Status valid = model::CheckStructure(next.workload); !valid.ok()) return std::unexpected(std::move(valid));
  if (Status rate = Charge(wanted.tenant, waiter, ctx); !rate.ok()) {
    return Refuse(object, wanted.tenant, Reason::kRateExceeded, std::move(rate), dry_run, ctx);
  }
  // What has ended holds nothing of its tenant's quota; this change may have it run again.
  WorkloadRecord running = next;
  if (next.workload.desired == DesiredState::kRunning && p_.edits.Revives(next)) {
    running.workload.phase = model::WorkloadPhase::kPending;
  }
  const bool runs = Runs(p_.drafts.Find<WorkloadRecord>(wanted.id));
  if (Status admitted = p_.quota.Admit(object, HoldingOf(running), runs); !admitted.ok()) {
    return Refuse(object, wanted.tenant, Reason::kQuotaFull, std::move(admitted), dry_run, ctx);
  }
  if (dry_run) {
    waiter.result = p_.edits.ResultOf(next);
    contract::Applied applied = AppliedOf(object, waiter);
    applied.revision = next.agent_revision;
    return applied;
  }
  waiter.result = p_.edits.Apply(wanted, ctx);
  if (waiter.result == contract::ApplyResult::kUnchanged && !p_.drafts.state().drafts.contains(object)) {
    return AppliedOf(object, waiter);
  }
  return std::nullopt;
}

Requests::Outcome Requests::Change(const contract::ApplyWorkload& body, Waiter& waiter, StepContext& ctx) {
  const WorkloadRecord* before = p_.drafts.Find<WorkloadRecord>(body.workload);
  if (body.spec) {
    return ApplyTo({.id = body.workload,
                    .set = {},
                    .tenant = body.tenant,
                    .revision = body.revision,
                    .labels = before == nullptr ? std::map<std::string, std::string>{} : before->workload.labels,
                    .spec = *body.spec,
                    .desired = body.desired,
                    .require_labels = body.require_labels,
                    .metadata = body.metadata},
                   waiter, false, ctx);
  }
  if (before == nullptr) return Error(Code::kNotFound, fmt::format("there is no workload {}", body.workload));
  if (!before->workload.set.empty() && body.desired != DesiredState::kDeleted) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("workload {} is a member of set {}: change the set", body.workload, before->workload.set));
  }
  if (body.desired == DesiredState::kRunning) {
    if (Status admitted = AdmitRevived(*before); !admitted.ok()) {
      return Refuse(WorkloadObject(body.workload), before->workload.tenant, Reason::kQuotaFull, std::move(admitted),
                    false, ctx);
    }
  }
  const bool changed = p_.edits.SetDesired(body.workload, body.desired, ctx);
  waiter.result = changed ? contract::ApplyResult::kConfigured : contract::ApplyResult::kUnchanged;
  const ObjectId object = WorkloadObject(body.workload);
  if (!p_.drafts.state().drafts.contains(object)) return AppliedOf(object, waiter);
  return std::nullopt;
}

Requests::Outcome Requests::Change(const contract::ApplySpec& body, Waiter& waiter, StepContext& ctx) {
  const bool single = body.spec.kind == model::WorkloadKind::kWorkload;
  const ObjectId object = single ? WorkloadObject(body.spec.name) : SetObject(body.spec.name);
  if (body.expect && *body.expect != p_.copy.RevisionOf(object)) {
    return Error(Code::kAborted, fmt::format("{} {} has revision {}, {} was expected: read it again",
                                             contract::ObjectKindName(object.kind), object.name,
                                             p_.copy.RevisionOf(object), *body.expect));
  }
  if (!single) return ApplySet(body, waiter, ctx);
  return ApplyTo({.id = body.spec.name,
                  .set = {},
                  .tenant = body.spec.tenant,
                  .revision = {},
                  .labels = body.spec.labels,
                  .spec = body.spec.spec},
                 waiter, body.dry_run, ctx);
}

Requests::Outcome Requests::Change(const contract::RetryWorkload& body, Waiter&, StepContext& ctx) {
  const WorkloadRecord* before = p_.drafts.Find<WorkloadRecord>(body.workload);
  if (before == nullptr) return Error(Code::kNotFound, fmt::format("there is no workload {}", body.workload));
  p_.edits.Retry(body.workload, ctx);
  return std::nullopt;
}

Requests::Outcome Requests::Change(const contract::ApplyQuota& body, Waiter& waiter, StepContext&) {
  if (!model::IsWorkloadId(body.quota.tenant)) return InvalidArgument("tenant: not a valid id");
  const model::Quota* before = p_.drafts.Find<model::Quota>(body.quota.tenant);
  const bool unchanged = before != nullptr && *before == body.quota;
  if (unchanged && !p_.drafts.state().drafts.contains(QuotaObject(body.quota.tenant))) {
    return contract::Applied{.result = contract::ApplyResult::kUnchanged};
  }
  waiter.result = unchanged           ? contract::ApplyResult::kUnchanged
                  : before == nullptr ? contract::ApplyResult::kCreated
                                      : contract::ApplyResult::kConfigured;
  p_.drafts.Create(body.quota.tenant, body.quota);
  return std::nullopt;
}

Requests::Outcome Requests::Change(const contract::DeleteObject& body, Waiter&, StepContext& ctx) {
  const auto missing = [&]() -> Outcome {
    return Error(Code::kNotFound, fmt::format("there is no {} {}", contract::ObjectKindName(body.kind), body.name));
  };
  const ObjectId object{body.kind, body.name};
  switch (body.kind) {
    case contract::ObjectKind::kWorkload:
      if (p_.drafts.Find<WorkloadRecord>(body.name) == nullptr) return missing();
      if (!MUTANT("scheduler.delete_dropped")) p_.edits.SetDesired(body.name, DesiredState::kDeleted, ctx);
      break;
    case contract::ObjectKind::kSet:
      if (p_.drafts.Find<SetRecord>(body.name) == nullptr) return missing();
      if (p_.drafts.Find<SetRecord>(body.name)->deleting || MUTANT("scheduler.set_delete_dropped")) break;
      p_.drafts.Edit<SetRecord>(body.name).deleting = true;
      break;
    case contract::ObjectKind::kQuota:
      if (p_.drafts.Find<model::Quota>(body.name) == nullptr) return missing();
      p_.drafts.Remove(object);
      break;
    case contract::ObjectKind::kNode:
      if (p_.drafts.Find<NodeRecord>(body.name) == nullptr) return missing();
      return DeleteNode(body, ctx);
  }
  if (!p_.drafts.state().drafts.contains(object)) {
    return contract::Done{.message = "is being deleted", .store_revision = p_.copy.RevisionOf(object)};
  }
  return std::nullopt;
}

// --- sets

Requests::Outcome Requests::ApplySet(const contract::ApplySpec& body, Waiter& waiter, StepContext& ctx) {
  const model::WorkloadSpec& spec = body.spec;
  if (Status readable = CheckReadable(SetObject(spec.name)); !readable.ok()) return std::unexpected(readable);
  if (!model::IsWorkloadId(spec.name)) return InvalidArgument("name: not a valid id");
  if (std::string problem = SizeProblem(spec.spec, spec.tenant, spec.labels); !problem.empty()) {
    return InvalidArgument(std::move(problem));
  }
  if (std::string problem = model::TemplateProblem(spec.spec); !problem.empty()) return InvalidArgument(problem);
  const SetRecord* before = p_.drafts.Find<SetRecord>(spec.name);
  if (before != nullptr && before->deleting) {
    return Error(Code::kFailedPrecondition, fmt::format("set {} is being deleted: wait until it is gone", spec.name));
  }
  SetRecord record = before == nullptr ? SetRecord{.created_at = ctx.now.wall} : *before;
  record.spec = spec;
  record.revision = SpecRevision(spec, record.restarts);
  if (before != nullptr && before->revision != record.revision) record.completed.clear();
  if (Status rate = Charge(spec.tenant, waiter, ctx); !rate.ok()) {
    return Refuse(SetObject(spec.name), spec.tenant, Reason::kRateExceeded, std::move(rate), body.dry_run, ctx);
  }
  return StoreSet(std::move(record), waiter, body.dry_run, ctx);
}

Requests::Outcome Requests::StoreSet(SetRecord record, Waiter& waiter, bool dry_run, StepContext& ctx) {
  const std::string name = record.spec.name;
  const ObjectId object = SetObject(name);
  const SetRecord* before = p_.drafts.Find<SetRecord>(name);
  // Before anything counts or makes members.
  if (std::string problem = model::CountsProblem(record.spec); !problem.empty()) {
    return InvalidArgument(std::move(problem));
  }
  if (std::string problem = model::MembersProblem(record.spec); !problem.empty()) {
    return InvalidArgument(std::move(problem));
  }
  if (Status admitted = p_.quota.Admit(object, HoldingOf(record), before != nullptr); !admitted.ok()) {
    return Refuse(object, record.spec.tenant, Reason::kQuotaFull, std::move(admitted), dry_run, ctx);
  }
  if (Status members = p_.sets.CheckMembers(record.spec); !members.ok()) return std::unexpected(std::move(members));
  waiter.result = before == nullptr ? contract::ApplyResult::kCreated : contract::ApplyResult::kConfigured;
  const bool unchanged = before != nullptr && before->spec == record.spec && before->revision == record.revision;
  if (unchanged) waiter.result = contract::ApplyResult::kUnchanged;
  if (dry_run || (unchanged && !p_.drafts.state().drafts.contains(object))) {
    contract::Applied applied = AppliedOf(object, waiter);
    applied.revision = record.revision;
    return applied;
  }
  if (before != nullptr && MUTANT("scheduler.set_apply_dropped")) return AppliedOf(object, waiter);
  p_.drafts.Create(name, std::move(record));
  return std::nullopt;
}

Requests::Outcome Requests::Change(const contract::ScaleSet& body, Waiter& waiter, StepContext& ctx) {
  const SetRecord* before = p_.drafts.Find<SetRecord>(body.set);
  if (before == nullptr) return Error(Code::kNotFound, fmt::format("there is no set {}", body.set));
  if (before->deleting) return Error(Code::kFailedPrecondition, fmt::format("set {} is being deleted", body.set));
  SetRecord record = *before;
  record.spec.replicas = body.replicas;
  Outcome outcome = StoreSet(std::move(record), waiter, false, ctx);
  if (outcome && *outcome) return contract::Done{.store_revision = p_.copy.RevisionOf(SetObject(body.set))};
  return outcome;
}

Requests::Outcome Requests::Change(const contract::RestartSet& body, Waiter&, StepContext&) {
  const SetRecord* before = p_.drafts.Find<SetRecord>(body.set);
  if (before == nullptr) return Error(Code::kNotFound, fmt::format("there is no set {}", body.set));
  if (before->deleting) return Error(Code::kFailedPrecondition, fmt::format("set {} is being deleted", body.set));
  auto& record = p_.drafts.Edit<SetRecord>(body.set);
  ++record.restarts;
  record.revision = SpecRevision(record.spec, record.restarts);
  record.completed.clear();
  return std::nullopt;
}

}  // namespace muster::scheduler
