#include "core/shard/holds.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"

namespace muster::shard {
namespace {

constexpr size_t kEnough = 3;  // failures within the window that hold a class or a cluster

bool IsGroup(HoldKind kind) { return kind == HoldKind::kClass || kind == HoldKind::kCluster; }

HoldKey MachineKey(const std::string& machine) { return {.kind = HoldKind::kMachine, .machine = machine}; }
HoldKey RestKey(const std::string& machine) { return {.kind = HoldKind::kRest, .machine = machine}; }
HoldKey PairKey(const std::string& machine, const std::string& cluster) {
  return {.kind = HoldKind::kPair, .machine = machine, .cluster = cluster};
}
HoldKey ClusterKey(const std::string& cluster) { return {.kind = HoldKind::kCluster, .cluster = cluster}; }
HoldKey ClassKey(const model::Machine& machine) {
  return {.kind = HoldKind::kClass, .stock = engine::StockClassOf(machine)};
}

// "spot m5.large in eu-1a", "cluster blue"
std::string NameOf(const HoldKey& key) {
  if (key.kind == HoldKind::kCluster) return key.cluster;
  return fmt::format("{} {} in {}", model::CapacityTypeName(key.stock.capacity_type), key.stock.instance_type,
                     key.stock.zone);
}

}  // namespace

std::string_view HoldKindName(HoldKind kind) {
  switch (kind) {
    case HoldKind::kMachine: return "machine";
    case HoldKind::kClass: return "class";
    case HoldKind::kPair: return "pair";
    case HoldKind::kCluster: return "cluster";
    case HoldKind::kRest: return "rest";
  }
  return "?";
}

Holds::Holds(const Config& config, State state) : config_(config), state_(std::move(state)) {
  for (const auto& [key, hold] : state_.holds) {
    if (!hold.probe.empty()) probes_.emplace(hold.probe, key);
  }
}

// --- from one life to the next

void Holds::RegisterRows(contract::RowReader& reader) {
  reader.On(kHoldRows, [this](HoldKey key, HoldRow row) { state_.earlier.emplace(std::move(key), std::move(row)); });
}

void Holds::Start(StepContext& ctx) {
  for (const auto& [key, row] : std::exchange(state_.earlier, {})) {
    const bool counts = IsGroup(key.kind) && !row.recent.empty() && row.recent.size() < kEnough;
    if (row.times < 0 || (row.times == 0 && !counts)) {  // no build writes such a row; it says nothing
      ctx.Write(kHoldRows.Erase(key));
      continue;
    }
    Hold& hold = state_.holds[key];
    hold.times = row.times;
    // A clock that was set must not make it longer than it can be.
    hold.until = ctx.now.mono + std::min<Duration>(row.until - ctx.now.wall, Longest(key.kind));
    if (hold.times > 0) continue;
    for (const WallTime when : row.recent) hold.recent.push_back(contract::TimeFromStored(when, ctx.now));
  }
}

void Holds::Store(const HoldKey& key, const Hold& hold, StepContext& ctx) const {
  if (MUTANT("shard.holds_forgotten")) return;
  HoldRow row{.times = hold.times, .until = contract::StoredTime(hold.until, ctx.now), .recent = {}};
  for (const MonoTime when : hold.recent) row.recent.push_back(contract::StoredTime(when, ctx.now));
  ctx.Write(kHoldRows.Put(key, row));
}

void Holds::Erase(const HoldKey& key, StepContext& ctx) {
  const auto found = state_.holds.find(key);
  if (found == state_.holds.end()) return;
  SetProbe(key, found->second, "");
  state_.holds.erase(found);
  changed_ = true;
  ctx.Write(kHoldRows.Erase(key));
}

void Holds::SetProbe(const HoldKey& key, Hold& hold, const std::string& machine) {
  if (!hold.probe.empty()) probes_.erase({hold.probe, key});
  hold.probe = machine;
  if (!machine.empty()) probes_.emplace(machine, key);
}

const Hold* Holds::Find(const HoldKey& key) const {
  const auto found = state_.holds.find(key);
  return found == state_.holds.end() ? nullptr : &found->second;
}

Duration Holds::Longest(HoldKind kind) const { return IsGroup(kind) ? config_.hold_longest : config_.retry_longest; }

// --- failures and successes

void Holds::Begin(const HoldKey& key, Hold& hold, bool for_long, StepContext& ctx) {
  hold.times = std::min(hold.times + 1, 20);
  const Duration first = IsGroup(key.kind) ? config_.hold_first : config_.retry_first;
  const Duration doubled = first * (int64_t{1} << (hold.times - 1));
  hold.until = ctx.now.mono + (for_long ? Longest(key.kind) : std::min(doubled, Longest(key.kind)));
  changed_ = true;
}

void Holds::FailOne(const HoldKey& key, bool for_long, StepContext& ctx) {
  Hold& hold = state_.holds[key];
  Begin(key, hold, for_long, ctx);
  Store(key, hold, ctx);
}

void Holds::FailGroup(const HoldKey& key, const std::string& machine, bool at_once, StepContext& ctx) {
  if (MUTANT("shard.no_class_hold") && key.kind == HoldKind::kClass) return;
  if (MUTANT("shard.no_cluster_hold") && key.kind == HoldKind::kCluster) return;
  const MonoTime now = ctx.now.mono;
  Hold& hold = state_.holds[key];
  if (hold.times > 0 && (now < hold.until || (!hold.probe.empty() && hold.probe != machine))) {
    PROBE("shard.failed_while_held");  // it began before the hold
    return;
  }
  if (hold.times == 0) {
    while (!hold.recent.empty() && now - hold.recent.front() >= config_.hold_window) hold.recent.pop_front();
    hold.recent.push_back(now);
    changed_ = true;
    if (!at_once && hold.recent.size() < kEnough) return Store(key, hold, ctx);
  } else {
    PROBE("shard.probe_failed");
  }
  Begin(key, hold, false, ctx);
  hold.recent.clear();
  SetProbe(key, hold, "");
  Store(key, hold, ctx);
  ctx.Note(model::Reason::kHeld, NameOf(key),
           fmt::format("for {} s; then one operation goes ahead", (hold.until - now) / 1s));
}

// Only the probe can tell whether what failed works again; what began before says nothing about it.
void Holds::SucceedGroup(const HoldKey& key, const std::string& machine, StepContext& ctx) {
  const Hold* hold = Find(key);
  if (hold == nullptr) return;
  if (hold->times > 0 && (ctx.now.mono < hold->until || (!hold->probe.empty() && hold->probe != machine))) return;
  if (hold->times > 0) PROBE("shard.hold_ended");
  Erase(key, ctx);
}

void Holds::OnCreateFailed(const model::Machine& machine, bool out_of_stock, StepContext& ctx) {
  if (!MUTANT("shard.failed_create_not_held")) FailOne(MachineKey(machine.id), false, ctx);
  FailGroup(ClassKey(machine), machine.id, out_of_stock, ctx);
}

void Holds::OnCreated(const model::Machine& machine, StepContext& ctx) {
  Erase(MachineKey(machine.id), ctx);
  SucceedGroup(ClassKey(machine), machine.id, ctx);
}

void Holds::OnConfigureFailed(const std::string& machine, const std::string& cluster, StepContext& ctx) {
  FailOne(PairKey(machine, cluster), false, ctx);
  FailGroup(ClusterKey(cluster), machine, false, ctx);
}

void Holds::OnConfigured(const std::string& machine, const std::string& cluster, StepContext& ctx) {
  Erase(PairKey(machine, cluster), ctx);
  SucceedGroup(ClusterKey(cluster), machine, ctx);
}

void Holds::OnOtherFailed(const std::string& machine, StepContext& ctx) { FailOne(RestKey(machine), false, ctx); }

void Holds::OnMachineFailed(const std::string& machine, OperationKind kind, const std::string& cluster, bool for_long,
                            StepContext& ctx) {
  switch (StartOf(kind) == model::MachineState::kSpeculative ? OperationKind::kProvision : kind) {
    case OperationKind::kProvision: return FailOne(MachineKey(machine), for_long, ctx);
    case OperationKind::kBootstrap: return FailOne(PairKey(machine, cluster), for_long, ctx);
    default: return FailOne(RestKey(machine), for_long, ctx);
  }
}

void Holds::OnMoved(const std::string& machine, StepContext& ctx) { Erase(RestKey(machine), ctx); }

void Holds::OnDropped(const std::string& machine, StepContext& ctx) {
  OnUndecided(machine);
  Erase(MachineKey(machine), ctx);
  Erase(RestKey(machine), ctx);
  std::vector<HoldKey> pairs;
  for (auto it = state_.holds.lower_bound(PairKey(machine, ""));
       it != state_.holds.end() && it->first.kind == HoldKind::kPair && it->first.machine == machine; ++it) {
    pairs.push_back(it->first);
  }
  for (const HoldKey& key : pairs) Erase(key, ctx);
}

// --- operations

bool Holds::BlocksGroup(const HoldKey& key, const std::string& machine, MonoTime now) const {
  const Hold* hold = Find(key);
  if (hold == nullptr || hold->times == 0) return false;
  if (now < hold->until) return true;
  // One whose end is never seen must not bar the others for ever.
  const bool probed = !hold->probe.empty() && now - hold->probe_since < config_.hold_longest;
  return probed && hold->probe != machine && !MUTANT("shard.no_probe");
}

bool Holds::Blocks(OperationKind kind, const model::Machine& machine, const std::string& cluster, MonoTime now) const {
  const auto held = [&](const HoldKey& key) {
    const Hold* hold = Find(key);
    return hold != nullptr && now < hold->until;
  };
  if (kind == OperationKind::kProvision) {
    return held(MachineKey(machine.id)) || BlocksGroup(ClassKey(machine), machine.id, now);
  }
  if (kind == OperationKind::kBootstrap) {
    return held(PairKey(machine.id, cluster)) || BlocksGroup(ClusterKey(cluster), machine.id, now);
  }
  return held(RestKey(machine.id));
}

bool Holds::HasFailedLast(const std::string& cluster) const { return Find(ClusterKey(cluster)) != nullptr; }

bool Holds::BarsTaking(const std::string& cluster, int64_t coming, MonoTime now) const {
  const HoldKey key = ClusterKey(cluster);
  const Hold* hold = Find(key);
  return hold != nullptr && hold->times > 0 && (coming > 0 || BlocksGroup(key, "", now));
}

void Holds::OnStarted(OperationKind kind, const model::Machine& machine, const std::string& cluster, MonoTime now) {
  if (kind != OperationKind::kProvision && kind != OperationKind::kBootstrap) return;
  const auto found = state_.holds.find(kind == OperationKind::kProvision ? ClassKey(machine) : ClusterKey(cluster));
  if (found == state_.holds.end() || found->second.times == 0) return;
  PROBE("shard.probe_sent");
  SetProbe(found->first, found->second, machine.id);
  found->second.probe_since = now;
}

void Holds::OnUndecided(const std::string& machine) {
  for (auto it = probes_.lower_bound({machine, {}}); it != probes_.end() && it->first == machine;) {
    state_.holds.find(it->second)->second.probe.clear();
    it = probes_.erase(it);
  }
}

MonoTime Holds::RestsUntil(const std::string& machine) const {
  MonoTime until = MonoTime::min();
  for (const HoldKey& key : {MachineKey(machine), RestKey(machine)}) {
    if (const Hold* hold = Find(key)) until = std::max(until, hold->until);
  }
  return until;
}

// --- the decision

std::optional<engine::Holds> Holds::TakeChanges(const Machines& machines, StepContext& ctx) {
  const MonoTime now = ctx.now.mono;
  if (!changed_ && now < next_change_) return std::nullopt;
  const auto serves = [&](const std::string& id) {
    const Tracked* tracked = machines.Find(id);
    return tracked != nullptr && tracked->record->state == model::MachineState::kConfigured;
  };
  engine::Holds holds;
  counts_.clear();
  next_change_ = MonoTime::max();
  std::vector<HoldKey> past;
  for (const auto& [key, hold] : state_.holds) {
    const bool held = hold.times > 0 && now < hold.until;
    // What failed last of a cluster is known for longer than it counts toward a hold.
    const bool long_known = key.kind == HoldKind::kCluster && config_.hold_longest > config_.hold_window;
    const Duration counted = long_known ? config_.hold_longest : config_.hold_window;
    const MonoTime forgotten = hold.times > 0 ? hold.until + Longest(key.kind) : hold.recent.back() + counted;
    if (now >= forgotten) {
      past.push_back(key);
      continue;
    }
    next_change_ = std::min(next_change_, held ? hold.until : forgotten);
    if (!held) continue;
    ++counts_[std::string(HoldKindName(key.kind))];
    const bool barred = key.kind == HoldKind::kMachine || (key.kind == HoldKind::kRest && serves(key.machine));
    if (barred && !(MUTANT("shard.rests_untold") && key.kind == HoldKind::kRest)) holds.machines.insert(key.machine);
    if (key.kind == HoldKind::kPair) holds.pairs.emplace(key.machine, key.cluster);
    if (key.kind == HoldKind::kClass) holds.classes.insert(key.stock);
  }
  for (const HoldKey& key : past) Erase(key, ctx);
  changed_ = false;
  if (holds == told_) return std::nullopt;
  told_ = holds;
  return holds;
}

void Holds::AddClusters(std::set<std::string, std::less<>>& used) const {
  for (const auto& [key, hold] : state_.holds) used.insert(key.cluster);
  for (const auto& [key, row] : state_.earlier) used.insert(key.cluster);
}

bool Holds::IsClusterHeld(const std::string& cluster, MonoTime now) const {
  return ClusterHeldUntil(cluster, now).has_value();
}

std::optional<MonoTime> Holds::ClusterHeldUntil(const std::string& cluster, MonoTime now) const {
  const Hold* hold = Find(ClusterKey(cluster));
  if (hold == nullptr || hold->times == 0 || now >= hold->until) return std::nullopt;
  return hold->until;
}

// --- for people

std::vector<Holds::Shown> Holds::Of(const model::Machine& machine, MonoTime now) const {
  std::vector<Shown> shown;
  const auto add = [&](const HoldKey& key) {
    const Hold* hold = Find(key);
    if (hold != nullptr && hold->times > 0 && now < hold->until) {
      shown.push_back({.key = key, .times = hold->times, .until = hold->until});
    }
  };
  add(MachineKey(machine.id));
  add(RestKey(machine.id));
  if (machine.state == model::MachineState::kSpeculative) add(ClassKey(machine));
  for (auto it = state_.holds.lower_bound(PairKey(machine.id, ""));
       it != state_.holds.end() && it->first.kind == HoldKind::kPair && it->first.machine == machine.id; ++it) {
    add(it->first);
  }
  std::ranges::stable_sort(shown, std::greater<>(), &Shown::until);
  return shown;
}

void Holds::CheckInvariants() const {
  size_t probes = 0;
  for (const auto& [key, hold] : state_.holds) {
    MUSTER_CHECK(hold.times > 0 || (IsGroup(key.kind) && !hold.recent.empty()), "a hold of {} that says nothing",
                 key.machine + key.cluster);
    MUSTER_CHECK(hold.probe.empty() || (IsGroup(key.kind) && hold.times > 0));
    MUSTER_CHECK(hold.recent.size() < kEnough);
    MUSTER_CHECK(hold.probe.empty() || probes_.contains({hold.probe, key}));
    probes += hold.probe.empty() ? 0 : 1;
  }
  MUSTER_CHECK(probes == probes_.size());
}

}  // namespace muster::shard
