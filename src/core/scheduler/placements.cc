#include "core/scheduler/placements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "core/scheduler/set_members.h"
#include "core/scheduler/sets.h"
#include "placement/detail.h"
#include "placement/match.h"

namespace muster::scheduler {
namespace {

// The set whose members are required to be near each other, and so of use only together. Empty: none.
std::string GangOf(const WorkloadRecord& record) {
  if (record.workload.spec.colocate.empty()) return {};
  const placement::Kind kind = KindOfWorkload(record, true);
  const bool itself = std::ranges::all_of(kind.colocate, [&](const placement::UnitTerm& term) {
    return placement::MatchesAll(term.selector.all, kind.labels);
  });
  return itself && !kind.colocate.empty() ? record.workload.set : std::string();
}

// The filter that refuses most nodes, the earliest of them.
std::string_view ReasonOf(const placement::Outcome& refused) {
  const auto most = std::ranges::max_element(refused.refusals, {}, &placement::RefusalCount::nodes);
  return ReasonName(most == refused.refusals.end() ? placement::Reason::kNoNodeFits : most->reason);
}

}  // namespace

Placements::Placements(const Config& config, const StoreCopy& copy, Drafts& drafts, const NodeHealth& health,
                       Rooms& rooms, Transitions& transitions, const ComingMachines& coming, State state)
    : config_(config),
      copy_(copy),
      drafts_(drafts),
      health_(health),
      rooms_(rooms),
      transitions_(transitions),
      coming_(coming),
      state_(std::move(state)) {}

bool Placements::NeedsNode(const WorkloadRecord& record) const {
  const model::Workload& workload = record.workload;
  if (workload.desired != model::DesiredState::kRunning) return false;
  if (workload.phase == model::WorkloadPhase::kCompleted || workload.phase == model::WorkloadPhase::kFailed)
    return false;
  return workload.assigned_node.empty() || !health_.Available(workload.assigned_node);
}

void Placements::Await(const std::string& workload, MonoTime now) {
  const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(workload);
  if (record != nullptr && NeedsNode(*record)) state_.waiting.emplace(workload, now);
}

void Placements::Forget(const std::string& workload) {
  state_.wanted.erase(workload);
  state_.waiting.erase(workload);
  if (state_.nominations.erase(workload) > 0) rooms_.Withdraw(workload);
}

std::optional<MonoTime> Placements::PreemptAt(const std::string& workload, Now now) const {
  const auto found = state_.waiting.find(workload);
  if (found == state_.waiting.end()) return std::nullopt;
  const MonoTime at = found->second + config_.preempt_after;
  if (at > now.mono) return at;
  const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(workload);
  return record == nullptr ? std::nullopt : coming_.AwaitedUntil(*record, found->second, now.mono);
}

// First everything that fits; then those that waited long enough may evict others.
void Placements::Run(StepContext& ctx) {
  RunNominations(ctx);
  std::vector<Rooms::Wanted> wanted;
  for (const std::string& id : std::exchange(state_.wanted, {})) {
    if (drafts_.Busy(WorkloadObject(id)) || IsNominated(id)) continue;
    const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(id);
    if (record != nullptr && NeedsNode(*record)) wanted.push_back({.workload = id, .may_preempt = false});
  }
  if (wanted.empty()) return;
  ctx.counters.scheduling_attempts += wanted.size();
  Messages messages;
  std::vector<placement::Outcome> preempting;
  for (placement::Outcome& outcome : rooms_.Place(wanted, ctx.now.wall)) {
    if (outcome.node.empty() && MayEvict(outcome.unit, ctx)) {
      preempting.push_back(std::move(outcome));
    } else {
      Settle(outcome, {}, messages, ctx);
    }
  }
  if (preempting.empty()) return;
  SetBudgets();
  const std::vector<placement::Outcome> outcomes = PlaceEvicting(std::move(preempting), ctx);
  std::map<std::string, std::set<std::string>> victims;  // by node: whoever goes there waits for all of them
  for (const placement::Outcome& outcome : outcomes) {
    victims[outcome.node].insert(outcome.victims.begin(), outcome.victims.end());
  }
  for (const placement::Outcome& outcome : outcomes) Settle(outcome, victims[outcome.node], messages, ctx);
}

bool Placements::MayEvict(const std::string& workload, const StepContext& ctx) const {
  if (state_.waiting.contains(workload)) return !PreemptAt(workload, ctx.now);
  // At its first refusal it has not waited, and need not if it is told so.
  const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(workload);
  return config_.preempt_after <= Duration::zero() && record != nullptr &&
         !coming_.AwaitedUntil(*record, ctx.now.mono, ctx.now.mono);
}

// In the order in which the placer would take them, but for members of a gang, which are placed with the first of them.
std::vector<placement::Outcome> Placements::PlaceEvicting(std::vector<placement::Outcome> refused, StepContext& ctx) {
  std::ranges::sort(refused, {}, [&](const placement::Outcome& one) {
    const model::Workload& workload = drafts_.Find<WorkloadRecord>(one.unit)->workload;
    return std::tuple(-int64_t{workload.spec.priority}, workload.created_at, std::string_view(one.unit));
  });
  std::vector<placement::Outcome> outcomes;
  std::vector<Rooms::Wanted> singles;
  const auto place_singles = [&] {
    std::ranges::move(rooms_.Place(singles, ctx.now.wall), std::back_inserter(outcomes));
    singles.clear();
  };
  std::set<std::string> gangs;
  for (const placement::Outcome& one : refused) {
    const std::string gang = GangOf(*drafts_.Find<WorkloadRecord>(one.unit));
    if (gang.empty()) {
      singles.push_back({.workload = one.unit, .may_preempt = true});
    } else if (gangs.insert(gang).second) {
      place_singles();
      std::ranges::move(PlaceGang(gang, refused, ctx), std::back_inserter(outcomes));
    }
  }
  place_singles();
  return outcomes;
}

// Others are evicted for a gang only if every member that waits gets a node: half a gang runs for nothing. Members that
// wait for their next attempt are placed with it.
std::vector<placement::Outcome> Placements::PlaceGang(const std::string& gang,
                                                      const std::vector<placement::Outcome>& refused,
                                                      StepContext& ctx) {
  std::vector<Rooms::Wanted> members;
  bool ready = true;
  for (const std::string& id : copy_.MembersOf(gang)) {
    const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(id);
    if (record == nullptr || !NeedsNode(*record) || IsNominated(id)) continue;
    ready = ready && !drafts_.Busy(WorkloadObject(id)) && MayEvict(id, ctx);
    members.push_back({.workload = id, .may_preempt = true});
  }
  if (ready) {
    std::vector<placement::Outcome> outcomes = rooms_.Place(members, ctx.now.wall);
    const auto is_placed = [](const placement::Outcome& outcome) { return !outcome.node.empty(); };
    if (std::ranges::all_of(outcomes, is_placed) || MUTANT("scheduler.half_gang_evicts")) return outcomes;
    rooms_.TakeBack(outcomes);
    for (const Rooms::Wanted& member : members) rooms_.SyncWorkload(member.workload);
  }
  std::vector<placement::Outcome> of_gang;
  std::ranges::copy_if(refused, std::back_inserter(of_gang), [&](const placement::Outcome& one) {
    return drafts_.Find<WorkloadRecord>(one.unit)->workload.set == gang;
  });
  return of_gang;
}

// What min-available leaves to evict.
void Placements::SetBudgets() {
  for (const auto& [name, set] : copy_.All<SetRecord>()) {
    const bool limited = set.spec.min_available.amount > 0;
    rooms_.SetBudget(name, limited ? EvictionsAllowed(set, MembersOf(name, copy_, drafts_))
                                   : static_cast<int64_t>(copy_.MembersOf(name).size()));
  }
}

void Placements::Settle(const placement::Outcome& outcome, const std::set<std::string>& victims, Messages& messages,
                        StepContext& ctx) {
  const std::string& id = outcome.unit;
  const WorkloadRecord& record = *drafts_.Find<WorkloadRecord>(id);
  const bool failover = !record.workload.assigned_node.empty();
  if (!outcome.node.empty() && victims.empty()) {
    ReturnVictim(id, outcome.node);
    transitions_.Assign(id, outcome.node, placement::ReasonSentence(outcome.reason), ctx);
    state_.waiting.erase(id);
    rooms_.SyncWorkload(id);
    return;
  }
  state_.waiting.emplace(id, ctx.now.mono);
  if (!outcome.node.empty()) {
    PROBE("scheduler.preempts");
    for (const std::string& victim : victims) {
      if (!IsNominated(victim)) continue;  // the room it waited for is taken
      PROBE("scheduler.nominated_victim");
      Forget(victim);
      Want(victim);
    }
    rooms_.Nominate(id, outcome.node);
    Nomination& nomination = state_.nominations[id];
    nomination = {.node = outcome.node, .victims = victims, .revision = record.agent_revision};
    transitions_.Wait(id, failover, placement::ReasonName(placement::Reason::kPlacedByPreemption),
                      fmt::format("{} leave {} for it", fmt::join(victims, ", "), outcome.node), ctx);
    EvictVictims(id, nomination, ctx);
    rooms_.SyncWorkload(id);
    return;
  }
  ++ctx.counters.scheduling_failures;
  if (failover) PROBE("scheduler.await_failover");
  const std::string_view reason = failover ? ReasonName(Reason::kAwaitFailover) : ReasonOf(outcome);
  // The texts of all nodes, for each of many that wait and whenever room comes, would hold up everything else.
  if (transitions_.IsWaitNews(id, reason, ctx.now) || MUTANT("scheduler.waits_explained_anew")) {
    const std::string& message = MessageOf(record, messages, ctx.now.wall);
    transitions_.Wait(id, failover, reason, failover ? ReasonText(Reason::kAwaitFailover, message) : message, ctx);
  }
  rooms_.SyncWorkload(id);
}

// It asks for less than when it was to leave the node, and there is room for it beside what it was to leave for. The
// store has not seen it leave: it would be evicted again, and come back, for ever.
void Placements::ReturnVictim(const std::string& workload, const std::string& node) {
  const WorkloadRecord* stored = copy_.Find<WorkloadRecord>(workload);
  if (stored == nullptr || stored->workload.assigned_node != node) return;
  for (auto& [id, nomination] : state_.nominations) {
    if (nomination.node == node) nomination.victims.erase(workload);
  }
}

const std::string& Placements::MessageOf(const WorkloadRecord& record, Messages& messages, WallTime wall) {
  const placement::Kind kind = rooms_.KindAsPlaced(record, wall);
  const auto [found, is_new] = messages.try_emplace(codec::ToBytes(kind));
  if (is_new) {
    found->second = fmt::format("{}: {}", placement::ReasonSentence(placement::Reason::kNoNodeFits),
                                placement::Summarise(rooms_.Explain(kind)));
  }
  return found->second;
}

// --- nominations

void Placements::RunNominations(StepContext& ctx) {
  std::vector<std::string> over;
  for (auto& [id, nomination] : state_.nominations) {
    if (CarryOut(id, nomination, ctx)) over.push_back(id);
  }
  for (const std::string& id : over) {
    state_.nominations.erase(id);
    rooms_.Withdraw(id);
  }
}

void Placements::EvictVictims(const std::string& workload, const Nomination& nomination, StepContext& ctx) {
  for (const std::string& victim : nomination.victims) {
    const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(victim);
    if (record != nullptr && record->workload.assigned_node == nomination.node && !record->evict &&
        !drafts_.Busy(WorkloadObject(victim)) && record->workload.desired != model::DesiredState::kDeleted) {
      transitions_.Evict(victim, Reason::kPreempted, workload, std::nullopt, ctx);
    }
    rooms_.SyncWorkload(victim);
  }
}

// Whether the nomination is over: the workload has its node, or cannot have it.
bool Placements::CarryOut(const std::string& workload, Nomination& nomination, StepContext& ctx) {
  const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(workload);
  const NodeRecord* node = drafts_.Find<NodeRecord>(nomination.node);
  if (record == nullptr || !NeedsNode(*record)) return true;
  const bool changed = record->agent_revision != nomination.revision;
  if (changed || node == nullptr || node->cordoned || !health_.Available(nomination.node)) {
    PROBE("scheduler.nomination_withdrawn");
    Want(workload);
    return true;
  }
  EvictVictims(workload, nomination, ctx);
  // One that is only on its way there has not left: it is evicted once it has arrived.
  const auto is_there = [&](const WorkloadRecord* victim) {
    return victim != nullptr && victim->workload.assigned_node == nomination.node;
  };
  std::erase_if(nomination.victims, [&](const std::string& victim) {
    return !is_there(copy_.Find<WorkloadRecord>(victim)) && !is_there(drafts_.Find<WorkloadRecord>(victim)) &&
           !is_there(drafts_.FindDoubt<WorkloadRecord>(victim));
  });
  if (!nomination.victims.empty() || drafts_.Busy(WorkloadObject(workload))) return false;
  transitions_.Assign(workload, nomination.node, "workloads of lower priority have left it", ctx);
  state_.waiting.erase(workload);
  return true;
}

void Placements::CheckInvariants() const {
  for (const auto& [id, nomination] : state_.nominations) {
    MUSTER_CHECK(rooms_.state().nominated.contains(id), "workload {} is nominated and holds no room", id);
  }
  MUSTER_CHECK(rooms_.state().nominated.size() == state_.nominations.size(), "nominations are miscounted");
}

}  // namespace muster::scheduler
