#include "core/scheduler/scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/hash.h"
#include "base/overloaded.h"
#include "base/probe.h"
#include "contract/core.h"
#include "core/scheduler/parts.h"
#include "core/scheduler/step_context.h"

namespace muster::scheduler {
namespace {

// A node that beats in time is asked for its list in one pass of so many. Which one follows from its id, so that every
// pass asks as many nodes as the others.
constexpr uint64_t kPassesPerList = 12;
// Between two times that all waits for room end because some of it was left.
constexpr Duration kPauseOfWaves = 200ms;

}  // namespace

static_assert(contract::Core<Core>);

// --- the step

// An event is noted, and what the store shows by it is followed up. Decisions are made on a wake only: what came
// together with it is decided together.
void Core::Step(const Event& event, Now now, std::vector<Effect>& out) {
  StepContext ctx{.now = now, .effects = out, .counters = parts_->counters};
  Handle(event, ctx);
  SyncDrafts();
  if (std::holds_alternative<contract::Wake>(event)) Advance(ctx);
}

void Core::Handle(const Event& event, StepContext& ctx) {
  std::visit(Overloaded{
                 [](const contract::Wake&) {},
                 [&](const Asked& asked) { OnAsked(asked, ctx); },
                 [&](const CallDone& done) { OnCallDone(done, ctx); },
                 [&](const contract::CommitDone& done) { OnCommitDone(done, ctx); },
                 [&](const StoreListed& listed) { OnListed(listed, ctx); },
                 [&](const StoreChanged& changed) {
                   const bool was_active = parts_->standing.active();
                   parts_->copy.Apply(changed, ctx);
                   parts_->standing.SetSeen(changed.revision);
                   TakeChanges(ctx);
                   if (!was_active && parts_->standing.active()) Resume(ctx.now);
                 },
                 [&](const StoreLost& lost) { OnStoreLost(lost, ctx); },
                 [&](const LeadershipChanged& changed) { OnLeadership(changed, ctx); },
                 [&](const EventLease& granted) { parts_->drafts.SetEventLease(granted.lease); },
             },
             event);
}

void Core::Advance(StepContext& ctx) {
  Parts& p = *parts_;
  if (!p.standing.active()) return;
  for (const ObjectId& object : p.drafts.Release({}, false, ctx.now.mono)) OnFree(object);
  for (const std::string& node : p.health.RunDue(ctx.now.mono)) OnNodeLost(node);
  p.requests.RunQueued(ctx);
  if (!p.next_pass || ctx.now.mono >= *p.next_pass) RunPass(ctx);
  p.health.WriteTransitions(ctx);
  for (const std::string& id : p.sets.Run(ctx)) p.reconciler.OnRequested(id);
  for (const std::string& id : p.evictions.Run(ctx)) p.reconciler.MarkDirty(id);
  SyncDrafts();
  EndWaits(ctx.now.mono);
  p.reconciler.Run(ctx);
  SyncDrafts();
  p.placements.Run(ctx);
  SyncDrafts();
  p.drafts.Flush(ctx);
  p.reconciler.Dispatch(ctx);
}

// Every wait for room ends when a node comes, and when room does: that is looked at for all of them together, and at
// once unless it was a moment ago. Where workloads come and go all the time, what waits is placed no more often.
void Core::EndWaits(MonoTime now) {
  Parts& p = *parts_;
  if (p.placements.state().waiting.empty()) return p.rooms.TakeCame();
  if (!p.rooms.node_came() && (!p.rooms.room_came() || now < p.next_wave)) return;
  p.rooms.TakeCame();
  p.next_wave = MUTANT("scheduler.waves_unbounded") ? now : now + kPauseOfWaves;
  p.reconciler.EndWaits();
}

// The net below the events: silent nodes are asked what they have, nodes out of reach whether they can be reached, and
// whatever waits for nothing is looked at. Nodes that beat in time are asked too, seldom: nothing else finds an agent
// that cannot be called though its node beats, as long as nothing is to be done there.
void Core::RunPass(StepContext& ctx) {
  Parts& p = *parts_;
  p.next_pass = ctx.now.mono + p.config.reconcile_interval;
  const uint64_t turn = ++p.passes % kPassesPerList;
  for (const auto& [node, record] : p.copy.All<NodeRecord>()) {
    const NodeHealth::Entry* entry = p.health.Find(node);
    const bool probe = record.unreachable && entry != nullptr && !entry->stale;
    const bool has_turn = Hash(node) % kPassesPerList == turn && !MUTANT("scheduler.beating_never_listed");
    const bool list = entry != nullptr && (has_turn || p.health.Silent(*entry, ctx.now.mono)) &&
                      p.health.Available(node) && !p.copy.OnNode(node).empty();
    if ((probe || list) && !p.calls.Has(node, "")) p.calls.Enqueue({.kind = CallKind::kList, .node = node});
  }
  for (const auto& [id, record] : p.copy.All<WorkloadRecord>()) {
    if (IsSettled(record) || p.drafts.Busy(WorkloadObject(id))) continue;
    const Reconciler::Entry* entry = p.reconciler.Find(id);
    if (entry == nullptr || !entry->timer) p.reconciler.MarkDirty(id);
  }
  p.evictions.OnWorkload();
  p.drafts.PruneForeignEvents(ctx);
}

// Rooms and quotas follow the drafts that were edited.
void Core::SyncDrafts() {
  Parts& p = *parts_;
  for (const ObjectId& object : p.drafts.TakeEdited()) {
    p.quota.Sync(object);
    if (object.kind == contract::ObjectKind::kWorkload) p.rooms.SyncWorkload(object.name);
    if (object.kind == contract::ObjectKind::kNode) p.rooms.SyncNode(object.name, p.health.Now(object.name));
  }
}

// --- events that more than one part must hear of

void Core::OnAsked(const Asked& asked, StepContext& ctx) {
  Parts& p = *parts_;
  if (auto reply = p.queries.Answer(asked.body, asked.tenant, ctx.now)) {
    Answer answer{.request = asked.request, .status = {}, .reply = std::nullopt};
    if (*reply) {
      answer.reply = **std::move(reply);
    } else {
      answer.status = (*std::move(reply)).error();
    }
    return ctx.Emit(std::move(answer));
  }
  if (const auto* report = std::get_if<contract::ReportMachines>(&asked.body)) return OnReport(*report, asked, ctx);
  p.requests.Handle(asked, ctx);
  if (const auto* beat = std::get_if<contract::Heartbeat>(&asked.body)) {
    p.rooms.SyncHeard(beat->node, p.health.Now(beat->node));
  }
}

// What waited for a machine that does not come any more may evict others now.
void Core::OnReport(const contract::ReportMachines& report, const Asked& asked, StepContext& ctx) {
  Parts& p = *parts_;
  Answer answer{.request = asked.request, .status = p.standing.MayChange(), .reply = std::nullopt};
  if (answer.status.ok()) {
    const Result<bool> gone = p.coming.Report(report, ctx.now.mono);
    if (gone) {
      answer.reply = contract::Done{};
      if (*gone) p.reconciler.EndWaits();
    } else {
      answer.status = gone.error();
    }
  }
  ctx.Emit(std::move(answer));
}

void Core::OnCallDone(const CallDone& done, StepContext& ctx) {
  Parts& p = *parts_;
  const std::optional<AgentCall> call = p.calls.OnDone(done);
  if (!call || !p.standing.active()) return;
  if (!IsUnreachable(done.status)) {
    p.health.OnCallSucceeded(call->node);
  } else if (p.health.OnCallFailed(call->node, done.status, ctx.now.mono)) {
    OnNodeLost(call->node);
  }
  switch (call->kind) {
    case CallKind::kList:
      if (done.status.ok() && done.reply) {
        const auto& listed = std::get<contract::ListedOnAgent>(*done.reply);
        p.reconciler.OnReported(call->node, listed.workloads, true);
        p.orphans.OnReported(call->node, listed.workloads, true, ctx);
      }
      break;
    case CallKind::kOrphan: p.orphans.OnDeleted(*call, done, ctx); break;
    case CallKind::kStatus:
    case CallKind::kApply:
    case CallKind::kDelete: p.reconciler.OnCallDone(*call, done, ctx); break;
  }
}

void Core::OnCommitDone(const contract::CommitDone& done, StepContext& ctx) {
  Parts& p = *parts_;
  Drafts::Ended ended = p.drafts.OnCommitDone(done, ctx);
  TakeChanges(ctx);
  OnResolved(std::move(ended.objects), ctx);
  if (!ended.check.empty()) p.orphans.OnChecked(ended.check, ended.holds && p.standing.active(), ctx);
  // What would be decided again waits for no store and no lead that may never come back.
  if (!p.standing.active()) p.requests.RefuseAll({}, ctx);
}

void Core::OnResolved(std::vector<Resolved> objects, StepContext& ctx) {
  Parts& p = *parts_;
  for (Resolved& resolved : objects) {
    const ObjectId object = resolved.object;
    p.orphans.Release(resolved.released, object.name);
    p.requests.OnResolved(std::move(resolved), ctx);
    OnFree(object);
  }
}

void Core::OnListed(const StoreListed& listed, StepContext& ctx) {
  Parts& p = *parts_;
  if (p.copy.IsOfAnother(listed)) OnAnotherStore(listed, ctx);
  p.copy.List(listed, ctx);
  TakeChanges(ctx);
  p.standing.SetListed();
  p.standing.SetSeen(listed.revision);
  for (const ObjectId& object : p.drafts.Release({}, true, ctx.now.mono)) OnFree(object);
  Resume(ctx.now);
}

// The store was lost, and another one, or an older backup of it, is in its place. Nothing of what is under way is of
// the store as it is now.
void Core::OnAnotherStore(const StoreListed& listed, StepContext& ctx) {
  Parts& p = *parts_;
  PROBE("scheduler.another_store");
  ctx.Note("the store went back to an earlier revision, and is read anew", "store",
           fmt::format("from revision {} to {}", p.copy.state().revision, listed.revision));
  p.standing.SetLost(Status(Code::kUnavailable, "it went back to an earlier revision"), ctx.now.wall);
  p.standing.StartOver();
  Suspend(ctx);
  for (Drafts::Ended& ended : p.drafts.Disown(ctx)) {
    OnResolved(std::move(ended.objects), ctx);
    if (!ended.check.empty()) p.orphans.OnChecked(ended.check, false, ctx);
  }
  p.requests.RefuseAll({}, ctx);
  p.orphans.StartOver();
}

void Core::OnStoreLost(const StoreLost& lost, StepContext& ctx) {
  PROBE("scheduler.store_lost");
  parts_->standing.SetLost(lost.why, ctx.now.wall);
  Suspend(ctx);
}

void Core::OnLeadership(const LeadershipChanged& changed, StepContext& ctx) {
  Parts& p = *parts_;
  const bool led = p.standing.state().leading;
  p.standing.SetLeader(changed);
  p.drafts.SetLeader(changed.leader_key, changed.leader_revision);
  if (led && !changed.leading) {
    PROBE("scheduler.lead_lost");
    Suspend(ctx);
  } else if (!led && changed.leading) {
    Resume(ctx.now);
  }
}

// It may decide again, and has not followed what happened meanwhile: ages count from here, and everything that is not
// settled is looked at.
void Core::Resume(Now now) {
  Parts& p = *parts_;
  p.health.JudgeFrom(now.mono);
  p.orphans.CountFrom(now.mono);
  for (const auto& [id, record] : p.copy.All<WorkloadRecord>()) {
    if (!IsSettled(record)) p.reconciler.MarkForCheck(id);
  }
  for (const auto& [name, set] : p.copy.All<SetRecord>()) p.sets.MarkDirty(name);
  for (const auto& [node, record] : p.copy.All<NodeRecord>()) p.rooms.SyncNode(node, p.health.Now(node));
  p.next_pass = now.mono + p.config.reconcile_interval;
}

// It may not decide: what is not on its way to the store is dropped.
void Core::Suspend(StepContext& ctx) {
  Parts& p = *parts_;
  p.calls.ClearAll();
  Drafts::Dropped dropped = p.drafts.DropOpen();
  for (const ObjectId& object : dropped.objects) OnFree(object);
  p.requests.RefuseAll(std::move(dropped.waiters), ctx);
}

// --- what follows

void Core::TakeChanges(StepContext& ctx) {
  Parts& p = *parts_;
  const std::set<ObjectId> changed = p.copy.TakeChanged();
  if (changed.empty()) return;
  if (p.copy.All<WorkloadRecord>().empty()) p.orphans.CountFrom(ctx.now.mono);
  std::set<ObjectId> watched;
  for (const ObjectId& object : changed) {
    if (object.kind == contract::ObjectKind::kNode) {
      p.health.OnRecord(object.name, ctx.now.mono);
      p.evictions.OnNode(object.name);
      if (p.copy.Find<NodeRecord>(object.name) == nullptr) {
        p.orphans.Forget(object.name);
        p.calls.ClearNode(object.name);
      }
    }
    if (auto set = SetOf(object)) watched.insert(*std::move(set));
    watched.insert(object);
  }
  for (const ObjectId& object : p.drafts.Release(changed, false, ctx.now.mono)) OnFree(object);
  for (const ObjectId& object : changed) {
    OnFree(object);
    if (object.kind == contract::ObjectKind::kNode) p.reconciler.MarkNode(object.name, false);
  }
  for (const ObjectId& object : watched) {
    if (object.kind == contract::ObjectKind::kSet) p.sets.MarkDirty(object.name);
    // The first list changes nothing that a watcher could have seen.
    const bool told = p.standing.state().listed && object.kind != contract::ObjectKind::kQuota;
    if (told) ctx.Emit(Publish{p.views.Changed(object)});
  }
}

void Core::OnNodeLost(const std::string& node) {
  Parts& p = *parts_;
  p.calls.ClearNode(node);
  p.rooms.SyncNode(node, p.health.Now(node));
  p.reconciler.MarkNode(node, false);
}

// Of what may be its member. Nothing if there is none.
std::optional<ObjectId> Core::SetOf(const ObjectId& object) const {
  if (object.kind != contract::ObjectKind::kWorkload) return std::nullopt;
  ObjectId set = SetObject(object.name.substr(0, object.name.rfind('-')));
  if (parts_->copy.Find<SetRecord>(set.name) == nullptr) return std::nullopt;
  return set;
}

// The object is not busy any more, or has changed: whatever depends on it is looked at. A set that could not change a
// member that was busy is planned again.
void Core::OnFree(const ObjectId& object) {
  Parts& p = *parts_;
  p.quota.Sync(object);
  if (const auto set = SetOf(object)) p.sets.MarkDirty(set->name);
  switch (object.kind) {
    case contract::ObjectKind::kWorkload:
      p.rooms.SyncWorkload(object.name);
      p.reconciler.MarkDirty(object.name);
      p.evictions.OnWorkload();
      break;
    case contract::ObjectKind::kNode:
      p.health.SetDirty(object.name);
      p.rooms.SyncNode(object.name, p.health.Now(object.name));
      break;
    case contract::ObjectKind::kSet: p.sets.MarkDirty(object.name); break;
    case contract::ObjectKind::kQuota: break;
  }
}

// --- what the host asks for

std::optional<MonoTime> Core::NextWake() const {
  const Parts& p = *parts_;
  if (!p.standing.active()) return std::nullopt;
  const bool now = !p.next_pass || !p.requests.idle() || !p.sets.idle() || !p.evictions.idle() || p.rooms.node_came() ||
                   !p.placements.state().wanted.empty();
  if (now) return MonoTime{};
  MonoTime next = *p.next_pass;
  if (p.rooms.room_came()) next = std::min(next, p.next_wave);
  for (const auto& wake : {p.drafts.NextWake(), p.health.NextWake(), p.reconciler.NextWake()}) {
    if (wake) next = std::min(next, *wake);
  }
  return next;
}

std::shared_ptr<const Snapshot> Core::View() const {
  const Parts& p = *parts_;
  auto view = std::make_shared<Snapshot>();
  view->ready = p.standing.store_answers();
  view->leading = p.standing.state().leading && p.standing.caught_up();
  view->leader_known = p.standing.state().leading || !p.standing.state().leader.empty();
  view->nodes = p.copy.node_statuses();
  view->workloads = p.copy.phases();
  view->desired = p.copy.desired();
  view->commits_in_flight = p.drafts.in_flight();
  view->calls_in_flight = p.calls.in_flight();
  view->waiting = p.placements.state().waiting.size();
  view->orphans_held = p.orphans.held();
  view->counters = p.counters;
  return view;
}

void Core::CheckInvariants() const { parts_->CheckInvariants(); }

const StoreCopy& Core::copy() const { return parts_->copy; }

// --- from configuration and journal

Core::Core(Config config) : Core(std::make_unique<Parts>(SavedState{.config = std::move(config)})) {}

std::optional<Core> Core::Load(std::string_view saved) {
  auto state = codec::FromBytes<SavedState>(saved);
  if (!state || state->layout != kLayout) return std::nullopt;
  auto parts = std::make_unique<Parts>(*std::move(state));
  parts->Rebuild();
  return Core(std::move(parts));
}

std::string Core::Save() const { return parts_->Save(); }

Core::Core(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

}  // namespace muster::scheduler
