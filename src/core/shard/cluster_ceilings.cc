#include "core/shard/cluster_ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/probe.h"

namespace muster::shard {
namespace {

using model::MachineState;

// How long a cluster that reached its ceiling is left alone: something cheaper may be there by then.
constexpr Duration kRetryAfter = 1min;

bool LimitsMachines(const contract::Ceiling& ceiling) { return ceiling.most_machines || ceiling.most_per_hour; }

model::Money Plus(model::Money a, model::Money b) {
  int64_t sum = 0;
  return {__builtin_add_overflow(a.micros, b.micros, &sum) ? std::numeric_limits<int64_t>::max() : sum};
}

bool Fits(const contract::Ceiling& ceiling, int64_t machines, model::Money per_hour) {
  return (!ceiling.most_machines || machines <= *ceiling.most_machines) &&
         (!ceiling.most_per_hour || per_hour <= *ceiling.most_per_hour);
}

// Whether the operation brings its machine to the cluster of its need.
bool Brings(OperationKind kind) {
  return kind == OperationKind::kBootstrap || kind == OperationKind::kProvision || IsWithdrawal(kind);
}

// "priority 100, 20 machines, $5.00/h"
std::string Words(const contract::Ceiling& ceiling) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (ceiling.highest_priority) add(fmt::format("priority {}", *ceiling.highest_priority));
  if (ceiling.most_machines) add(fmt::format("{} machines", *ceiling.most_machines));
  if (ceiling.most_per_hour) add(fmt::format("{}/h", model::FormatMoney(*ceiling.most_per_hour)));
  return text.empty() ? "no limit" : text;
}

void Tell(const std::string& cluster, const std::string& detail, StepContext& ctx) {
  ctx.Emit(Audit{.action = {.cycle = ctx.cycle.number(),
                            .decided = ctx.now.wall,
                            .kind = "Ceiling",
                            .cluster_id = cluster,
                            .outcome = "success",
                            .error = detail}});
}

}  // namespace

void ClusterCeilings::Set(contract::Ceilings ceilings, StepContext& ctx) {
  const contract::Ceilings before = std::exchange(state_.ceilings, std::move(ceilings));
  if (before == state_.ceilings) return;
  for (const auto& [cluster, ceiling] : state_.ceilings) {
    const auto was = before.find(cluster);
    if (was == before.end() || was->second != ceiling) Tell(cluster, Words(ceiling), ctx);
  }
  for (const auto& [cluster, ceiling] : before) {
    if (!state_.ceilings.contains(cluster)) Tell(cluster, "no ceiling any more", ctx);
  }
  state_.reached.clear();
  ctx.cycle.Request();
}

const contract::Ceiling* ClusterCeilings::Of(const std::string& cluster) const {
  auto found = state_.ceilings.find(cluster);
  if (found == state_.ceilings.end()) found = state_.ceilings.find(contract::kEveryOther);
  return found == state_.ceilings.end() ? nullptr : &found->second;
}

std::string ClusterCeilings::AbovePriority(const std::string& cluster, const contract::NeedRows& rows) const {
  const contract::Ceiling* ceiling = Of(cluster);
  if (ceiling == nullptr || !ceiling->highest_priority || MUTANT("shard.any_priority")) return "";
  for (size_t i = 0; i < rows.needs().size(); ++i) {
    const int32_t priority = rows.needs()[i].profile.priority();
    if (priority <= *ceiling->highest_priority) continue;
    PROBE("shard.priority_above_ceiling");
    return fmt::format("needs[{}].priority: {} is above {}, the highest that this cluster may ask for", i, priority,
                       *ceiling->highest_priority);
  }
  return "";
}

// --- what happened

void ClusterCeilings::OnDemand(const std::string& cluster, const contract::NeedRows& rows) {
  state_.reached.erase(cluster);
  int32_t highest = std::numeric_limits<int32_t>::min();
  for (const model::Need& need : rows.needs()) highest = std::max(highest, need.profile.priority());
  if (rows.needs().empty()) {
    state_.highest.erase(cluster);
  } else {
    state_.highest[cluster] = highest;
  }
}

// One that is pledged to another cluster now is looked at when that gets it, as any other machine. Of a cluster that
// may not buy a second one it stays until then.
void ClusterCeilings::OnPledge(const std::string& machine, const std::string& cluster) {
  const auto found = state_.coming.find(machine);
  passed_on_.erase(machine);
  if (found == state_.coming.end() || found->second.cluster == cluster) return;
  if (for_now_.contains(found->second.cluster)) {
    passed_on_.insert(machine);
  } else {
    state_.coming.erase(found);
  }
}

void ClusterCeilings::Rebuild(const engine::Memory& memory) {
  for (const auto& [machine, coming] : state_.coming) {
    const auto known = memory.machines.find(machine);
    const bool pledged = known != memory.machines.end() && known->second.pledge;
    if (!coming.earlier && (!pledged || known->second.pledge->cluster != coming.cluster)) passed_on_.insert(machine);
  }
}

void ClusterCeilings::OnEarlierPledge(const std::string& machine, const std::string& cluster) {
  state_.coming[machine] = {.cluster = cluster, .earlier = true};
}

void ClusterCeilings::OnStarted(const engine::Action& action) {
  const OperationKind kind = OperationKindOf(action.kind);
  if (!action.need || !Brings(kind)) return;
  const std::string& cluster = action.need->cluster;
  if (kind != OperationKind::kBootstrap) {
    state_.coming[action.machine] = {.cluster = cluster};
    passed_on_.erase(action.machine);
  }
  if (IsWithdrawal(kind)) ++awaited_[cluster].draining;
}

// --- a cycle

void ClusterCeilings::AddClusters(Clusters::Names& used) const {
  for (const auto& [cluster, ceiling] : state_.ceilings) used.insert(cluster);
  for (const auto& [machine, coming] : state_.coming) used.insert(coming.cluster);
}

void ClusterCeilings::Forget(const std::string& cluster) {
  state_.highest.erase(cluster);
  state_.reached.erase(cluster);
}

bool ClusterCeilings::IsAbove(const std::string& cluster) const {
  const contract::Ceiling* ceiling = Of(cluster);
  const auto highest = state_.highest.find(cluster);
  return ceiling != nullptr && ceiling->highest_priority && highest != state_.highest.end() &&
         highest->second > *ceiling->highest_priority;
}

bool ClusterCeilings::HasMostForNow(const std::string& cluster) const {
  const auto most = for_now_.find(cluster);
  const auto held = held_.find(cluster);
  return most != for_now_.end() && held != held_.end() && held->second.machines >= most->second;
}

void ClusterCeilings::Count(const Clusters& clusters, const Machines& machines,
                            const std::map<std::string, Operation, std::less<>>& operations, Most for_now,
                            MonoTime now) {
  for_now_ = std::move(for_now);
  held_.clear();
  barred_.clear();
  awaited_.clear();
  for (const std::string& name : clusters.names()) {
    const contract::Ceiling* ceiling = Of(name);
    if (IsAbove(name)) barred_.insert(name);
    const bool limited = ceiling != nullptr && LimitsMachines(*ceiling);
    if (!limited && !for_now_.contains(name)) continue;
    Held& held = held_[name];
    const std::set<std::string>& bound = machines.BoundTo(name).machines;
    held.machines = static_cast<int64_t>(bound.size());
    for (const std::string& id : bound) {
      held.per_hour = Plus(held.per_hour, machines.Find(id)->record->price_per_hour);
    }
  }
  const auto add = [&](const std::string& id, const std::string& cluster) -> Held* {
    const auto held = held_.find(cluster);
    const Tracked* tracked = held == held_.end() ? nullptr : machines.Find(id);
    if (tracked == nullptr || tracked->record->cluster == cluster) return nullptr;
    if (!held->second.coming.insert(id).second) return nullptr;
    ++held->second.machines;
    held->second.per_hour = Plus(held->second.per_hour, tracked->record->price_per_hour);
    return &held->second;
  };
  for (const auto& [id, operation] : operations) {
    if (operation.need && Brings(operation.kind)) add(id, operation.need->cluster);
  }
  for (auto it = state_.coming.begin(); it != state_.coming.end();) {
    auto& [id, coming] = *it;
    const Tracked* tracked = machines.Find(id);
    const MachineState state = tracked == nullptr ? MachineState::kFailed : machines.StateForEngine(id, *tracked);
    const bool moves = state == MachineState::kCreating || state == MachineState::kDraining;
    // What an earlier life bought for one that lacks machines may have come while the shard was down. What it pledged
    // to one that may have no more was bought for another.
    const bool came = for_now_.contains(coming.cluster) && !HasMostForNow(coming.cluster);
    const bool waits = state == MachineState::kIdle && (!coming.earlier || came);
    // What was kept for one that may not buy a second one is another's once it may.
    const bool passed_on = passed_on_.contains(id) && !for_now_.contains(coming.cluster);
    if (passed_on || (!moves && !waits)) {
      passed_on_.erase(id);
      it = state_.coming.erase(it);
      continue;
    }
    coming.earlier = false;
    if (state != MachineState::kCreating) {
      Awaited& awaited = awaited_[coming.cluster];
      ++(state == MachineState::kDraining ? awaited.draining : awaited.idle);
    }
    if (Held* held = add(id, coming.cluster); held != nullptr) {
      held->awaits = true;
      held->ready = held->ready || state == MachineState::kIdle;
    }
    ++it;
  }
  std::erase_if(state_.reached, [&](const auto& reached) {
    const auto held = held_.find(reached.first);
    return held == held_.end() || held->second.machines < reached.second.machines ||
           held->second.per_hour < reached.second.per_hour;
  });
  for (const auto& [name, reached] : state_.reached) {
    if (now < reached.retry && !held_.at(name).awaits) barred_.insert(name);
  }
  // The engine would give it what was bought for others that lack machines too, and comes to them later.
  for (const auto& [name, held] : held_) {
    if (HasMostForNow(name) && !held.ready) barred_.insert(name);
  }
}

void ClusterCeilings::CountBootstraps(const std::vector<engine::fast::NamedAction>& actions) {
  if (for_now_.empty()) return;
  for (const auto& [action, profile] : actions) {
    if (action.kind != engine::ActionKind::kBootstrap || !action.need || HasMostForNow(action.need->cluster)) continue;
    const auto held = held_.find(action.need->cluster);
    const bool limited = held != held_.end() && for_now_.contains(held->first);
    if (limited && held->second.coming.insert(action.machine).second) ++held->second.machines;
  }
}

ClusterCeilings::Verdict ClusterCeilings::Admit(const engine::Action& action, model::Money price, MonoTime now) {
  if (!action.need || !Brings(OperationKindOf(action.kind))) return Verdict::kWithin;
  const std::string& cluster = action.need->cluster;
  const auto found = held_.find(cluster);
  if (found == held_.end() || found->second.coming.contains(action.machine)) return Verdict::kWithin;
  Held& held = found->second;
  const model::Money per_hour = Plus(held.per_hour, price);
  if (HasMostForNow(cluster)) return Verdict::kNotYet;
  const contract::Ceiling* ceiling = Of(cluster);
  if (ceiling == nullptr || Fits(*ceiling, held.machines + 1, per_hour) || MUTANT("shard.no_ceiling")) {
    ++held.machines;
    held.per_hour = per_hour;
    held.coming.insert(action.machine);
    return Verdict::kWithin;
  }
  PROBE("shard.at_ceiling");
  const auto [reached, is_new] = state_.reached.try_emplace(cluster);
  reached->second = {.machines = held.machines, .per_hour = held.per_hour, .retry = now + kRetryAfter};
  return is_new ? Verdict::kAbove : Verdict::kAboveAsBefore;
}

ClusterCeilings::Awaited ClusterCeilings::AwaitedBy(const std::string& cluster) const {
  const auto found = awaited_.find(cluster);
  return found == awaited_.end() ? Awaited{} : found->second;
}

// --- for people

std::optional<contract::CeilingView> ClusterCeilings::ViewOf(const std::string& cluster) const {
  const contract::Ceiling* ceiling = Of(cluster);
  if (ceiling == nullptr) return std::nullopt;
  contract::CeilingView view{.highest_priority = ceiling->highest_priority,
                             .most_machines = ceiling->most_machines,
                             .most_per_hour = ceiling->most_per_hour,
                             .reached = state_.reached.contains(cluster) || IsAbove(cluster)};
  if (const auto held = held_.find(cluster); held != held_.end()) {
    view.machines = held->second.machines;
    view.per_hour = held->second.per_hour;
  }
  return view;
}

std::string ClusterCeilings::Sentence(const std::string& cluster) const {
  if (IsAbove(cluster)) {
    return fmt::format("its demand in force has priority {}, and it may ask for {}", state_.highest.at(cluster),
                       *Of(cluster)->highest_priority);
  }
  const auto reached = state_.reached.find(cluster);
  if (reached == state_.reached.end()) return "";
  contract::Ceiling ceiling = *Of(cluster);
  ceiling.highest_priority.reset();
  return fmt::format("it may have {}, and has {} machines for {}/h", Words(ceiling), reached->second.machines,
                     model::FormatMoney(reached->second.per_hour));
}

}  // namespace muster::shard
