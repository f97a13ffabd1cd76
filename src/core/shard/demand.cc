// Roll-ups: a cluster's whole demand, accepted, held or refused; the last accepted one is in force.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"
#include "engine/fast/inventory.h"
#include "model/quantity.h"

namespace muster::shard {
namespace {

using model::Reason;

constexpr uint64_t kGuardedRows = 10;  // a smaller demand may lose rows without suspicion
constexpr int64_t kSuspicious = 10;    // less than one part in so many of what was accepted
constexpr int32_t kConfirmed = 3;      // so many in a row are no accident

int64_t AddCapped(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// What a roll-up asks for, by dimension. There are few, so a list is quicker than a tree.
struct Totals {
  struct Total {
    std::string_view name;
    int64_t amount = 0;
    bool asked_for = false;  // in an aggregate, not only as the size of a unit
  };
  std::vector<Total> totals;

  Total& Of(std::string_view name) {
    const auto known = std::ranges::find(totals, name, &Total::name);
    return known == totals.end() ? totals.emplace_back(Total{.name = name}) : *known;
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

}  // namespace

void Core::OnRollup(const std::string& name, const contract::Rollup& rollup, Turn& turn) {
  if (rollup.cluster_id != name && !MUTANT("shard.rollup_of_another_cluster")) {
    return RefuseRollup(name,
                        fmt::format("cluster_id: {} is not the cluster of this session, {}",
                                    codec::Quote(rollup.cluster_id), codec::Quote(name)),
                        turn);
  }
  Cluster& cluster = clusters_.find(name)->second;
  if (cluster.accepted && std::ranges::equal(cluster.came, rollup.rows.digests())) {
    cluster.held = 0;
    cluster.last_refusal.clear();
    return Acknowledge(cluster, "rollup", turn);  // what is in force, once more
  }
  const Totals totals = TotalsOf(rollup.rows);
  model::Resources dimensions;
  Baseline size{.rows = rollup.rows.size()};
  for (const Totals::Total& total : totals.totals) {
    dimensions.Set(total.name, 1);
    if (total.asked_for) size.totals.emplace(total.name, total.amount);
  }
  if (!engine_->inventory().catalogue().HasRoomFor(dimensions)) {
    return RefuseRollup(name, "needs: more kinds of resources than a shard can tell apart", turn);
  }
  const std::string suspicion = Suspicion(cluster, size);
  if (!suspicion.empty() && ++cluster.held < kConfirmed) {
    PROBE("shard.rollup_held");
    cluster.last_refusal = suspicion;
    // The operator has spoken, so the gate opens, unless nothing that was accepted stands between its machines and an
    // empty demand.
    if ((cluster.accepted || MUTANT("shard.held_rollup_opens_gate")) && !cluster.gate_open) {
      cluster.gate_open = true;
      MakeDue();
    }
    Note(Reason::kRollupHeld, name, suspicion, turn);
    return Acknowledge(cluster, "rollup", turn);
  }
  cluster.held = 0;
  cluster.last_refusal.clear();
  Accept(name, cluster, rollup, std::move(size), turn);
  Acknowledge(cluster, "rollup", turn);
}

void Core::RefuseRollup(const std::string& name, std::string why, Turn& turn) {
  PROBE("shard.rollup_refused");
  ++counters_.rollups_rejected[name];
  clusters_.find(name)->second.last_refusal = why;
  Note(Reason::kRollupRefused, name, std::move(why), turn);
}

// Why this roll-up may be a mistake; empty if nothing speaks for it.
std::string Core::Suspicion(const Cluster& cluster, const Baseline& size) const {
  if (!config_.empty_rollup_guard || !cluster.baseline || MUTANT("shard.no_quarantine")) return "";
  const Baseline& accepted = *cluster.baseline;
  if (accepted.rows >= kGuardedRows && size.rows * kSuspicious < accepted.rows) {
    return fmt::format("held: {} rows after {}; the third such roll-up in a row is accepted", size.rows, accepted.rows);
  }
  for (const auto& [name, total] : accepted.totals) {
    const auto now = size.totals.find(name);
    const int64_t amount = now == size.totals.end() ? 0 : now->second;
    if (amount >= total / kSuspicious + (total % kSuspicious != 0 ? 1 : 0)) continue;
    return fmt::format("held: {} of {} after {}; the third such roll-up in a row is accepted",
                       model::FormatQuantityFor(name, amount), name, model::FormatQuantityFor(name, total));
  }
  return "";
}

void Core::Accept(const std::string& name, Cluster& cluster, const contract::Rollup& rollup, Baseline size,
                  Turn& turn) {
  if (cluster.baseline != size) {
    Write(turn, std::string(kBaselineKey) + name, codec::ToBytes(size));
    cluster.baseline = std::move(size);
  }
  awaited_.erase(name);
  if (!cluster.accepted || !cluster.gate_open) MakeDue();
  const bool first = !cluster.accepted;
  cluster.accepted = true;
  cluster.gate_open = true;
  StampRows(name, cluster, rollup.rows, turn);
  if (first) RestoreAges(name);
  engine_->ReplaceNeeds(name, {.rows = cluster.rows, .digests = cluster.digests}, std::nullopt);
  MakeDue();
}

// Arrival is when a key was first listed, and stays while it is.
void Core::StampRows(const std::string& name, Cluster& cluster, const contract::NeedRows& rows, Turn& turn) {
  latest_arrival_ = std::max(latest_arrival_, turn.now.wall);
  const std::span<const model::Need> needs = rows.needs();
  const std::span<const uint64_t> digests = rows.digests();
  bool keys_changed = cluster.rows.size() != needs.size() || cluster.came.empty();
  cluster.rows.resize(needs.size());
  cluster.digests.resize(needs.size());
  for (size_t i = 0; i < needs.size(); ++i) {
    if (i < cluster.came.size() && cluster.came[i] == digests[i]) continue;
    model::Need& row = cluster.rows[i];
    std::pair<std::string, std::string> key{needs[i].profile.fingerprint(), needs[i].group};
    keys_changed = keys_changed || row.profile != needs[i].profile || row.group != needs[i].group;
    row = needs[i];
    row.cluster = name;
    const auto [arrival, is_new] = cluster.arrivals.emplace(std::move(key), latest_arrival_);
    row.arrival = arrival->second;
    cluster.digests[i] = model::RowDigest(row);
    if (is_new) {
      Write(turn, std::string(kArrivalKey) + codec::ToBytes(engine::KeyOf(row)), codec::ToBytes(arrival->second));
    }
  }
  cluster.came.assign(digests.begin(), digests.end());
  if (!keys_changed) return;
  std::set<std::pair<std::string_view, std::string_view>> listed;
  for (const model::Need& row : cluster.rows) listed.emplace(row.profile.fingerprint(), row.group);
  std::erase_if(cluster.arrivals, [&](const auto& arrival) {
    const auto& [key, when] = arrival;
    if (listed.contains({key.first, key.second})) return false;
    const engine::NeedKey gone{.cluster = name, .fingerprint = key.first, .group = key.second};
    Write(turn, std::string(kArrivalKey) + codec::ToBytes(gone), std::nullopt);
    return true;
  });
}

// What an earlier life knew of the cluster's needs is of use once they are there again.
void Core::RestoreAges(const std::string& cluster) {
  engine::Memory memory;
  for (auto it = short_rows_.lower_bound({.cluster = cluster});
       it != short_rows_.end() && it->first.cluster == cluster;) {
    const ShortRow& row = it->second;
    const auto cycles_since = [&](int64_t cycle) { return static_cast<int32_t>(std::max<int64_t>(cycle_ - cycle, 0)); };
    memory.needs.emplace(it->first,
                         engine::NeedMemory{.age_unmet = cycles_since(row.cycle) + 1,
                                            .hopeless = row.hopeless == 0 ? 0 : cycles_since(row.hopeless) + 1,
                                            .supply_seen = row.supply_seen});
    ++it;
  }
  if (!memory.needs.empty()) engine_->Restore(memory);
}

}  // namespace muster::shard
