#include "core/shard/saved_state.h"

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
  ReclaimBudget::Spent reclaims;
  Hints::ByKey hints;

  friend bool Decode(codec::Reader& reader, FlatCluster& cluster);
};

template <class... Fields>
bool DecodeAll(codec::Reader& reader, Fields&... fields) {
  return (codec::Decode(reader, fields) && ...);
}

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
  state.rails.reclaims.emplace(name, std::move(cluster.reclaims));
  state.demand.clusters.emplace(name, std::move(cluster.demand));
  if (!cluster.hints.empty()) state.hints.sent.emplace(name, std::move(cluster.hints));
}

std::optional<SavedState> LoadFlat(std::string_view bytes) {
  SavedState s;
  std::map<std::string, FlatCluster, std::less<>> clusters;
  std::map<std::string, engine::DrainMean> earlier_drains;
  codec::Reader reader(bytes);
  const bool ok = DecodeAll(
      reader, s.config, s.lifecycle.epoch, s.cycle.number, s.rails.modes.shard, s.owned.managed, s.owned.domains,
      s.reconcile.forgotten, s.repairs, s.lifecycle.epoch_before, s.ledger.earlier_machines, s.ledger.earlier_short,
      earlier_drains, s.demand.awaited, s.machines.tracked, clusters, s.sessions.clusters, s.executor.operations,
      s.executor.retries, s.executor.unanswered, s.demand.latest_arrival, s.machines.moment, s.reconcile.cursor,
      s.reconcile.sweep_cursor, s.reconcile.sweep, s.reconcile.swept, s.reconcile.last_page, s.reconcile.stale_page,
      s.reconcile.page, s.reconcile.gone, s.reconcile.sweeping, s.reconcile.list_open, s.reconcile.list_failures,
      s.reconcile.next_list, s.reconcile.next_sweep, s.gets.next, s.gets.scheduled, s.gets.asked, s.executor.queue,
      s.executor.calling, s.executor.sequence, s.executor.tokens, s.executor.machine_of_token, s.calls.open,
      s.calls.last, s.lifecycle.started, s.lifecycle.ready, s.lifecycle.decided, s.cycle.due, s.cycle.starved,
      s.cycle.last, s.lifecycle.warm_until, s.rails.suppressed, s.inspection.waiting, s.lifecycle.stopped, s.hints.next,
      s.hints.last_cluster, s.reports.next, s.reports.open, s.lifecycle.coordinator_term, s.reports.acks, s.log.actions,
      s.log.logged, s.ledger.short_needs, s.ledger.machine_digests, s.ledger.drains, s.ledger.restored, s.memory);
  if (!ok || !reader.done()) return std::nullopt;
  if (!s.lifecycle.started) s.ledger.drains = std::move(earlier_drains);
  for (auto& [name, cluster] : clusters) AddCluster(s, name, std::move(cluster));
  return s;
}

}  // namespace

std::optional<SavedState> LoadState(std::string_view bytes) {
  if (bytes.empty() || bytes.front() != '\0') return LoadFlat(bytes);
  codec::Reader reader(bytes.substr(1));
  uint64_t layout = 0;
  SavedState state;
  if (!reader.Varint(layout) || layout != kLayout) return std::nullopt;
  if (!codec::Decode(reader, state) || !reader.done()) return std::nullopt;
  return state;
}

}  // namespace muster::shard
