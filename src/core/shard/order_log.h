// OrderLog: which orders were given, by whom, why and when. Every order, also a refused one, is a line of the audit
// log; the last that was taken of each cluster is kept for `muster fleet clusters`, and the one by which a machine was
// forgotten for `muster fleet machines --forgotten`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/fields.h"
#include "base/status.h"
#include "contract/orders.h"
#include "contract/tables.h"
#include "core/shard/clusters.h"
#include "core/shard/step_context.h"

namespace muster::shard {

enum class OrderKind : uint8_t { kPause, kDryRun, kResume, kRepair, kForget, kRecall, kAccept, kDecommission };
std::string_view OrderKindName(OrderKind kind);  // "pause", "dry-run", ... as in contract::OrderView

inline constexpr contract::Table<std::string, contract::OrderView> kOrderRows{"order/"};  // cluster; empty: the shard
inline constexpr contract::Table<std::string, contract::OrderView> kForgetOrderRows{"forget-order/"};  // machine

class OrderLog {
 public:
  using ByName = std::map<std::string, contract::OrderView, std::less<>>;
  struct State {
    ByName last;       // by cluster, of its machines too; empty: the shard
    ByName forgotten;  // by machine

    MUSTER_FIELDS(State, last, forgotten)
  };

  // `clusters` outlives this.
  OrderLog(Clusters& clusters, State state) : clusters_(clusters), state_(std::move(state)) {}
  void RegisterRows(contract::RowReader& reader);

  // An order was taken, or refused for the reason that `refusal` gives. Sets its kind and time.
  void Add(OrderKind kind, contract::OrderView order, const Status& refusal, StepContext& ctx);
  // Drops the orders of machines that are no longer forgotten.
  void KeepForgotten(const std::set<std::string, std::less<>>& forgotten, StepContext& ctx);

  // The cluster is forgotten: so is who gave it orders. The audit log has them.
  void Forget(const std::string& cluster, StepContext& ctx);

  // The last order of the cluster, or of the shard if the name is empty; none: an order without a kind.
  const contract::OrderView& LastOf(const std::string& cluster) const;
  // The order by which the machine was forgotten; none: one without a kind.
  const contract::OrderView& ForgottenBy(const std::string& machine) const;

  const State& state() const { return state_; }

 private:
  Clusters& clusters_;
  State state_;
};

}  // namespace muster::shard
