// What operators ask and order. Questions go to the parts that know; an order is checked here, given to its part, and
// logged with who gave it and why, also when it is refused.
#include <fmt/format.h>

#include <utility>

#include "base/overloaded.h"
#include "core/shard/narrow.h"
#include "core/shard/parts.h"
#include "core/shard/shard.h"
#include "core/shard/step_context.h"
#include "model/names.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;

template <class Request>
concept IsOrder = requires(const Request& request) {
  request.who;
  request.reason;
};

// Whether the machine is Failed and has no operation; `what` is what can be done with such a machine.
Status CheckFailed(const Parts& parts, const std::string& id, std::string_view what) {
  const Tracked* tracked = parts.machines.Find(id);
  if (tracked == nullptr) {
    return {Code::kNotFound, fmt::format("this shard has no machine {}", model::Quoted(id))};
  }
  if (tracked->record->state != model::MachineState::kFailed || parts.executor.operations().contains(id)) {
    return {Code::kAborted, fmt::format("machine {} is {}; only one that is Failed can be {}", model::Quoted(id),
                                        model::StateName(parts.machines.StateForEngine(id, *tracked)), what)};
  }
  return {};
}

// An order for a cluster that does not exist is a mistyped name.
Status CheckKnown(const Parts& parts, const std::string& cluster) {
  if (parts.clusters.names().contains(cluster) || parts.clusters.IsDecommissioned(cluster)) return {};
  return {Code::kNotFound, fmt::format("this shard does not know a cluster {}; `muster fleet clusters` lists those it "
                                       "knows",
                                       model::Quoted(cluster))};
}

bool NeedsMachines(const contract::ShardRequest& request) {
  return !std::holds_alternative<contract::SetActuation>(request) &&
         !std::holds_alternative<contract::ListClusters>(request) &&
         !std::holds_alternative<contract::ListActions>(request) &&
         !std::holds_alternative<contract::ListForgotten>(request);
}

OrderKind KindOf(const contract::SetActuation& order) {
  switch (order.mode) {
    case ActuationMode::kPaused: return OrderKind::kPause;
    case ActuationMode::kDryRun: return OrderKind::kDryRun;
    default: return OrderKind::kResume;
  }
}
OrderKind KindOf(const contract::RepairMachine&) { return OrderKind::kRepair; }
OrderKind KindOf(const contract::ForgetMachine&) { return OrderKind::kForget; }
OrderKind KindOf(const contract::RecallMachine&) { return OrderKind::kRecall; }
OrderKind KindOf(const contract::AcceptLosses&) { return OrderKind::kAccept; }
OrderKind KindOf(const contract::DecommissionCluster&) { return OrderKind::kDecommission; }

// As it is logged. Before the order is carried out, which may drop the machine.
template <IsOrder Order>
contract::OrderView ViewOf(const Order& order, const Parts& parts) {
  contract::OrderView view{.who = order.who, .reason = order.reason};
  if constexpr (requires { order.cluster_id; }) {
    view.cluster_id = order.cluster_id;
  } else {
    view.machine_id = order.machine_id;
    const Tracked* tracked = parts.machines.Find(order.machine_id);
    if (tracked != nullptr) view.cluster_id = parts.repairs.ClusterOf(*tracked->record);
  }
  return view;
}

}  // namespace

void Core::OnAsked(const Asked& asked, StepContext& ctx) {
  Parts& p = *parts_;
  const auto answer = [&](Result<contract::ShardReply> reply) {
    Answer given{.request = asked.request, .status = reply ? Status() : reply.error(), .reply = std::nullopt};
    if (reply) given.reply = *std::move(reply);
    ctx.Emit(std::move(given));
  };
  if (!p.lifecycle.ready() && NeedsMachines(asked.body)) {
    const Status refusal(Code::kUnavailable, "the shard has not seen its machines yet; is the provider up?");
    std::visit(Overloaded{
                   [&](const IsOrder auto& order) { p.orders.Add(KindOf(order), ViewOf(order, p), refusal, ctx); },
                   [](const auto&) {},
               },
               asked.body);
    return answer(std::unexpected(refusal));
  }
  std::visit(Overloaded{
                 [&](const contract::ListActions& query) { answer(p.log.List(query)); },
                 [&](const contract::ListClusters&) { answer(p.inspection.ListClusters(ctx.now)); },
                 [&](const contract::ListForgotten&) { answer(p.inspection.ListForgotten()); },
                 [&](const IsOrder auto& order) {
                   contract::OrderView view = ViewOf(order, p);
                   Result<contract::ShardReply> reply = Apply(order, ctx);
                   p.orders.Add(KindOf(order), std::move(view), reply ? Status() : reply.error(), ctx);
                   p.orders.KeepForgotten(p.reconcile.state().forgotten, ctx);
                   answer(std::move(reply));
                 },
                 [&](const auto&) { p.inspection.Ask(asked, ctx); },
             },
             asked.body);
}

Result<contract::ShardReply> Core::Apply(const contract::SetActuation& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (order.mode == ActuationMode::kUnspecified || order.mode > ActuationMode::kPaused) {
    return Error(Code::kInvalidArgument, "mode: give active, dry-run or paused");
  }
  if (Status known = order.cluster_id.empty() ? Status() : CheckKnown(p, order.cluster_id); !known.ok()) {
    return std::unexpected(std::move(known));
  }
  const ActuationMode before = p.rails.modes().Get(order.cluster_id);
  p.rails.SetMode(order.cluster_id, order.mode, ctx);
  if (order.cluster_id.empty() && order.mode == ActuationMode::kActive) p.machines.Unfence();
  if (!order.cluster_id.empty() && order.mode == ActuationMode::kActive) p.clusters.Reinstate(order.cluster_id, ctx);
  p.trial.Request();
  ctx.Note(model::Reason::kModeSet, order.cluster_id.empty() ? p.config.id : order.cluster_id,
           fmt::format("{} by {}: {}", contract::ActuationModeName(order.mode), order.who, order.reason));
  p.cycle.Request();
  return contract::ActuationSet{.previous = before};
}

Result<contract::ShardReply> Core::Apply(const contract::RepairMachine& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (Status check = CheckFailed(p, order.machine_id, "repaired"); !check.ok())
    return std::unexpected(std::move(check));
  p.repairs.Begin(*p.machines.Find(order.machine_id)->record, model::Reason::kRepairByHand, p.executor, ctx);
  return contract::OrderTaken{};
}

Result<contract::ShardReply> Core::Apply(const contract::ForgetMachine& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (Status check = CheckFailed(p, order.machine_id, "forgotten"); !check.ok())
    return std::unexpected(std::move(check));
  p.reconcile.Forget(order.machine_id, ctx);
  return contract::OrderTaken{};
}

Result<contract::ShardReply> Core::Apply(const contract::RecallMachine& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (!p.reconcile.state().forgotten.contains(order.machine_id)) {
    return Error(Code::kNotFound, fmt::format("machine {} is not forgotten; `muster fleet machines --forgotten` lists "
                                              "those that are",
                                              model::Quoted(order.machine_id)));
  }
  p.reconcile.Recall(order.machine_id, ctx);
  return contract::OrderTaken{};
}

Result<contract::ShardReply> Core::Apply(const contract::AcceptLosses& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (Status known = order.cluster_id.empty() ? Status() : CheckKnown(p, order.cluster_id); !known.ok()) {
    return std::unexpected(std::move(known));
  }
  const size_t missing = p.reconcile.AcceptLosses(order.cluster_id, ctx);
  p.losses.Recount(ctx);  // also if the shard is killed before its next cycle
  const size_t failed = p.repairs.AllowNow(order.cluster_id, p.machines, ctx);
  p.cycle.Request();
  return contract::LossesAccepted{.missing = Narrow(static_cast<int64_t>(missing)),
                                  .failed = Narrow(static_cast<int64_t>(failed))};
}

Result<contract::ShardReply> Core::Apply(const contract::DecommissionCluster& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (Status check = CheckKnown(p, order.cluster_id); !check.ok()) return std::unexpected(std::move(check));
  if (p.sessions.Has(order.cluster_id)) {
    return Error(Code::kAborted, fmt::format("cluster {} has a session; a cluster that is connected is not gone: stop "
                                             "its operator first",
                                             model::Quoted(order.cluster_id)));
  }
  p.rails.SetMode(order.cluster_id, ActuationMode::kActive, ctx);  // a pause would keep what is to be given back
  p.demand.End(order.cluster_id, ctx);
  p.clusters.Decommission(order.cluster_id, ctx);
  return contract::OrderTaken{};
}

}  // namespace muster::shard
