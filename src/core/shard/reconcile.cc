// Reconcile: the shard's picture of the provider's machines.
//
// One list at a time: what changed since the last one, and every now and then all of it, page by page, to see what is
// gone. What a list says of a machine is taken unless a transition of that machine began or ended since the list was
// asked for. Where it is not known how a transition ended, or a machine was missing from a sweep, it is asked for by
// name.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/shard.h"
#include "engine/bind_stamp.h"
#include "engine/fast/inventory.h"
#include "model/names.h"

namespace muster::shard {
namespace {

using model::MachineState;
using model::Reason;

constexpr size_t kLooksAtOnce = 16;
constexpr Duration kLongestListPause = 30s;

// Its first and its last machine.
std::pair<std::string, std::string> EndsOf(const contract::ListReply& list) {
  if (list.machines.empty()) return {list.rejected.front().id, list.rejected.back().id};
  return {list.machines.front()->id, list.machines.back()->id};
}

// "resources" of "machines[3].resources.cpu: -1 is negative": one of few names, whatever the provider says.
std::string FieldOf(const std::string& problem) {
  const std::string path = problem.substr(0, problem.find(": "));
  const size_t row = path.starts_with("machines[") ? path.find("].") : std::string::npos;
  const size_t begin = row == std::string::npos ? 0 : row + 2;
  return path.substr(begin, path.find('.', begin) - begin);
}

}  // namespace

contract::CallId Core::OpenACall(OpenCall call) {
  open_calls_.emplace(++last_call_, std::move(call));
  return last_call_;
}

void Core::AskList(Turn& turn) {
  if (list_open_ || turn.now.mono < next_list_) return;
  if (!sweeping_ && (turn.now.mono >= next_sweep_ || !config_.incremental_reconcile || !ready_)) {
    sweeping_ = true;
    ++sweep_;
    swept_ = 0;
    last_page_ = {};
    stale_page_ = false;
    sweep_cursor_.clear();
  }
  list_open_ = true;
  const contract::CallId id = OpenACall({.kind = OpenCall::Kind::kList, .begun = ++moment_});
  turn.out.push_back(Call{.id = id,
                          .to = std::string(kProvider),
                          .request = contract::ListRequest{.states = {},
                                                           .max_results = config_.list_page,
                                                           .since_revision = sweeping_ ? sweep_cursor_ : cursor_},
                          .timeout = sweeping_ ? config_.list_timeout : config_.call_timeout});
}

void Core::OnListDone(const CallDone& done, const OpenCall& call, Turn& turn) {
  list_open_ = false;
  if (!done.status.ok()) {
    PROBE("shard.list_failed");
    ++counters_.list_failures;
    list_failures_ = std::min(list_failures_ + 1, 10);
    next_list_ = turn.now.mono + std::min(config_.cycle_interval * (1 << list_failures_), kLongestListPause);
    if (list_failures_ == 1) Note(Reason::kProviderSilent, "provider", done.status.ToString(), turn);
    return;
  }
  list_failures_ = 0;
  std::erase_if(gone_, [&](const auto& gone) { return gone.second < call.begun; });  // lists come one after the other
  const auto& list = std::get<contract::ListReply>(*done.reply);
  const bool full =
      config_.list_page > 0 && list.machines.size() + list.rejected.size() >= static_cast<size_t>(config_.list_page);
  bool seen_before = false;
  if (sweeping_ && full) {
    auto ends = EndsOf(list);
    seen_before = stale_page_ || ends == last_page_;
    last_page_ = std::move(ends);
  }
  next_list_ = full ? turn.now.mono : turn.now.mono + config_.cycle_interval;
  if (sweeping_ && full && !seen_before) {
    sweep_cursor_ = list.revision;
    page_ = Page{.list = list, .begun = call.begun};
    return;
  }
  OnListed(list, call.begun, turn);
  if (!sweeping_) {
    cursor_ = list.revision;
    return;
  }
  sweeping_ = false;
  cursor_ = list.revision;
  next_sweep_ = turn.now.mono + config_.sweep_interval;
  if (full) {
    // Nothing new, or the same page again: this provider does not go on where a page ended. What was not shown may well
    // be there.
    PROBE("shard.sweep_without_end");
    next_list_ = turn.now.mono + config_.cycle_interval;
    return Note(Reason::kProviderSilent, "provider",
                "its pages do not go on where the last one ended; list without pages", turn);
  }
  SweepDone(turn);
}

// The page that waits, if one does.
void Core::TakePage(Turn& turn) {
  if (!page_) return;
  const Page page = *std::exchange(page_, std::nullopt);
  stale_page_ = std::ranges::all_of(page.list.machines, [&](const contract::MachineRecord& record) {
    const auto tracked = machines_.find(record->id);
    return tracked != machines_.end() && tracked->second.sweep == sweep_;
  });
  OnListed(page.list, page.begun, turn);
}

void Core::OnListed(const contract::ListReply& list, Moment begun, Turn& turn) {
  Laps laps(parallel_);
  for (const contract::MachineRecord& record : list.machines) {
    const auto found = machines_.find(record->id);
    Tracked* tracked = found == machines_.end() ? nullptr : &found->second;
    if (tracked != nullptr && std::exchange(tracked->shown, begun) == begun) {
      Reject(record->id, "id: listed twice", turn);
      continue;
    }
    if (tracked != nullptr && sweeping_) MarkSeen(*tracked);
    if (Screen(*record, turn)) Hear(record, tracked, begun, turn);
  }
  for (const contract::RejectedMachine& rejected : list.rejected) {
    if (const auto tracked = machines_.find(rejected.id); tracked != machines_.end()) MarkSeen(tracked->second);
    Reject(rejected.id, rejected.reason, turn);
  }
  laps.Ended("reconcile");
}

void Core::MarkSeen(Tracked& tracked) {
  swept_ += tracked.sweep == sweep_ ? 0 : 1;
  tracked.sweep = sweep_;
}

// What the sweep did not show is asked for by name before it is believed to be gone.
void Core::SweepDone(Turn& turn) {
  for (const auto& [id, tracked] : machines_) {
    if (swept_ == machines_.size()) break;
    if (tracked.sweep == sweep_) continue;
    PROBE("shard.missing_from_sweep");
    if (!MUTANT("shard.removals_unseen")) Look(id);
  }
  if (!ready_) FirstSweepDone(turn);
}

void Core::Look(const std::string& id) { to_look_.insert(id); }

void Core::AskGets(Turn& turn) {
  if (turn.now.mono < next_look_) return;
  for (auto it = to_look_.begin(); it != to_look_.end() && looking_.size() < kLooksAtOnce;) {
    const std::string id = *it;
    it = to_look_.erase(it);
    const auto operation = operations_.find(id);
    if (operation != operations_.end() && operation->second.stage == Stage::kCalling) {
      machines_.find(id)->second.missed = true;  // the end of the call looks again
      continue;
    }
    if (!looking_.insert(id).second) continue;
    const contract::CallId call = OpenACall({.kind = OpenCall::Kind::kGet, .machine = id, .begun = ++moment_});
    turn.out.push_back(Call{.id = call,
                            .to = std::string(kProvider),
                            .request = contract::GetRequest{.machine_id = id},
                            .timeout = config_.call_timeout});
  }
}

void Core::OnGetDone(const CallDone& done, const OpenCall& call, Turn& turn) {
  looking_.erase(call.machine);
  const auto tracked = machines_.find(call.machine);
  if (tracked == machines_.end()) return;
  const bool stale = call.begun < tracked->second.not_before;
  if (done.status.code() == Code::kNotFound && !stale) {
    return Drop(call.machine, Reason::kVanished, "the provider no longer has it", turn);
  }
  if (!done.status.ok() || stale) {
    PROBE("shard.look_again");
    if (!stale) next_look_ = turn.now.mono + config_.retry_first;
    return Look(call.machine);
  }
  const contract::MachineRecord& record = std::get<contract::GetReply>(*done.reply).machine;
  if (record->id == call.machine && Screen(*record, turn)) Hear(record, &tracked->second, call.begun, turn);
}

bool Core::Screen(const model::Machine& machine, Turn& turn) {
  std::string problem = model::StructureProblem(machine);
  const auto& catalogue = engine_->inventory().catalogue();
  if (problem.empty() && !catalogue.HasRoomFor(machine.EffectiveAllocatable())) {
    problem = "resources: more kinds of resources than a shard can tell apart";
  }
  if (problem.empty() || (MUTANT("shard.garbage_adopted") && FieldOf(problem) == "price_per_hour")) return true;
  Reject(machine.id, problem, turn);
  return false;
}

void Core::Reject(const std::string& id, const std::string& problem, Turn& turn) {
  PROBE("shard.record_rejected");
  ++counters_.machines_rejected[FieldOf(problem)];
  Note(Reason::kRecordRefused, id, problem, turn);
}

void Core::Hear(const contract::MachineRecord& record, Tracked* tracked, Moment begun, Turn& turn) {
  const std::string& id = record->id;
  if (!Owns(*record)) {
    if (tracked != nullptr) Drop(id, Reason::kNotOwned, "it left the domains of this shard", turn);
    return;
  }
  if (forgotten_.contains(id)) {
    if (record->state == MachineState::kFailed) return;
    forgotten_.erase(id);
    Write(turn, std::string(kForgottenKey) + id, std::nullopt);
  }
  if (tracked == nullptr) {
    const auto gone = gone_.find(id);
    if (gone == gone_.end() || begun > gone->second || MUTANT("shard.stale_reads_believed")) {
      return Adopt(record, begun, turn);
    }
    PROBE("shard.stale_read");
    return;
  }
  const auto operation = operations_.find(id);
  if (operation != operations_.end() && operation->second.stage == Stage::kCalling) {
    PROBE("shard.shown_while_calling");
    tracked->missed = true;
    return;
  }
  if (begun < tracked->not_before && !MUTANT("shard.stale_reads_believed")) {
    PROBE("shard.stale_read");
    return;
  }
  to_look_.erase(id);
  if (tracked->record == record) return;
  Change(id, *tracked, record, turn);
}

void Core::Adopt(const contract::MachineRecord& record, Moment begun, Turn& turn) {
  const auto [it, is_new] = machines_.emplace(record->id, Tracked{.record = record, .shown = begun, .sweep = sweep_});
  ++swept_;
  Count(it->first, it->second, 1);
  Show(it->first, it->second);
  MakeDue();
  if (ready_) Note(Reason::kAdopted, record->id, std::string(model::StateName(record->state)), turn);
  OnState(record->id, model::Machine{}, *record, turn);
}

void Core::Change(const std::string& id, Tracked& tracked, const contract::MachineRecord& record, Turn& turn) {
  const contract::MachineRecord before = tracked.record;
  if (MUTANT("shard.fields_unrefreshed") && before->state == record->state) return;
  if (before->state != record->state && !model::IsLegalEdge(before->state, record->state)) {
    PROBE("shard.odd_edge");
    Note(Reason::kOddEdge, id,
         fmt::format("{} to {}", model::StateName(before->state), model::StateName(record->state)), turn);
  }
  Count(id, tracked, -1);
  tracked.record = record;
  Count(id, tracked, 1);
  // The engine was shown the transition when it began; its end, and anything else, is news.
  const bool moving = !model::IsStable(record->state) && record->state != MachineState::kFailed;
  if (!moving || before->state == record->state) MakeDue();
  if (before->state != record->state) Clock(tracked, before->state, turn);
  if (before->state != record->state || before->cluster != record->cluster) {
    retries_.erase(id);
    const auto operation = operations_.find(id);
    if (operation != operations_.end() && operation->second.stage != Stage::kCalling) {
      PROBE("shard.overtaken");
      EndOperation(id, "stale_state", fmt::format("it is {}", model::StateName(record->state)), turn);
    }
    OnState(id, *before, *record, turn);
  }
  Show(id, tracked);
}

void Core::Clock(Tracked& tracked, MachineState before, Turn& turn) {
  const MachineState now = tracked.record->state;
  const MonoTime since = std::exchange(tracked.moving_since, model::IsStable(now) ? MonoTime{} : turn.now.mono);
  if (since == MonoTime{}) return;
  const auto ended = [&](Leg leg) { turn.out.push_back(Lasted{.leg = leg, .took = turn.now.mono - since}); };
  if (before == MachineState::kCreating && now == MachineState::kIdle) ended(Leg::kCreate);
  if (before == MachineState::kConfiguring && now == MachineState::kConfigured) ended(Leg::kConfigure);
  if (before == MachineState::kDraining && now == MachineState::kIdle) ended(Leg::kDrain);
}

void Core::Drop(const std::string& id, Reason reason, std::string detail, Turn& turn) {
  const auto it = machines_.find(id);
  PROBE("shard.machine_dropped");
  if (operations_.contains(id)) EndOperation(id, "inventory_miss", detail, turn);
  const contract::MachineRecord record = it->second.record;
  Count(id, it->second, -1);
  swept_ -= it->second.sweep == sweep_ ? 1 : 0;
  machines_.erase(it);
  gone_.insert_or_assign(id, ++moment_);
  engine_->Remove(id);
  retries_.erase(id);
  to_look_.erase(id);
  ForgetRepair(id, turn);
  std::erase_if(unanswered_, [&](const auto& row) { return row.second.instruction.nodes.front() == id; });
  if (on_disk_.erase(id) > 0 || machine_rows_.erase(id) > 0) Write(turn, std::string(kMachineKey) + id, std::nullopt);
  MakeDue();
  Note(reason, id, std::move(detail), turn);
}

bool Core::Owns(const model::Machine& machine) const {
  if (config_.own.empty() && !managed_) return true;
  if (MUTANT("shard.owns_everything")) return true;
  const auto has = [&](const contract::Domain& domain) { return machine.Attribute(domain.key) == domain.value; };
  return managed_ ? std::ranges::any_of(domains_, has) : std::ranges::any_of(config_.own, has);
}

void Core::OwnedSetChanged(Turn& turn) {
  std::vector<std::string> others;
  for (const auto& [id, tracked] : machines_) {
    if (!Owns(*tracked.record)) others.push_back(id);
  }
  for (const std::string& id : others) Drop(id, Reason::kNotOwned, "its domain was given to another shard", turn);
  next_sweep_ = turn.now.mono;  // what came with the new domains was passed over so far
}

MachineState Core::ShownState(const std::string& id, const Tracked& tracked) const {
  const auto operation = operations_.find(id);
  if (operation == operations_.end() || tracked.record->state != StartOf(operation->second.kind)) {
    return tracked.record->state;
  }
  return DuringOf(operation->second.kind);
}

void Core::Show(const std::string& id, const Tracked& tracked) {
  const MachineState state = ShownState(id, tracked);
  if (state == tracked.record->state) return engine_->Upsert(*tracked.record, tracked.record.digest());
  model::Machine machine = *tracked.record;
  machine.state = state;
  if (state == MachineState::kConfiguring) {
    const Operation& operation = operations_.find(id)->second;
    machine.cluster = operation.cluster;
    machine.shard_metadata = StampOf(operation, config_.id, epoch_);
  }
  engine_->Upsert(machine);
}

void Core::Count(const std::string& id, const Tracked& tracked, int64_t by) {
  const model::Machine& machine = *tracked.record;
  const auto interruption =
      machine.shard_metadata.empty() ? model::PenaltyBucket::kZero : engine::BoundInterruption(machine.shard_metadata);
  counts_[{machine.state, machine.capacity_type, interruption}] += static_cast<uint64_t>(by);
  types_[machine.instance_type] += by;
  zones_[machine.zone] += by;
  if (machine.cluster.empty()) return;
  Cluster& cluster = clusters_[machine.cluster];
  if (by > 0) {
    cluster.bound.insert(id);
  } else {
    cluster.bound.erase(id);
  }
  if (ShownState(id, tracked) == MachineState::kConfigured) cluster.configured += by;
}

}  // namespace muster::shard
