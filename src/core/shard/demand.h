// Demand: roll-ups. A roll-up is a cluster's whole demand; it is accepted, held or refused, and the last accepted one
// is in force.
//
// Invariant: rows, came and digests of a cluster are about the same needs in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/session.h"
#include "contract/tables.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/engine_view.h"
#include "core/shard/ledger.h"
#include "core/shard/rails.h"
#include "core/shard/sessions.h"
#include "core/shard/step_context.h"
#include "engine/types.h"
#include "model/need.h"
#include "model/penalty.h"

namespace muster::shard {

struct ClusterDemand {
  bool accepted = false;  // a demand is in force
  bool gate_open = false;
  std::string last_refusal;
  std::vector<model::Need> rows;                                     // of the demand in force, with their arrivals
  std::vector<uint64_t> came;                                        // digests of the rows as they came
  std::vector<uint64_t> digests;                                     // and as they are
  std::map<std::pair<std::string, std::string>, WallTime> arrivals;  // durable; by fingerprint and group

  MUSTER_FIELDS(ClusterDemand, accepted, gate_open, last_refusal, rows, came, digests, arrivals)
};

inline constexpr contract::Table<engine::NeedKey, WallTime> kArrivalRows{"arrival/"};

class Demand {
 public:
  struct State {
    std::map<std::string, ClusterDemand, std::less<>> clusters;
    std::set<std::string, std::less<>> awaited;  // clusters whose demand an earlier life knew
    WallTime latest_arrival;                     // no arrival is stamped earlier
    // By cluster and fingerprint: when more was asked for, until a machine serves it.
    std::map<std::string, std::map<std::string, MonoTime>, std::less<>> wanted_since;

    MUSTER_FIELDS(State, clusters, awaited, latest_arrival, wanted_since)
  };
  // The parts it works with; all outlive it.
  struct Deps {
    const Config& config;
    EngineView& engine;
    Clusters& clusters;
    Sessions& sessions;
    Rails& rails;
    Ledger& ledger;
  };

  explicit Demand(const Deps& deps, State state) : deps_(deps), state_(std::move(state)) {}
  // After a load: shows the engine the demand in force.
  void Rebuild();
  void RegisterRows(contract::RowReader& reader);

  // A roll-up came in the cluster's session.
  void OnRollup(const std::string& cluster, const contract::Rollup& rollup, StepContext& ctx);
  void Refuse(const std::string& cluster, std::string why, StepContext& ctx);
  // The cluster is gone, says an operator: an empty demand is in force, which no quarantine holds.
  void End(const std::string& cluster, StepContext& ctx);

  // Those that ask for something, or that an earlier life knew to do so.
  void AddClusters(Clusters::Names& used) const;
  // The cluster asks for nothing.
  void Forget(const std::string& cluster);

  // Whether every cluster that an earlier life knew has an accepted demand.
  bool AllHeard() const { return state_.awaited.empty(); }
  bool HasAccepted(const std::string& cluster) const;
  // What is known of the cluster's demand; nothing if it has sent none.
  const ClusterDemand& Of(const std::string& cluster) const;
  const std::map<std::string, ClusterDemand, std::less<>>& clusters() const { return state_.clusters; }

  // The machine serves its cluster from now on: says how long the demand for it has been known.
  void OnConfigured(const model::Machine& machine, StepContext& ctx);

  // After a decision: counts needs and machines for metrics, which are read every few seconds at most.
  void CountMachines(MonoTime now);
  const std::map<model::PenaltyBucket, uint64_t>& needs_by_penalty() const { return needs_by_penalty_; }
  const std::map<model::PenaltyBucket, uint64_t>& machines_by_penalty() const { return machines_by_penalty_; }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  // Which limit the roll-up goes beyond; empty: none.
  std::string BeyondLimit(const contract::NeedRows& rows) const;
  void Accept(const std::string& cluster, const contract::Rollup& rollup, Baseline size, StepContext& ctx);
  void StampArrivals(const std::string& cluster, ClusterDemand& demand, const contract::NeedRows& rows,
                     StepContext& ctx);

  const Deps deps_;
  State state_;
  std::map<model::PenaltyBucket, uint64_t> needs_by_penalty_;
  std::map<model::PenaltyBucket, uint64_t> machines_by_penalty_;
  MonoTime next_count_;
};

}  // namespace muster::shard
