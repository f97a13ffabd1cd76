#include "core/shard/saved_state.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace muster::shard {
namespace {

// What layout 0 kept of a cluster.
struct FlatCluster {
  contract::SessionId session = 0;
  ClusterDemand demand;
  contract::ActuationMode mode = contract::ActuationMode::kActive;
  RollupQuarantine::Watched watched;
  ChangeBudget::Spent reclaims;
  Hints::ByKey hints;

  friend bool Decode(codec::Reader& reader, FlatCluster& cluster);
};

template <class... Fields>
bool DecodeAll(codec::Reader& reader, Fields&... fields) {
  return (codec::Decode(reader, fields) && ...);
}

// --- what layouts 0 and 1 held otherwise

struct EarlierRetry {
  int32_t failures = 0;
  MonoTime until;

  MUSTER_FIELDS(EarlierRetry, failures, until)
};
struct EarlierMachineMemory {
  std::optional<model::Attribution> attribution;
  std::optional<engine::NeedKey> pledge;
  std::optional<MonoTime> unclaimed_since;
  std::optional<MonoTime> idle_since;
  std::optional<MonoTime> draining_since;

  MUSTER_FIELDS(EarlierMachineMemory, attribution, pledge, unclaimed_since, idle_since, draining_since)
};

bool DecodeEarlier(codec::Reader& reader, engine::Memory& memory) {
  std::map<std::string, EarlierMachineMemory> machines;
  if (!DecodeAll(reader, machines, memory.needs, memory.drains)) return false;
  for (auto& [id, m] : machines) {
    memory.machines.emplace(id, engine::MachineMemory{.attribution = m.attribution,
                                                      .pledge = m.pledge,
                                                      .unclaimed_since = m.unclaimed_since,
                                                      .idle_since = m.idle_since,
                                                      .draining_since = m.draining_since});
  }
  return true;
}

bool DecodeEarlier(codec::Reader& reader, Config& c) {
  engine::Policy& p = c.policy;
  c.first_bootstraps = 0;
  return DecodeAll(reader, c.id, p.surplus_hold, p.release_hold_on_demand, p.release_hold_spot, p.victim_weights,
                   p.park_after, p.reprobe_every, c.own, c.epoch_at_least, c.cycle_interval, c.cycle_gap,
                   c.restart_grace, c.incremental_reconcile, c.sweep_interval, c.list_page, c.list_timeout,
                   c.call_timeout, c.max_actions_per_cycle, c.reclaim_cap, c.reclaim_budget, c.reclaim_window,
                   c.empty_rollup_guard, c.mode, c.execute_concurrency, c.execute_queue, c.blob_timeout, c.ack_timeout,
                   c.give_up, c.retry_first, c.retry_longest, c.failed_policy, c.repair_first, c.repair_longest,
                   c.hints_interval, c.coordinator, c.report_interval, c.address, c.provider_address,
                   c.verify_decisions);
}

struct EarlierWatched {
  std::optional<Baseline> baseline;
  int32_t held = 0;

  MUSTER_FIELDS(EarlierWatched, baseline, held)
};

bool DecodeEarlier(codec::Reader& reader, Rails::State& r) {
  std::map<std::string, EarlierWatched, std::less<>> quarantine;
  if (!DecodeAll(reader, r.modes.shard, r.modes.clusters, r.budget, quarantine, r.suppressed)) return false;
  for (auto& [name, watched] : quarantine) {
    r.quarantine.emplace(name, RollupQuarantine::Watched{.baseline = watched.baseline, .held = watched.held});
  }
  return true;
}

bool DecodeEarlier(codec::Reader& reader, Reconcile::State& r) {
  return DecodeAll(reader, r.cursor, r.sweep_cursor, r.sweep, r.swept, r.last_page, r.stale_page, r.page, r.gone,
                   r.sweeping, r.list_open, r.list_failures, r.next_list, r.next_sweep, r.forgotten);
}

// Every cycle counted for ages.
void SetCounted(CycleTimer::State& cycle) {
  cycle.counted = cycle.number;
  cycle.last_counted = cycle.last;
}

void PutQueued(const std::deque<std::string>& queue, Executor::State& executor) {
  for (const std::string& id : queue) {
    const auto operation = executor.operations.find(id);
    if (operation == executor.operations.end() || operation->second.stage != Stage::kQueued) continue;
    const bool preempts = operation->second.kind == OperationKind::kPreempt;
    (preempts ? executor.preempts : executor.lanes[BeneficiaryOf(operation->second)]).push_back(id);
  }
}

bool DecodeEarlier(codec::Reader& reader, Executor::State& e) {
  std::map<std::string, EarlierRetry, std::less<>> retries;
  std::deque<std::string> queue;
  if (!DecodeAll(reader, e.operations, retries, e.unanswered, queue, e.calling, e.sequence, e.tokens,
                 e.machine_of_token)) {
    return false;
  }
  PutQueued(queue, e);
  return true;
}

bool DecodeEarlier(codec::Reader& reader, Ledger::State& l) {
  return DecodeAll(reader, l.short_needs, l.machine_digests, l.drains, l.earlier_machines, l.earlier_short) &&
         DecodeEarlier(reader, l.restored);
}

std::optional<SavedState> LoadSecond(codec::Reader& reader) {
  SavedState s;
  const bool ok =
      DecodeEarlier(reader, s.memory) && DecodeEarlier(reader, s.config) &&
      DecodeAll(reader, s.cycle.number, s.cycle.due, s.cycle.starved, s.cycle.last, s.clusters.names, s.calls, s.log,
                s.owned, s.machines.tracked, s.machines.moment, s.lifecycle, s.gets, s.sessions) &&
      DecodeEarlier(reader, s.rails) && DecodeAll(reader, s.repairs.repairs) && DecodeEarlier(reader, s.executor) &&
      DecodeEarlier(reader, s.ledger) &&
      DecodeAll(reader, s.demand.clusters, s.demand.awaited, s.demand.latest_arrival) &&
      DecodeEarlier(reader, s.reconcile) && DecodeAll(reader, s.hints, s.reports, s.inspection);
  if (!ok || !reader.done()) return std::nullopt;
  SetCounted(s.cycle);
  return s;
}

// --- layouts 2 to 7

// Decodes the value but for its last `kNew` fields.
template <size_t kNew, class T>
bool DecodeAllBut(codec::Reader& reader, T& value) {
  return T::TakeFields([&](const auto&... field) {
    size_t left = sizeof...(field);
    bool ok = true;
    ((ok = ok && (left-- <= kNew || codec::Decode(reader, value.*(field.member)))), ...);
    return ok;
  });
}

bool DecodeWithoutFirstWave(codec::Reader& reader, Config& config) {
  config.first_bootstraps = 0;
  return DecodeAllBut<1>(reader, config);
}

// What follows the repairs.
bool DecodeRest(codec::Reader& reader, SavedState& s) {
  return DecodeAllBut<3>(reader, s.executor) && DecodeAll(reader, s.ledger, s.demand, s.trial) &&
         DecodeAllBut<2>(reader, s.reconcile) && DecodeAll(reader, s.hints, s.reports, s.inspection, s.orders) &&
         DecodeAllBut<2>(reader, s.losses);
}

bool DecodeWithoutCeilings(codec::Reader& reader, Rails::State& r) {
  return DecodeAll(reader, r.modes, r.budget, r.quarantine, r.suppressed, r.tried, r.holds);
}

// All that an earlier life had: the next cycle finds out how many of them are there.
void TakeLacking(const Losses::Names& clusters, Losses::State& losses) {
  for (const std::string& cluster : clusters) {
    const auto size = losses.sizes.find(cluster);
    if (size != losses.sizes.end()) losses.lacking[cluster] = size->second;
  }
}

struct SeventhLack {
  int64_t machines = 0;
  int64_t room = 0;

  MUSTER_FIELDS(SeventhLack, machines, room)
};

std::optional<SavedState> LoadSeventh(codec::Reader& reader) {
  SavedState s;
  std::map<std::string, SeventhLack, std::less<>> lacking;
  const bool ok = DecodeAllBut<2>(reader, s) && DecodeAllBut<1>(reader, s.losses) &&
                  DecodeAll(reader, lacking, s.sweep) && reader.done();
  if (!ok) return std::nullopt;
  for (const auto& [cluster, lack] : lacking) s.losses.lacking.emplace(cluster, lack.machines);
  return s;
}

std::optional<SavedState> LoadSixth(codec::Reader& reader) {
  SavedState s;
  Losses::Names lacking;
  if (!DecodeAllBut<2>(reader, s) || !DecodeAllBut<1>(reader, s.losses) || !DecodeAll(reader, lacking)) {
    return std::nullopt;
  }
  if (!reader.done()) return std::nullopt;
  TakeLacking(lacking, s.losses);
  return s;
}

std::optional<SavedState> LoadFifth(codec::Reader& reader, uint64_t layout) {
  SavedState s;
  const bool ok =
      DecodeAll(reader, s.memory) && DecodeWithoutFirstWave(reader, s.config) &&
      DecodeAll(reader, s.cycle, s.clusters, s.calls, s.log, s.owned, s.machines, s.lifecycle, s.gets, s.sessions) &&
      (layout == 4 ? DecodeWithoutCeilings(reader, s.rails) : DecodeAll(reader, s.rails)) &&
      DecodeAll(reader, s.repairs) && DecodeRest(reader, s);
  if (!ok || !reader.done()) return std::nullopt;
  return s;
}

std::optional<SavedState> LoadThird(codec::Reader& reader, uint64_t layout) {
  SavedState s;
  Machines::State& machines = s.machines;
  Repairs::State& repairs = s.repairs;
  const bool ok = DecodeAll(reader, s.memory) && DecodeWithoutFirstWave(reader, s.config) &&
                  DecodeAll(reader, s.cycle, s.clusters, s.calls, s.log, s.owned, machines.tracked, machines.moment,
                            machines.set_aside, s.lifecycle, s.gets, s.sessions) &&
                  DecodeWithoutCeilings(reader, s.rails) &&
                  DecodeAll(reader, repairs.repairs, repairs.under_way, repairs.refusals, repairs.given_up) &&
                  (layout == 2 || DecodeAll(reader, repairs.served)) && DecodeRest(reader, s);
  if (!ok || !reader.done()) return std::nullopt;
  for (const auto& [id, why] : machines.set_aside) {
    if (why == SetAside::kFenced) machines.fenced.insert(id);
  }
  return s;
}

// --- layout 0

bool Decode(codec::Reader& reader, FlatCluster& c) {
  return DecodeAll(reader, c.session, c.demand.accepted, c.demand.gate_open, c.mode, c.watched.baseline, c.watched.held,
                   c.demand.last_refusal, c.demand.rows, c.demand.came, c.demand.digests, c.demand.arrivals,
                   c.reclaims.times, c.reclaims.stored, c.hints);
}

void AddCluster(SavedState& state, const std::string& name, FlatCluster cluster) {
  state.clusters.names.insert(name);
  if (cluster.session != 0) state.sessions.by_cluster.emplace(name, cluster.session);
  if (cluster.mode != contract::ActuationMode::kActive) state.rails.modes.clusters.emplace(name, cluster.mode);
  state.rails.quarantine.emplace(name, std::move(cluster.watched));
  state.rails.budget.emplace(name, std::move(cluster.reclaims));
  state.demand.clusters.emplace(name, std::move(cluster.demand));
  if (!cluster.hints.empty()) state.hints.sent.emplace(name, std::move(cluster.hints));
}

std::optional<SavedState> LoadFlat(std::string_view bytes) {
  SavedState s;
  std::map<std::string, FlatCluster, std::less<>> clusters;
  std::map<std::string, engine::DrainMean> earlier_drains;
  std::map<std::string, EarlierRetry, std::less<>> retries;
  std::deque<std::string> queue;
  codec::Reader reader(bytes);
  const bool ok =
      DecodeEarlier(reader, s.config) &&
      DecodeAll(reader, s.lifecycle.epoch, s.cycle.number, s.rails.modes.shard, s.owned.managed, s.owned.domains,
                s.reconcile.forgotten, s.repairs.repairs, s.lifecycle.epoch_before, s.ledger.earlier_machines,
                s.ledger.earlier_short, earlier_drains, s.demand.awaited, s.machines.tracked, clusters,
                s.sessions.clusters, s.executor.operations, retries, s.executor.unanswered, s.demand.latest_arrival,
                s.machines.moment, s.reconcile.cursor, s.reconcile.sweep_cursor, s.reconcile.sweep, s.reconcile.swept,
                s.reconcile.last_page, s.reconcile.stale_page, s.reconcile.page, s.reconcile.gone, s.reconcile.sweeping,
                s.reconcile.list_open, s.reconcile.list_failures, s.reconcile.next_list, s.reconcile.next_sweep,
                s.gets.next, s.gets.scheduled, s.gets.asked, queue, s.executor.calling, s.executor.sequence,
                s.executor.tokens, s.executor.machine_of_token, s.calls.open, s.calls.last, s.lifecycle.started,
                s.lifecycle.ready, s.lifecycle.decided, s.cycle.due, s.cycle.starved, s.cycle.last,
                s.lifecycle.warm_until, s.rails.suppressed, s.inspection.waiting, s.lifecycle.stopped, s.hints.next,
                s.hints.last_cluster, s.reports.next, s.reports.open, s.lifecycle.coordinator_term, s.reports.acks,
                s.log.actions, s.log.logged, s.ledger.short_needs, s.ledger.machine_digests, s.ledger.drains) &&
      DecodeEarlier(reader, s.ledger.restored) && DecodeEarlier(reader, s.memory);
  if (!ok || !reader.done()) return std::nullopt;
  if (!s.lifecycle.started) s.ledger.drains = std::move(earlier_drains);
  for (auto& [name, cluster] : clusters) AddCluster(s, name, std::move(cluster));
  PutQueued(queue, s.executor);
  SetCounted(s.cycle);
  return s;
}

// What ceilings count by, from the states that have it.
void FindPledges(SavedState& s) {
  ClusterCeilings::State& ceilings = s.rails.ceilings;
  for (const auto& [id, memory] : s.memory.machines) {
    if (!memory.pledge) continue;
    ceilings.coming.emplace(id, ClusterCeilings::Coming{.cluster = memory.pledge->cluster, .earlier = true});
  }
  for (const auto& [name, demand] : s.demand.clusters) {
    for (const model::Need& row : demand.rows) {
      int32_t& highest = ceilings.highest.try_emplace(name, row.profile.priority()).first->second;
      highest = std::max(highest, row.profile.priority());
    }
  }
}

std::optional<SavedState> LoadEarlier(codec::Reader& reader, uint64_t layout) {
  if (layout == 1) return LoadSecond(reader);
  if (layout == 7) return LoadSeventh(reader);
  if (layout == 6) return LoadSixth(reader);
  return layout >= 4 ? LoadFifth(reader, layout) : LoadThird(reader, layout);
}

std::optional<SavedState> WithPledges(std::optional<SavedState> state) {
  if (state) FindPledges(*state);
  return state;
}

}  // namespace

std::optional<SavedState> LoadState(std::string_view bytes) {
  if (bytes.empty() || bytes.front() != '\0') return WithPledges(LoadFlat(bytes));
  codec::Reader reader(bytes.substr(1));
  uint64_t layout = 0;
  if (!reader.Varint(layout) || layout == 0 || layout > kLayout) return std::nullopt;
  if (layout >= 5 && layout < kLayout) return LoadEarlier(reader, layout);  // they have them
  if (layout < kLayout) return WithPledges(LoadEarlier(reader, layout));
  SavedState state;
  if (!codec::Decode(reader, state) || !reader.done()) return std::nullopt;
  return state;
}

}  // namespace muster::shard
