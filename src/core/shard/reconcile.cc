#include "core/shard/reconcile.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/probe.h"
#include "model/names.h"

namespace muster::shard {
namespace {

using model::MachineState;
using model::Reason;

constexpr Duration kLongestListPause = 30s;
constexpr int kChecksOfPages = 3;      // that fail, before the pages are believed unchecked
constexpr int64_t kBeyondPage = 1000;  // machines that a check by a part asks for besides a page

// Its first and its last machine.
std::pair<std::string, std::string> EndsOf(const contract::ListReply& list) {
  if (list.machines.empty()) return {list.rejected.front().id, list.rejected.back().id};
  return {list.machines.front()->id, list.machines.back()->id};
}

// Whether the list may be too large for the provider, or for the way here. An outage is no answer.
bool IsTooLarge(Code code) { return code == Code::kResourceExhausted || code == Code::kDeadlineExceeded; }

size_t SizeOf(const contract::ListReply& list) { return list.machines.size() + list.rejected.size(); }

// "resources" of "machines[3].resources.cpu: -1 is negative": one of few names, whatever the provider says.
std::string FieldOf(const std::string& problem) {
  const std::string path = problem.substr(0, problem.find(": "));
  const size_t row = path.starts_with("machines[") ? path.find("].") : std::string::npos;
  const size_t begin = row == std::string::npos ? 0 : row + 2;
  return path.substr(begin, path.find('.', begin) - begin);
}

}  // namespace

void Reconcile::RegisterRows(contract::RowReader& reader) {
  reader.On(kForgottenRows, [this](std::string id) { state_.forgotten.insert(std::move(id)); });
  reader.On(kMissingRows, [this](const std::string& id, model::Machine machine) {
    if (machine.id != id) return false;
    state_.earlier_missing.emplace(id, std::move(machine));
    return true;
  });
}

void Reconcile::Start(StepContext& ctx) {
  state_.next_list = state_.next_sweep = ctx.now.mono;
  for (auto& [id, machine] : std::exchange(state_.earlier_missing, {})) {
    if (!deps_.owned.Owns(machine)) {
      ctx.Write(kMissingRows.Erase(id));
      continue;
    }
    deps_.machines.Add({.record = contract::MachineRecord(std::move(machine))});
    deps_.machines.Put(id, SetAside::kMissing);
    deps_.losses.RestoreMissing(id);
  }
}

// --- lists and sweeps

void Reconcile::BeginSweep() {
  state_.sweeping = true;
  ++state_.sweep;
  state_.swept = 0;
  state_.last_page = {};
  state_.stale_page = false;
  state_.several = false;
  state_.sweep_cursor.clear();
}

void Reconcile::AskList(StepContext& ctx) {
  if (state_.list_open || ctx.now.mono < state_.next_list) return;
  const bool sweep_due =
      ctx.now.mono >= state_.next_sweep || !deps_.config.incremental_reconcile || !deps_.lifecycle.ready();
  if (!state_.sweeping && sweep_due) BeginSweep();
  state_.list_open = true;
  const contract::CallId id = deps_.calls.Open({.kind = OpenCall::Kind::kList, .begun = deps_.machines.NextMoment()});
  ctx.Emit(
      Call{.id = id,
           .to = std::string(kProvider),
           .request = contract::ListRequest{.states = {},
                                            .max_results = ListCap(),
                                            .since_revision = state_.sweeping ? state_.sweep_cursor : state_.cursor},
           .timeout = state_.sweeping ? deps_.config.list_timeout : deps_.config.call_timeout});
}

int32_t Reconcile::ListCap() const {
  if (state_.checking == PageCheck::kPart) return static_cast<int32_t>(CheckedPart());
  const bool whole = state_.checking == PageCheck::kWhole || state_.pages == Pages::kDoNotGoOn;
  return whole ? 0 : deps_.config.list_page;
}

void Reconcile::OnListDone(const CallDone& done, const OpenCall& call, StepContext& ctx) {
  state_.list_open = false;
  if (!done.status.ok()) {
    PROBE("shard.list_failed");
    ++ctx.counters.list_failures;
    state_.list_failures = std::min(state_.list_failures + 1, 10);
    const Duration pause = deps_.config.cycle_interval * (1 << state_.list_failures);
    state_.next_list = ctx.now.mono + std::min(pause, kLongestListPause);
    if (state_.list_failures == 1) ctx.Note(Reason::kProviderSilent, "provider", done.status.ToString());
    const bool too_large = IsTooLarge(done.status.code()) || MUTANT("shard.check_given_up");
    if (state_.checking != PageCheck::kNone && too_large) OnCheckTooLarge(ctx);
    return;
  }
  state_.list_failures = 0;
  std::erase_if(state_.gone, [&](const auto& gone) { return gone.second < call.begun; });  // lists do not overlap
  const auto& list = std::get<contract::ListReply>(*done.reply);
  const bool full = IsFull(list);
  const bool goes_on = full && !list.revision.empty();
  state_.next_list = goes_on ? ctx.now.mono : ctx.now.mono + deps_.config.cycle_interval;
  if (!state_.sweeping) {
    ApplyList(list, call.begun, ctx);
    state_.cursor = list.revision;
    // What follows a full list of changes may be skipped: only a sweep shows it for certain.
    if (full && (state_.pages != Pages::kGoOn || !goes_on)) state_.next_sweep = ctx.now.mono;
    return;
  }
  if (full && !goes_on) return SweepWithoutPages(list, call.begun, ctx);
  if (full && !IsRepeated(list)) {
    state_.several = true;
    state_.sweep_cursor = list.revision;
    state_.page = Page{.list = list, .begun = call.begun};
    return;
  }
  const uint64_t swept = state_.swept;
  ApplyList(list, call.begun, ctx);
  // The revision of a part is that of a page: what changed since the sweep's last page is still to come.
  if (state_.checking != PageCheck::kPart) state_.cursor = list.revision;
  state_.checking = NextCheck(list, state_.swept - std::min(swept, state_.swept), ctx);
  state_.failed_checks = 0;
  if (state_.checking == PageCheck::kNone) {
    state_.unchecked = false;
    return EndSweep(ctx);
  }
  PROBE("shard.pages_checked");
  state_.sweep_cursor.clear();
  state_.next_list = ctx.now.mono;
}

// A provider whose disk is full says no revision, so that no page goes on; that says nothing of its pages otherwise.
void Reconcile::SweepWithoutPages(const contract::ListReply& list, Moment begun, StepContext& ctx) {
  ApplyList(list, begun, ctx);
  state_.several = false;
  state_.sweep_cursor.clear();
  state_.checking = PageCheck::kWhole;
}

bool Reconcile::IsFull(const contract::ListReply& list) const {
  if (state_.checking != PageCheck::kNone || state_.pages == Pages::kDoNotGoOn) return false;
  const auto most = static_cast<size_t>(deps_.config.list_page);
  return most > 0 && SizeOf(list) >= most;
}

// Whether the sweep shows the same page again, or nothing new: then the pages do not go on.
bool Reconcile::IsRepeated(const contract::ListReply& list) {
  auto ends = EndsOf(list);
  const bool repeated = state_.stale_page || ends == state_.last_page;
  state_.last_page = std::move(ends);
  return repeated;
}

// A list of all machines is certain, and costs as much as the sweep. A part of them is enough if the pages showed more
// than the first one by far: were they only what had changed, then all that the part shows beyond a page would have
// changed too.
PageCheck Reconcile::NextCheck(const contract::ListReply& list, uint64_t more, StepContext& ctx) {
  if (state_.checking == PageCheck::kNone) {
    const bool full = IsFull(list);
    if (full) SetUncapped("one shows what the sweep has shown before", ctx);
    const bool in_doubt = full || (state_.several && state_.pages == Pages::kUnknown);
    if (!in_doubt || MUTANT("shard.pages_believed")) return PageCheck::kNone;
    return !full && std::cmp_greater_equal(state_.swept, CheckedPart()) ? PageCheck::kPart : PageCheck::kWhole;
  }
  const bool part = state_.checking == PageCheck::kPart;
  if (part && more == 0 && std::cmp_less(SizeOf(list), CheckedPart())) return PageCheck::kWhole;  // a cap of its own
  if (state_.pages != Pages::kUnknown || !state_.several) return PageCheck::kNone;
  state_.pages = Pages::kGoOn;
  if (more == 0) return PageCheck::kNone;
  SetUncapped(fmt::format("a list {} shows {} more machines", part ? "longer than a page" : "without a cap", more),
              ctx);
  return part ? PageCheck::kWhole : PageCheck::kNone;
}

int64_t Reconcile::CheckedPart() const {
  return std::min<int64_t>(deps_.config.list_page + kBeyondPage, std::numeric_limits<int32_t>::max());
}

// A fleet may be too large for one list. Once that is known, later sweeps try once. A shard that has seen a part of its
// machines, and knows that, must not decide: it would buy the others anew.
void Reconcile::OnCheckTooLarge(StepContext& ctx) {
  if (++state_.failed_checks < kChecksOfPages && !state_.unchecked) return;
  state_.failed_checks = 0;
  const bool part = (state_.pages == Pages::kDoNotGoOn || !state_.several) && !deps_.lifecycle.ready();
  if (part && !MUTANT("shard.check_given_up")) {
    return ctx.Note(Reason::kProviderSilent, "provider",
                    "its pages do not go on, and a list without a cap fails; the shard waits for one that does not");
  }
  if (!state_.several && state_.pages != Pages::kDoNotGoOn) {
    // The sweep has shown one page and knows no more: it tells nothing of the other machines.
    state_.checking = PageCheck::kNone;
    state_.sweeping = false;
    state_.next_sweep = ctx.now.mono + deps_.config.sweep_interval;
    return;
  }
  if (!std::exchange(state_.unchecked, true)) {
    PROBE("shard.pages_unchecked");
    ctx.Note(Reason::kProviderSilent, "provider",
             "a list that checks its pages fails; what they show is believed until one does not");
  }
  state_.checking = PageCheck::kNone;
  if (MUTANT("shard.check_given_up") && state_.pages == Pages::kUnknown) state_.pages = Pages::kGoOn;
  EndSweep(ctx);
}

void Reconcile::SetUncapped(const std::string& why, StepContext& ctx) {
  PROBE("shard.sweep_without_end");
  state_.pages = Pages::kDoNotGoOn;
  ctx.Note(Reason::kProviderSilent, "provider",
           fmt::format("its pages do not go on where the last one ended: {}; lists have no cap from now on", why));
}

void Reconcile::EndSweep(StepContext& ctx) {
  state_.sweeping = false;
  state_.next_sweep = ctx.now.mono + deps_.config.sweep_interval;
  for (const auto& [id, tracked] : deps_.machines.tracked()) {
    if (state_.swept == deps_.machines.tracked().size()) break;
    if (tracked.sweep == state_.sweep || deps_.machines.AsideOf(id) == SetAside::kMissing) continue;
    PROBE("shard.missing_from_sweep");
    if (!MUTANT("shard.removals_unseen")) deps_.gets.ScheduleGet(id);
  }
  if (deps_.lifecycle.ready()) return;
  deps_.lifecycle.OnFirstSweep(deps_.machines, ctx);
  deps_.changes.OnFirstSweep(ctx);
  PutFailing(deps_.losses.OnFirstSweep(deps_.rails.budget(), ctx), ctx);
  deps_.changes.TellFailed(ctx);
}

void Reconcile::ApplyPage(StepContext& ctx) {
  const Page page = *std::exchange(state_.page, std::nullopt);
  state_.stale_page = std::ranges::all_of(page.list.machines, [&](const contract::MachineRecord& record) {
    const Tracked* tracked = deps_.machines.Find(record->id);
    return tracked != nullptr && tracked->sweep == state_.sweep;
  });
  ApplyList(page.list, page.begun, ctx);
}

void Reconcile::ApplyList(const contract::ListReply& list, Moment begun, StepContext& ctx) {
  Laps laps(deps_.parallel);
  for (const contract::MachineRecord& record : list.machines) {
    Tracked* tracked = deps_.machines.Find(record->id);
    if (tracked != nullptr && std::exchange(tracked->listed, begun) == begun) {
      Reject(record->id, "id: listed twice", ctx);
      continue;
    }
    if (tracked != nullptr && state_.sweeping) MarkSwept(*tracked);
    if (Validate(*record, ctx)) ApplyRecord(record, tracked, begun, ctx);
  }
  for (const contract::RejectedMachine& rejected : list.rejected) {
    if (Tracked* tracked = deps_.machines.Find(rejected.id)) MarkSwept(*tracked);
    Reject(rejected.id, rejected.reason, ctx);
  }
  laps.Ended("reconcile");
}

void Reconcile::MarkSwept(Tracked& tracked) {
  state_.swept += tracked.sweep == state_.sweep ? 0 : 1;
  tracked.sweep = state_.sweep;
}

// --- gets and acknowledgements

void Reconcile::OnGetDone(const CallDone& done, const OpenCall& call, StepContext& ctx) {
  deps_.gets.OnDone(call.machine);
  Tracked* tracked = deps_.machines.Find(call.machine);
  const bool stale = tracked != nullptr && call.begun < tracked->not_before;
  if (done.status.code() == Code::kNotFound && !stale) {
    if (tracked != nullptr) Vanish(call.machine, ctx);
    return;
  }
  if (!done.status.ok() || stale) {
    PROBE("shard.look_again");
    if (!stale) deps_.gets.BackOff(ctx.now.mono);
    return deps_.gets.ScheduleGet(call.machine);
  }
  const contract::MachineRecord& record = std::get<contract::GetReply>(*done.reply).machine;
  if (record->id == call.machine && Validate(*record, ctx)) ApplyRecord(record, tracked, call.begun, ctx);
}

void Reconcile::OnAcknowledged(const std::string& id, const contract::MachineRecord& record, StepContext& ctx) {
  Tracked& tracked = *deps_.machines.Find(id);
  if (record->id != id || !Validate(*record, ctx)) return deps_.gets.ScheduleGet(id);
  const std::optional<contract::MachineRecord> named = WithCluster(record, &tracked);
  if (named) deps_.changes.KeepServed(id, (*named)->cluster, ctx);
  if (!(tracked.record == (named ? *named : record))) Update(id, tracked, named ? *named : record, ctx);
}

// --- records

bool Reconcile::Validate(const model::Machine& machine, StepContext& ctx) const {
  std::string problem = model::StructureProblem(machine);
  if (problem.empty()) problem = deps_.engine.DimensionsProblem(machine);
  if (problem.empty() || (MUTANT("shard.garbage_adopted") && FieldOf(problem) == "price_per_hour")) return true;
  Reject(machine.id, problem, ctx);
  return false;
}

void Reconcile::Reject(const std::string& id, const std::string& problem, StepContext& ctx) {
  PROBE("shard.record_rejected");
  ++ctx.counters.machines_rejected[FieldOf(problem)];
  ctx.Note(Reason::kRecordRefused, id, problem);
}

// The rails of the cluster that it served bind, and it may count for it, whether or not the provider says whose it was.
std::optional<contract::MachineRecord> Reconcile::WithCluster(const contract::MachineRecord& shown,
                                                              const Tracked* tracked) const {
  if (shown->state != MachineState::kFailed || !shown->cluster.empty()) return std::nullopt;
  const bool bound = tracked != nullptr && !tracked->record->cluster.empty();
  const std::string& cluster = bound ? tracked->record->cluster : deps_.changes.ServedBy(shown->id);
  if (cluster.empty() || MUTANT("shard.served_forgotten")) return std::nullopt;
  model::Machine machine = *shown;
  machine.cluster = cluster;
  if (bound && machine.shard_metadata.empty()) machine.shard_metadata = tracked->record->shard_metadata;
  return contract::MachineRecord(std::move(machine));
}

bool Reconcile::IsStillFailing(const std::string& id, const model::Machine& shown) const {
  return !deps_.lifecycle.ready() && deps_.machines.AsideOf(id) == SetAside::kMissing &&
         shown.state == MachineState::kFailed && !shown.cluster.empty() &&
         deps_.machines.Find(id)->record->cluster == shown.cluster && deps_.changes.KnowsFailed(id) &&
         !MUTANT("shard.failing_counted_twice");
}

void Reconcile::ApplyRecord(const contract::MachineRecord& shown, Tracked* tracked, Moment begun, StepContext& ctx) {
  const std::optional<contract::MachineRecord> named = WithCluster(shown, tracked);
  const contract::MachineRecord& record = named ? *named : shown;
  const std::string& id = record->id;
  if (!deps_.owned.Owns(*record)) {
    if (tracked != nullptr) Drop(id, Reason::kNotOwned, "it left the domains of this shard", ctx);
    return;
  }
  if (state_.forgotten.contains(id)) {
    if (record->state == MachineState::kFailed) return;
    state_.forgotten.erase(id);
    ctx.Write(kForgottenRows.Erase(id));
  }
  if (tracked == nullptr) {
    const auto gone = state_.gone.find(id);
    if (gone == state_.gone.end() || begun > gone->second || MUTANT("shard.stale_reads_believed")) {
      return Adopt(record, begun, ctx);
    }
    PROBE("shard.stale_read");
    return AskInstead(id);
  }
  if (deps_.machines.IsCalling(id)) {
    PROBE("shard.shown_while_calling");
    tracked->missed = true;
    return;
  }
  if (begun < tracked->not_before && !MUTANT("shard.stale_reads_believed")) {
    PROBE("shard.stale_read");
    if (!(tracked->record == record)) AskInstead(id);
    return;
  }
  deps_.gets.Cancel(id);
  if (named) deps_.changes.KeepServed(id, record->cluster, ctx);
  if (IsStillFailing(id, *record)) {
    PROBE("shard.still_failing");
    deps_.machines.SetRecord(id, *tracked, record);
    return deps_.changes.OnStillFailing(*record, ctx);
  }
  EndMissing(id, *record, ctx);
  if (tracked->record == record) return;
  Update(id, *tracked, record, ctx);
}

void Reconcile::Adopt(const contract::MachineRecord& record, Moment begun, StepContext& ctx) {
  deps_.machines.Add({.record = record, .listed = begun, .sweep = state_.sweep});
  ++state_.swept;
  ctx.cycle.Request();
  if (deps_.lifecycle.ready()) ctx.Note(Reason::kAdopted, record->id, std::string(model::StateName(record->state)));
  deps_.changes.OnAdopted(*record, !deps_.lifecycle.ready(), ctx);
}

void Reconcile::Update(const std::string& id, Tracked& tracked, const contract::MachineRecord& record,
                       StepContext& ctx) {
  const contract::MachineRecord before = tracked.record;
  if (MUTANT("shard.fields_unrefreshed") && before->state == record->state) return;
  if (before->state != record->state && !model::IsLegalEdge(before->state, record->state)) {
    PROBE("shard.odd_edge");
    ctx.Note(Reason::kOddEdge, id,
             fmt::format("{} to {}", model::StateName(before->state), model::StateName(record->state)));
  }
  const bool moved = before->state != record->state || before->cluster != record->cluster;
  if (moved && deps_.machines.AsideOf(id) == SetAside::kFailing) EndLost(id, ctx);
  deps_.machines.SetRecord(id, tracked, record);
  // The engine was shown the transition when it began; its end, and anything else, is new to it.
  const bool moving = !model::IsStable(record->state) && record->state != MachineState::kFailed;
  if (!moving || before->state == record->state) ctx.cycle.Request();
  if (before->state != record->state) MeasureLeg(tracked, before->state, ctx);
  if (moved) PutFailing(deps_.changes.OnMoved(*before, *record, !deps_.lifecycle.ready(), ctx), ctx);
  deps_.machines.PublishToEngine(id, tracked);
}

void Reconcile::MeasureLeg(Tracked& tracked, MachineState before, StepContext& ctx) {
  const MachineState now = tracked.record->state;
  const MonoTime since = std::exchange(tracked.moving_since, model::IsStable(now) ? MonoTime{} : ctx.now.mono);
  if (since == MonoTime{}) return;
  const auto ended = [&](Leg leg) { ctx.Emit(Lasted{.leg = leg, .took = ctx.now.mono - since}); };
  if (before == MachineState::kCreating && now == MachineState::kIdle) ended(Leg::kCreate);
  if (before == MachineState::kConfiguring && now == MachineState::kConfigured) ended(Leg::kConfigure);
  if (before == MachineState::kDraining && now == MachineState::kIdle) ended(Leg::kDrain);
}

// Its record may be old or new; no later list of changes shows it again.
void Reconcile::AskInstead(const std::string& id) {
  if (!MUTANT("shard.updates_lost")) deps_.gets.ScheduleGet(id);
}

// --- the end of a machine

void Reconcile::Vanish(const std::string& id, StepContext& ctx) {
  const Tracked& tracked = *deps_.machines.Find(id);
  if (deps_.losses.OnVanished(*tracked.record, deps_.rails.budget(), ctx)) {
    return Drop(id, Reason::kVanished, "the provider no longer has it", ctx);
  }
  if (deps_.machines.AsideOf(id) == SetAside::kMissing || deps_.machines.AsideOf(id) == SetAside::kFailing) return;
  deps_.changes.OnMissing(id, ctx);
  ctx.Write(kMissingRows.Put(id, *tracked.record));
  ctx.Note(Reason::kMissing, id, std::string(model::StateName(tracked.record->state)));
}

void Reconcile::EndMissing(const std::string& id, const model::Machine& shown, StepContext& ctx) {
  if (deps_.machines.AsideOf(id) != SetAside::kMissing) return;
  PROBE("shard.missing_returned");
  EndLost(id, ctx);
  ctx.Note(Reason::kReturned, id, "");
  const model::Machine& before = *deps_.machines.Find(id)->record;
  const bool moves = before.state != shown.state || before.cluster != shown.cluster;
  if (!moves) deps_.changes.OnReturned(before, !deps_.lifecycle.ready(), ctx);  // else its update tells the parts
}

// A later life takes the row for that of one that is missing, as which it counts the same, until a list shows the
// machine.
void Reconcile::PutFailing(const std::vector<std::string>& machines, StepContext& ctx) {
  for (const std::string& id : machines) {
    PROBE("shard.failed_set_aside");
    model::Machine served = *deps_.machines.Find(id)->record;
    served.state = MachineState::kConfigured;
    served.last_error.clear();
    deps_.machines.Put(id, SetAside::kFailing);
    ctx.Write(kMissingRows.Put(id, served));
    ctx.cycle.Request();
  }
}

void Reconcile::EndLost(const std::string& id, StepContext& ctx) {
  deps_.losses.OnReturned(id, ctx);
  deps_.machines.Put(id, SetAside::kNo);
  ctx.Write(kMissingRows.Erase(id));
  ctx.cycle.Request();
}

// What the provider no longer shows is dropped; what it shows as Failed is that from now on.
bool Reconcile::GiveUp(const std::string& id, const std::string& detail, StepContext& ctx) {
  if (deps_.machines.AsideOf(id) != SetAside::kFailing) {
    Drop(id, Reason::kVanished, detail, ctx);
    return true;
  }
  EndLost(id, ctx);
  ctx.Note(Reason::kFailed, id, detail);
  deps_.changes.OnGivenUp(*deps_.machines.Find(id)->record, ctx);
  return false;
}

void Reconcile::GiveUpMissing(StepContext& ctx) {
  for (const std::string& id : deps_.losses.TakeReplaced(deps_.rails.modes(), deps_.rails.budget(), ctx)) {
    GiveUp(id, "it was lost with many others, and is given up", ctx);
  }
}

size_t Reconcile::AcceptLosses(const std::string& cluster, StepContext& ctx) {
  size_t dropped = 0;
  for (const std::string& id : deps_.losses.Accept(cluster, ctx)) {
    dropped += GiveUp(id, "an operator accepted the loss", ctx) ? 1 : 0;
  }
  return dropped;
}

void Reconcile::Drop(const std::string& id, Reason reason, std::string detail, StepContext& ctx) {
  const SetAside aside = deps_.machines.AsideOf(id);
  if (aside == SetAside::kMissing || aside == SetAside::kFailing) {
    deps_.losses.OnReturned(id, ctx);
    ctx.Write(kMissingRows.Erase(id));
  }
  const bool swept = deps_.machines.Find(id)->sweep == state_.sweep;
  deps_.changes.Drop(id, detail, ctx);
  state_.swept -= swept ? 1 : 0;
  state_.gone.insert_or_assign(id, deps_.machines.NextMoment());
  deps_.gets.Cancel(id);
  ctx.Note(reason, id, std::move(detail));
}

void Reconcile::Forget(const std::string& id, StepContext& ctx) {
  state_.forgotten.insert(id);
  ctx.Write(kForgottenRows.Put(id));
  Drop(id, Reason::kForgotten, "by an operator, until the provider reports another state", ctx);
}

void Reconcile::Recall(const std::string& id, StepContext& ctx) {
  state_.forgotten.erase(id);
  ctx.Write(kForgottenRows.Erase(id));
  state_.next_sweep = ctx.now.mono;
}

void Reconcile::OnOwnedSetChanged(StepContext& ctx) {
  std::vector<std::string> others;
  for (const auto& [id, tracked] : deps_.machines.tracked()) {
    if (!deps_.owned.Owns(*tracked.record)) others.push_back(id);
  }
  for (const std::string& id : others) Drop(id, Reason::kNotOwned, "its domain was given to another shard", ctx);
  state_.next_sweep = ctx.now.mono;  // machines of the new domains were passed over so far
}

void Reconcile::CheckInvariants() const {
  uint64_t swept = 0;
  for (const auto& [id, tracked] : deps_.machines.tracked()) {
    swept += tracked.sweep == state_.sweep ? 1 : 0;
    MUSTER_CHECK(deps_.owned.Owns(*tracked.record) || MUTANT("shard.owns_everything"), "machine {} is not this shard's",
                 id);
  }
  MUSTER_CHECK(swept == state_.swept);
}

}  // namespace muster::shard
