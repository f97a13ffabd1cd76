#include "core/shard/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "engine/bind_stamp.h"

namespace muster::shard {
namespace {

using model::Reason;

int64_t AddCapped(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

bool AsksForMore(const model::Need& need, const model::Need& before) {
  return std::ranges::any_of(need.aggregate.entries(),
                             [&](const auto& entry) { return entry.second > before.aggregate.Get(entry.first); });
}

// What a roll-up asks for, by dimension, in the order of first sight. There are few, so a list is quicker than a tree;
// when a roll-up invents names, the tree keeps it from costing their square.
struct Totals {
  struct Total {
    std::string_view name;
    int64_t amount = 0;
    bool asked_for = false;  // in an aggregate, not only as the size of a unit
  };
  static constexpr size_t kFew = 16;
  std::vector<Total> totals;
  std::map<std::string_view, size_t> beyond;  // of `totals` from the place kFew on

  Total& Of(std::string_view name) {
    const auto few = std::span(totals).first(std::min(totals.size(), kFew));
    if (const auto known = std::ranges::find(few, name, &Total::name); known != few.end()) return *known;
    if (const auto known = beyond.find(name); known != beyond.end()) return totals[known->second];
    if (totals.size() >= kFew) beyond.emplace(name, totals.size());
    return totals.emplace_back(Total{.name = name});
  }
};

Totals TotalsOf(const contract::NeedRows& rows) {
  Totals totals;
  for (const model::Need& need : rows.needs()) {
    for (const auto& [name, amount] : need.min_unit.entries()) totals.Of(name);
    for (const auto& [name, amount] : need.aggregate.entries()) {
      Totals::Total& total = totals.Of(name);
      total.amount = AddCapped(total.amount, amount);
      total.asked_for = true;
    }
  }
  return totals;
}

// About what a row takes to store: its texts, and a number for each amount.
int64_t BytesOf(const model::Need& need) {
  constexpr int64_t kNumber = 8;
  int64_t bytes = 4 * kNumber + std::ssize(need.group);
  for (const model::Resources* amounts : {&need.aggregate, &need.min_unit}) {
    for (const auto& [name, amount] : amounts->entries()) bytes += std::ssize(name) + kNumber;
  }
  for (const model::Requirement& requirement : need.profile.requirements()) {
    bytes += std::ssize(requirement.key) + kNumber;
    for (const std::string& value : requirement.values) bytes += std::ssize(value);
  }
  for (const model::Spread& spread : need.profile.spread()) bytes += std::ssize(spread.topology_key) + 2 * kNumber;
  return bytes;
}

}  // namespace

void Demand::RegisterRows(contract::RowReader& reader) {
  reader.On(kArrivalRows, [this](const engine::NeedKey& need, WallTime arrival) {
    deps_.clusters.Add(need.cluster);
    state_.clusters[need.cluster].arrivals.emplace(std::pair(need.fingerprint, need.group), arrival);
    state_.latest_arrival = std::max(state_.latest_arrival, arrival);
    state_.awaited.insert(need.cluster);
  });
}

void Demand::Rebuild() {
  for (const auto& [name, demand] : state_.clusters) {
    if (!demand.accepted) continue;
    deps_.engine.engine().ReplaceNeeds(name, {.rows = demand.rows, .digests = demand.digests}, std::nullopt);
  }
}

const ClusterDemand& Demand::Of(const std::string& cluster) const {
  static const ClusterDemand none;
  const auto found = state_.clusters.find(cluster);
  return found == state_.clusters.end() ? none : found->second;
}

bool Demand::HasAccepted(const std::string& cluster) const { return Of(cluster).accepted; }

void Demand::OnRollup(const std::string& cluster, const contract::Rollup& rollup, StepContext& ctx) {
  if (rollup.cluster_id != cluster && !MUTANT("shard.rollup_of_another_cluster")) {
    return Refuse(cluster,
                  fmt::format("cluster_id: {} is not the cluster of this session, {}", codec::Quote(rollup.cluster_id),
                              codec::Quote(cluster)),
                  ctx);
  }
  if (deps_.clusters.IsDecommissioned(cluster)) {
    return Refuse(cluster, "the cluster was decommissioned by order; `muster fleet resume --cluster` takes it up again",
                  ctx);
  }
  if (std::string above = deps_.rails.ceilings().AbovePriority(cluster, rollup.rows); !above.empty()) {
    return Refuse(cluster, std::move(above), ctx);
  }
  ClusterDemand& demand = state_.clusters[cluster];
  if (demand.accepted && std::ranges::equal(demand.came, rollup.rows.digests())) {
    deps_.rails.quarantine().Clear(cluster);
    demand.last_refusal.clear();
    return deps_.sessions.Acknowledge(cluster, "rollup", ctx);  // the demand in force, once more
  }
  std::string limit = BeyondLimit(rollup.rows);
  if (!limit.empty() && !MUTANT("shard.no_rollup_limits")) return Refuse(cluster, std::move(limit), ctx);
  const Totals totals = TotalsOf(rollup.rows);
  Baseline size{.rows = rollup.rows.size()};
  for (const Totals::Total& total : totals.totals) {
    if (total.asked_for) size.totals.emplace(total.name, total.amount);
  }
  demand.last_refusal = deps_.rails.quarantine().Hold(cluster, size, ctx.now.mono);
  if (demand.last_refusal.empty()) {
    Accept(cluster, rollup, std::move(size), ctx);
  } else {
    PROBE("shard.rollup_held");
    if (!demand.gate_open && Rails::HeldOpensGate(demand.accepted)) {
      demand.gate_open = true;
      ctx.cycle.Request();
    }
    ctx.Note(Reason::kRollupHeld, cluster, demand.last_refusal);
    if (!MUTANT("shard.held_untold")) {
      return deps_.sessions.Acknowledge(cluster, "rollup: " + demand.last_refusal, ctx);
    }
  }
  deps_.sessions.Acknowledge(cluster, "rollup", ctx);
}

void Demand::Refuse(const std::string& cluster, std::string why, StepContext& ctx) {
  PROBE("shard.rollup_refused");
  ++ctx.counters.rollups_rejected[cluster];
  state_.clusters[cluster].last_refusal = why;
  ctx.Note(Reason::kRollupRefused, cluster, std::move(why));
}

void Demand::End(const std::string& cluster, StepContext& ctx) {
  state_.clusters[cluster].last_refusal.clear();
  Accept(cluster, {.cluster_id = cluster, .timestamp = ctx.now.wall}, {}, ctx);
  deps_.rails.quarantine().Forget(cluster, ctx);
}

void Demand::AddClusters(Clusters::Names& used) const {
  used.insert(state_.awaited.begin(), state_.awaited.end());
  for (const auto& [cluster, demand] : state_.clusters) {
    if (!demand.rows.empty() || !demand.arrivals.empty()) used.insert(cluster);
  }
}

void Demand::Forget(const std::string& cluster) {
  state_.clusters.erase(cluster);
  state_.wanted_since.erase(cluster);
}

// Distinct values are counted only where there are rows enough to go beyond the limit.
std::string Demand::BeyondLimit(const contract::NeedRows& rows) const {
  const RollupLimits& limits = deps_.config.rollups;
  const auto said = [](std::string_view what, int64_t is, std::string_view limit, int64_t most) {
    return is <= most ? std::string() : fmt::format("needs: {} {}; {} is {}", is, what, limit, most);
  };
  const auto count = std::ssize(rows.needs());
  if (std::string why = said("rows", count, "the limit of rows of a cluster", limits.rows); !why.empty()) return why;
  if (count > limits.profiles) {
    std::set<std::string_view> profiles;
    for (const model::Need& need : rows.needs()) profiles.insert(need.profile.fingerprint());
    std::string why = said("profiles", std::ssize(profiles), "the limit of profiles of a cluster", limits.profiles);
    if (!why.empty()) return why;
  }
  if (count > limits.groups) {
    std::set<std::string_view> groups;
    for (const model::Need& need : rows.needs()) groups.insert(need.group);
    std::string why = said("groups", std::ssize(groups), "the limit of groups of a cluster", limits.groups);
    if (!why.empty()) return why;
  }
  int64_t bytes = 0;
  for (const model::Need& need : rows.needs()) bytes += BytesOf(need);
  return said("bytes", bytes, "the limit of bytes of a cluster's roll-up", limits.bytes);
}

void Demand::Accept(const std::string& cluster, const contract::Rollup& rollup, Baseline size, StepContext& ctx) {
  deps_.rails.quarantine().Accept(cluster, std::move(size), ctx);
  deps_.rails.ceilings().OnDemand(cluster, rollup.rows);
  state_.awaited.erase(cluster);
  ClusterDemand& demand = state_.clusters[cluster];
  const bool first = !demand.accepted;
  demand.accepted = true;
  demand.gate_open = true;
  StampArrivals(cluster, demand, rollup.rows, ctx);
  if (first) deps_.ledger.RestoreAges(cluster, ctx.cycle);
  deps_.engine.engine().ReplaceNeeds(cluster, {.rows = demand.rows, .digests = demand.digests}, std::nullopt);
  ctx.cycle.Request();
}

// Arrival is when a key was first listed, and stays while it is.
void Demand::StampArrivals(const std::string& cluster, ClusterDemand& demand, const contract::NeedRows& rows,
                           StepContext& ctx) {
  state_.latest_arrival = std::max(state_.latest_arrival, ctx.now.wall);
  std::map<std::string, MonoTime>& wanted = state_.wanted_since[cluster];
  const std::span<const model::Need> needs = rows.needs();
  const std::span<const uint64_t> digests = rows.digests();
  bool keys_changed = demand.rows.size() != needs.size() || demand.came.empty();
  demand.rows.resize(needs.size());
  demand.digests.resize(needs.size());
  for (size_t i = 0; i < needs.size(); ++i) {
    if (i < demand.came.size() && demand.came[i] == digests[i]) continue;
    model::Need& row = demand.rows[i];
    std::pair<std::string, std::string> key{needs[i].profile.fingerprint(), needs[i].group};
    const bool same_need = row.profile == needs[i].profile && row.group == needs[i].group;
    keys_changed = keys_changed || !same_need;
    if (!same_need || AsksForMore(needs[i], row)) wanted.try_emplace(key.first, ctx.now.mono);
    row = needs[i];
    row.cluster = cluster;
    const auto [arrival, is_new] = demand.arrivals.emplace(std::move(key), state_.latest_arrival);
    row.arrival = arrival->second;
    demand.digests[i] = model::RowDigest(row);
    if (is_new) ctx.Write(kArrivalRows.Put(engine::KeyOf(row), arrival->second));
  }
  demand.came.assign(digests.begin(), digests.end());
  if (!keys_changed) return;
  std::set<std::pair<std::string_view, std::string_view>> listed;
  std::set<std::string_view> fingerprints;
  for (const model::Need& row : demand.rows) {
    listed.emplace(row.profile.fingerprint(), row.group);
    fingerprints.insert(row.profile.fingerprint());
  }
  std::erase_if(wanted, [&](const auto& since) { return !fingerprints.contains(since.first); });
  std::erase_if(demand.arrivals, [&](const auto& arrival) {
    const auto& [key, when] = arrival;
    if (listed.contains({key.first, key.second})) return false;
    ctx.Write(kArrivalRows.Erase({.cluster = cluster, .fingerprint = key.first, .group = key.second}));
    return true;
  });
}

void Demand::OnConfigured(const model::Machine& machine, StepContext& ctx) {
  const auto cluster = state_.wanted_since.find(machine.cluster);
  const auto stamp = engine::ReadBindStamp(machine.shard_metadata);
  if (cluster == state_.wanted_since.end() || !stamp) return;
  const auto wanted = cluster->second.find(std::string(stamp->fingerprint));
  if (wanted == cluster->second.end()) return;
  ctx.Emit(Lasted{.leg = Leg::kProvision, .took = ctx.now.mono - wanted->second});
  cluster->second.erase(wanted);
}

void Demand::CountMachines(MonoTime now) {
  if (now < next_count_) return;
  next_count_ = now + deps_.config.hints_interval;
  for (auto& [bucket, needs] : needs_by_penalty_) needs = 0;
  for (const auto& [name, demand] : state_.clusters) {
    for (const model::Need& row : demand.rows) ++needs_by_penalty_[row.profile.interruption()];
  }
  for (auto& [bucket, machines] : machines_by_penalty_) machines = 0;
  for (const auto& [bucket, machines] : deps_.engine.MachinesByPenalty()) machines_by_penalty_[bucket] = machines;
}

void Demand::CheckInvariants() const {
  for (const auto& [name, demand] : state_.clusters) {
    MUSTER_CHECK(demand.rows.size() == demand.digests.size() && demand.rows.size() == demand.came.size());
    MUSTER_CHECK(!demand.accepted || demand.gate_open, "cluster {} has a demand in force and a shut gate", name);
  }
}

}  // namespace muster::shard
