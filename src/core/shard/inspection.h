// Inspection: answers what operators ask: needs, machines, clusters and why. It only reads.
//
// Questions about a decision wait for the next cycle, which then explains itself.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/shard.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/demand.h"
#include "core/shard/executor.h"
#include "core/shard/ledger.h"
#include "core/shard/lifecycle.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/order_log.h"
#include "core/shard/rails.h"
#include "core/shard/reconcile.h"
#include "core/shard/repairs.h"
#include "core/shard/sessions.h"
#include "core/shard/step_context.h"
#include "engine/types.h"

namespace muster::shard {

class Inspection {
 public:
  struct State {
    std::vector<Asked> waiting;  // for a cycle that explains

    MUSTER_FIELDS(State, waiting)
  };
  // The parts it reads; all outlive it.
  struct Deps {
    const Config& config;
    const Lifecycle& lifecycle;
    const Clusters& clusters;
    const Machines& machines;
    const Losses& losses;
    const Sessions& sessions;
    const Rails& rails;
    const Demand& demand;
    const Ledger& ledger;
    const Executor& executor;
    const Repairs& repairs;
    const Reconcile& reconcile;
    const OrderLog& orders;
  };

  explicit Inspection(const Deps& deps, State state) : deps_(deps), state_(std::move(state)) {}

  // A question about a decision: answered now if nothing was decided yet, else after the next cycle.
  void Ask(const Asked& asked, StepContext& ctx);
  contract::ClustersListed ListClusters(Now now) const;
  contract::ForgottenListed ListForgotten() const;
  // Whether the next cycle must explain itself.
  bool waits() const { return !state_.waiting.empty(); }
  // After a cycle that explained itself.
  void AnswerWaiting(const engine::Decision& decision, StepContext& ctx);

  const State& state() const { return state_; }

 private:
  // `decision` may be null: nothing was decided yet.
  Result<contract::ShardReply> Reply(const contract::ShardRequest& request, const engine::Decision* decision,
                                     StepContext& ctx) const;
  contract::NeedsInspected InspectNeeds(const contract::InspectNeeds& query, const engine::Decision* decision,
                                        StepContext& ctx) const;
  contract::MachinesListed ListMachines(const contract::ListMachines& query, const engine::Decision* decision,
                                        Now now) const;
  // What the shard knows of the machine that the engine does not.
  std::optional<model::Reason> OwnReason(const std::string& id) const;
  int64_t LackingOf(const std::string& cluster) const;
  PutOff PutOffOf(const std::string& cluster) const;
  void ExplainNeed(const engine::NeedVerdict& verdict, std::vector<std::string>& lines) const;
  Result<contract::ShardReply> Explain(const contract::Explain& query, const engine::Decision& decision,
                                       StepContext& ctx) const;
  Result<contract::ShardReply> ExplainMachine(const std::string& id, const engine::Decision& decision,
                                              StepContext& ctx) const;

  const Deps deps_;
  State state_;
};

}  // namespace muster::shard
