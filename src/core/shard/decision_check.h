// DecisionCheck: for tests, with Config::verify_decisions: checks every decision against the engine's invariants
// (engine/invariants.h), from the world as the shard knows it.
#pragma once

#include "base/status.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/demand.h"
#include "core/shard/engine_view.h"
#include "core/shard/ledger.h"
#include "core/shard/machines.h"
#include "core/shard/rails.h"
#include "engine/types.h"

namespace muster::shard {

class DecisionCheck {
 public:
  // The parts it reads; all outlive it.
  struct Deps {
    const Config& config;
    EngineView& engine;
    const Clusters& clusters;
    const Machines& machines;
    const Demand& demand;
    const Ledger& ledger;
    const Rails& rails;
  };

  explicit DecisionCheck(const Deps& deps) : deps_(deps) {}

  void BeforeDecision(bool counts_ages);
  void AfterDecision();
  // OK, or the first invariant that a decision broke.
  const Status& verdict() const { return verdict_; }

 private:
  const Deps deps_;
  engine::World world_;
  engine::Memory memory_;
  Status verdict_;
};

}  // namespace muster::shard
