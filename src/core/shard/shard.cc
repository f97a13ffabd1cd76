#include "core/shard/shard.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/overloaded.h"
#include "contract/core.h"
#include "contract/tables.h"
#include "core/shard/parts.h"
#include "core/shard/step_context.h"

namespace muster::shard {
static_assert(contract::Core<Core>);

// --- the step

// A page that a list left is applied before the event; a step that applies one decides nothing, it has done enough.
// Cycles run on a wake only: what came together with it is decided together.
void Core::Step(const Event& event, Now now, std::vector<Effect>& out) {
  Parts& p = *parts_;
  const size_t before = out.size();
  StepContext ctx{.now = now, .effects = out, .cycle = p.cycle, .counters = p.counters};
  const bool applies_page = p.reconcile.page_waits() && p.lifecycle.stopped().ok();
  if (applies_page) p.reconcile.ApplyPage(ctx);
  Handle(event, ctx);
  if (p.lifecycle.running()) RunDue(std::holds_alternative<contract::Wake>(event) && !applies_page, ctx);
  if (ctx.writes.empty()) return;
  out.insert(out.begin() + static_cast<ptrdiff_t>(before), Effect(contract::Persist{std::move(ctx.writes)}));
}

void Core::Handle(const Event& event, StepContext& ctx) {
  Parts& p = *parts_;
  if (const auto* done = std::get_if<CallDone>(&event)) return OnCallDone(*done, ctx);
  if (!p.lifecycle.stopped().ok()) {
    const auto* asked = std::get_if<Asked>(&event);
    if (asked == nullptr) return;
    return ctx.Emit(Answer{.request = asked->request, .status = p.lifecycle.stopped(), .reply = std::nullopt});
  }
  std::visit(Overloaded{
                 [&](const contract::Wake&) {
                   if (!p.lifecycle.started()) Start(ctx);
                 },
                 [&](const SessionOpened& opened) { OnSessionOpened(opened, ctx); },
                 [&](const SessionClosed& closed) { OnSessionClosed(closed, ctx); },
                 [&](const Received& received) { OnReceived(received, ctx); },
                 [&](const RollupUnreadable& unreadable) {
                   const std::string cluster = p.sessions.ClusterOf(unreadable.session);
                   if (!cluster.empty()) p.demand.Refuse(cluster, unreadable.why.message(), ctx);
                 },
                 [&](const Asked& asked) { OnAsked(asked, ctx); },
                 [&](const CallDone&) {},
                 [&](const CeilingsSet& set) { p.rails.ceilings().Set(set.ceilings, ctx); },
             },
             event);
}

void Core::Start(StepContext& ctx) {
  Parts& p = *parts_;
  const MonoTime now = ctx.now.mono;
  p.lifecycle.SetStarted();
  p.reconcile.Start(ctx);
  p.gets.Start(now);
  p.hints.Start(now);
  p.reports.Start(now);
  p.cycle.Start(now);
  p.ledger.Start(ctx.now);
  p.losses.Start(now);
  p.rails.Start(ctx);
  p.lifecycle.TakeKnownEpoch(ctx);
}

void Core::RunDue(bool may_decide, StepContext& ctx) {
  Parts& p = *parts_;
  const MonoTime now = ctx.now.mono;
  p.executor.RunDeadlines(ctx);
  const bool cycle_due = now >= p.cycle.Next(p.executor.operations().empty());
  if (may_decide && cycle_due && p.lifecycle.MayDecide(p.demand.AllHeard(), now)) RunCycle(ctx);
  p.executor.CallProvider(ctx);
  p.gets.Ask(ctx);
  p.reconcile.AskList(ctx);
  if (!p.lifecycle.decided()) return;
  p.hints.Send(ctx);
  p.reports.Send(ctx);
}

// --- the cycle: the engine decides over what it was shown, the rails look at it, and what they admit starts

void Core::RunCycle(StepContext& ctx) {
  Parts& p = *parts_;
  p.cycle.Begin(ctx.now.mono);
  p.reconcile.GiveUpMissing(ctx);
  p.sweep.Run(ctx);
  TellEngine(ctx);
  if (p.trial.Due(ctx.now.mono)) p.rails.LogTrial(p.trial.Run(ctx.now.mono, p.cycle.counts()), ctx);
  Decide(ctx);
  Laps laps(p.parallel);
  p.demand.CountMachines(ctx.now.mono);
  if (p.inspection.waits()) p.inspection.AnswerWaiting(p.engine.engine().Explain(), ctx);
  const std::vector<engine::fast::NamedAction> actions = p.engine.engine().NamedActions();
  p.ledger.Keep(p.machines, p.demand, ctx);
  StartActions(actions, ctx);
  p.losses.Recount(ctx);
  laps.Ended("execute");
  ctx.Emit(CycleEnded{p.cycle.number()});
}

// What this decision depends on beside machines and needs.
void Core::TellEngine(StepContext& ctx) {
  Parts& p = *parts_;
  p.rails.ceilings().Count(p.clusters, p.machines, p.executor.operations(), p.losses.MostOf(), ctx.now.mono);
  if (const auto holds = p.rails.holds().TakeChanges(p.machines, ctx)) p.engine.engine().SetHolds(*holds);
  for (const std::string& name : p.clusters.names()) {
    const int64_t configured = p.machines.BoundTo(name).configured;
    p.engine.engine().SetCluster(
        name, p.rails.ClusterInput(name, p.sessions.Has(name), p.demand.Of(name).gate_open, configured, ctx));
  }
}

void Core::Decide(StepContext& ctx) {
  Parts& p = *parts_;
  p.check.BeforeDecision(p.cycle.counts());
  p.engine.engine().Decide(ctx.now.mono, p.inspection.waits() || p.config.verify_decisions, p.cycle.counts());
  p.check.AfterDecision();
  CountPlans(PlanMode::kIncremental, ctx);
  CountPlans(PlanMode::kAllOrNothing, ctx);
  ctx.counters.reclaims_capped += p.engine.ReclaimsCapped();
  p.lifecycle.SetDecided();
  p.ledger.ForgetRestored();
}

void Core::CountPlans(PlanMode mode, StepContext& ctx) {
  const PlanCounts plans = parts_->engine.Plans(mode);
  PlanTotals& totals = ctx.counters.plans[static_cast<size_t>(mode)];
  totals.kept += plans.kept;
  totals.conflicts += plans.conflicts;
  totals.retries += plans.retries;
  ctx.counters.plans_displaced += plans.displaced;
}

void Core::StartActions(const std::vector<engine::fast::NamedAction>& actions, StepContext& ctx) {
  Parts& p = *parts_;
  p.rails.BeginCycle();
  p.rails.ceilings().CountBootstraps(actions);
  for (const engine::fast::NamedAction& named : actions) {
    const Readiness readiness = p.executor.ReadinessOf(named, ctx.now.mono);
    // What growth and trial put off is decided again in every cycle, and counted when it is its turn.
    const bool put_off = readiness == Readiness::kGrows || readiness == Readiness::kOnTrial;
    if (!put_off) ++ctx.counters.actions[std::string(engine::ActionKindName(named.action.kind))];
    const QueueLoad load = p.executor.LoadFor(BeneficiaryOf(named.action));
    const Tracked* tracked = p.machines.Find(named.action.machine);
    const model::Money price = tracked == nullptr ? model::Money{} : tracked->record->price_per_hour;
    if (!p.rails.Admit(named.action, readiness, load, price, ctx)) continue;
    p.rails.ceilings().OnStarted(named.action);
    p.executor.Start(named, ctx);
  }
  p.repairs.RunDue(p.losses, p.rails, p.executor, ctx);
}

// --- events that more than one part must hear of

void Core::OnCallDone(const CallDone& done, StepContext& ctx) {
  Parts& p = *parts_;
  const OpenCall call = p.calls.Close(done.id);
  if (!p.lifecycle.stopped().ok()) return;
  const bool reads = call.kind == OpenCall::Kind::kGet || call.kind == OpenCall::Kind::kList;
  if (reads && done.status.ok()) p.executor.OnRead(ctx.now.mono);
  switch (call.kind) {
    case OpenCall::Kind::kTransition:
      if (const auto record = p.executor.OnTransitionDone(done, call, ctx)) {
        p.reconcile.OnAcknowledged(call.machine, *record, ctx);
      }
      break;
    case OpenCall::Kind::kGet: p.reconcile.OnGetDone(done, call, ctx); break;
    case OpenCall::Kind::kList: p.reconcile.OnListDone(done, call, ctx); break;
    case OpenCall::Kind::kReport: p.reports.OnDone(done, ctx); break;
  }
}

void Core::OnSessionOpened(const SessionOpened& opened, StepContext& ctx) {
  Parts& p = *parts_;
  const std::string& cluster = opened.hello.cluster_id;
  if (!p.sessions.Check(opened, ctx)) return;
  if (p.sessions.CloseOlder(cluster, ctx)) {
    p.hints.OnSessionEnded(cluster);
    p.executor.OnSessionEnded(cluster, ctx);
  }
  p.sessions.Open(opened, p.machines, p.lifecycle.ready(), ctx);
  p.sweep.OnSessionOpened(cluster);
  p.executor.OnSessionOpened(cluster, ctx);
  p.cycle.Request();
}

void Core::OnSessionClosed(const SessionClosed& closed, StepContext& ctx) {
  Parts& p = *parts_;
  const std::string cluster = p.sessions.Close(closed.session, ctx);
  if (cluster.empty()) return;
  p.hints.OnSessionEnded(cluster);
  p.executor.OnSessionEnded(cluster, ctx);
  p.cycle.Request();
}

void Core::OnReceived(const Received& received, StepContext& ctx) {
  Parts& p = *parts_;
  const std::string cluster = p.sessions.ClusterOf(received.session);
  if (cluster.empty()) return;
  std::visit(Overloaded{
                 [&](const contract::Hello&) { p.sessions.Acknowledge(cluster, "hello", ctx); },  // said once more
                 [&](const contract::Rollup& rollup) { p.demand.OnRollup(cluster, rollup, ctx); },
                 [&](const contract::BootstrapResponse& blob) { p.executor.OnBlob(cluster, blob, ctx); },
                 [&](const contract::ReclaimAck& ack) { p.executor.OnReclaimAck(cluster, ack); },
             },
             received.message);
}

// --- what the host asks for

std::optional<MonoTime> Core::NextWake() const {
  const Parts& p = *parts_;
  if (!p.lifecycle.started()) return MonoTime{};
  if (!p.lifecycle.stopped().ok()) return std::nullopt;
  if (p.reconcile.page_waits()) return MonoTime{};
  MonoTime next = std::min({p.reconcile.NextWake(), p.executor.NextWake(), p.gets.NextWake()});
  if (p.lifecycle.ready()) {
    const MonoTime cycle = p.cycle.Next(p.executor.operations().empty());
    next = std::min(next, p.demand.AllHeard() ? cycle : std::max(p.lifecycle.warm_until(), cycle));
  }
  if (p.lifecycle.decided()) next = std::min({next, p.hints.NextWake(), p.reports.NextWake()});
  return next;
}

std::shared_ptr<const Snapshot> Core::View() const {
  const Parts& p = *parts_;
  auto view = std::make_shared<Snapshot>();
  view->ready = p.lifecycle.ready();
  view->stopped = p.lifecycle.stopped();
  view->epoch = p.lifecycle.epoch();
  view->cycle = p.cycle.number();
  view->mode = p.rails.modes().shard();
  view->machines = p.machines.counts();
  view->demand = p.demand.needs_by_penalty();
  view->claimed = p.demand.machines_by_penalty();
  for (const std::string& name : p.clusters.names()) {
    const bool there = p.sessions.Has(name) || !p.demand.Of(name).rows.empty() ||
                       !p.machines.BoundTo(name).machines.empty() ||
                       p.rails.modes().Get(name) != contract::ActuationMode::kActive;
    if (there) view->clusters.insert(name);
  }
  view->sessions = p.sessions.size();
  view->shortfalls = p.ledger.short_counts().all;
  view->pending = p.ledger.short_counts().pending;
  view->holds = p.rails.holds().counts();
  view->provider_away = p.executor.outage().attempts > 0;
  view->shortfalls_aged = p.ledger.short_counts().by_age;
  view->shortfalls_by_priority = p.ledger.short_counts().by_priority;
  for (const auto& [name, watched] : p.rails.quarantine().state()) {
    if (watched.held > 0) view->quarantined.emplace(name, watched.held);
  }
  view->pages_unchecked = p.reconcile.state().unchecked;
  view->missing = p.losses.missing();
  view->under_repair = p.repairs.under_way();
  view->losses_failed = p.losses.failing();
  view->losses_vanished = p.losses.vanishing();
  view->failing = p.losses.failing_machines();
  for (const auto& [name, machines] : p.losses.lacking()) view->lacking += machines;
  for (const auto& [name, put_off] : p.rails.put_off()) {
    view->put_off.growth += put_off.growth;
    view->put_off.trial += put_off.trial;
    view->put_off.loss += put_off.loss;
  }
  view->halted = p.rails.modes().halted();
  view->operations = p.executor.operations().size();
  view->calls = static_cast<uint64_t>(p.executor.calling());
  view->counters = p.counters;
  return view;
}

void Core::CheckInvariants() const { parts_->CheckInvariants(); }

// --- from disk and journal

Result<Core> Core::Recover(Config config, const contract::Recovered& recovered, Parallel* parallel) {
  auto parts = std::make_unique<Parts>(SavedState{.config = std::move(config)}, parallel);
  contract::RowReader reader("shard",
                             "restore it from a backup, or remove the state and start with --epoch-at-least N, above "
                             "every epoch this shard has had");
  parts->RegisterRows(reader);
  if (Status read = reader.Read(recovered); !read.ok()) return std::unexpected(std::move(read));
  return Core(std::move(parts));
}

std::optional<Core> Core::Load(std::string_view saved) {
  std::optional<SavedState> state = LoadState(saved);
  if (!state) return std::nullopt;
  const engine::Memory memory = std::move(state->memory);
  auto parts = std::make_unique<Parts>(*std::move(state), nullptr);
  parts->Rebuild(memory);
  return Core(std::move(parts));
}

std::string Core::Save() const { return parts_->Save(); }

Core::Core(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

const Machines& Core::machines() const { return parts_->machines; }
const Executor& Core::executor() const { return parts_->executor; }
const Demand& Core::demand() const { return parts_->demand; }
const Rails& Core::rails() const { return parts_->rails; }
const Sessions& Core::sessions() const { return parts_->sessions; }
const Reconcile& Core::reconcile() const { return parts_->reconcile; }
const Lifecycle& Core::lifecycle() const { return parts_->lifecycle; }
const Losses& Core::losses() const { return parts_->losses; }
const Repairs& Core::repairs() const { return parts_->repairs; }
const Status& Core::verdict() const { return parts_->check.verdict(); }

}  // namespace muster::shard
