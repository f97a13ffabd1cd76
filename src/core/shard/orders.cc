// What operators ask and order. Questions go to the parts that know; an order is checked here and given to its part.
#include <fmt/format.h>

#include <utility>

#include "core/shard/narrow.h"
#include "core/shard/parts.h"
#include "core/shard/shard.h"
#include "core/shard/step_context.h"
#include "model/names.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
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
  if (parts.clusters.names().contains(cluster)) return {};
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

}  // namespace

void Core::OnAsked(const Asked& asked, StepContext& ctx) {
  Parts& p = *parts_;
  const auto reply = [&](contract::ShardReply body) {
    ctx.Emit(Answer{.request = asked.request, .status = {}, .reply = std::move(body)});
  };
  const auto refuse = [&](Status status) {
    ctx.Emit(Answer{.request = asked.request, .status = std::move(status), .reply = std::nullopt});
  };
  const auto done = [&](Status status) { status.ok() ? reply(contract::OrderTaken{}) : refuse(std::move(status)); };
  if (!p.lifecycle.ready() && NeedsMachines(asked.body)) {
    return refuse(Status(Code::kUnavailable, "the shard has not seen its machines yet; is the provider up?"));
  }
  std::visit(Overloaded{
                 [&](const contract::ListActions& query) { reply(p.log.List(query)); },
                 [&](const contract::ListClusters&) { reply(p.inspection.ListClusters()); },
                 [&](const contract::SetActuation& order) {
                   if (order.mode == ActuationMode::kUnspecified || order.mode > ActuationMode::kPaused) {
                     return refuse(Status(Code::kInvalidArgument, "mode: give active, dry-run or paused"));
                   }
                   reply(Apply(order, ctx));
                 },
                 [&](const contract::RepairMachine& order) { done(Apply(order, ctx)); },
                 [&](const contract::ForgetMachine& order) { done(Apply(order, ctx)); },
                 [&](const contract::RecallMachine& order) { done(Apply(order, ctx)); },
                 [&](const contract::DecommissionCluster& order) { done(Apply(order, ctx)); },
                 [&](const contract::AcceptLosses& order) {
                   auto accepted = Apply(order, ctx);
                   accepted ? reply(*accepted) : refuse(accepted.error());
                 },
                 [&](const contract::ListForgotten&) { reply(p.inspection.ListForgotten()); },
                 [&](const auto&) { p.inspection.Ask(asked, ctx); },
             },
             asked.body);
}

contract::ActuationSet Core::Apply(const contract::SetActuation& order, StepContext& ctx) {
  Parts& p = *parts_;
  const ActuationMode before = p.rails.modes().Get(order.cluster_id);
  p.rails.SetMode(order.cluster_id, order.mode, ctx);
  if (order.cluster_id.empty() && order.mode == ActuationMode::kActive) p.executor.OnResumed();
  if (!order.cluster_id.empty() && order.mode == ActuationMode::kActive) p.clusters.Reinstate(order.cluster_id, ctx);
  ctx.Note(model::Reason::kModeSet, order.cluster_id.empty() ? p.config.id : order.cluster_id,
           fmt::format("{}: {}", contract::ActuationModeName(order.mode), order.reason));
  p.cycle.Request();
  return {.previous = before};
}

Status Core::Apply(const contract::RepairMachine& order, StepContext& ctx) {
  Parts& p = *parts_;
  MUSTER_RETURN_IF_ERROR(CheckFailed(p, order.machine_id, "repaired"));
  p.repairs.Begin(*p.machines.Find(order.machine_id)->record, model::Reason::kRepairByHand, p.executor, ctx);
  return {};
}

Status Core::Apply(const contract::ForgetMachine& order, StepContext& ctx) {
  Parts& p = *parts_;
  MUSTER_RETURN_IF_ERROR(CheckFailed(p, order.machine_id, "forgotten"));
  p.reconcile.Forget(order.machine_id, ctx);
  return {};
}

Status Core::Apply(const contract::RecallMachine& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (!p.reconcile.state().forgotten.contains(order.machine_id)) {
    return {Code::kNotFound, fmt::format("machine {} is not forgotten", model::Quoted(order.machine_id))};
  }
  p.reconcile.Recall(order.machine_id, ctx);
  return {};
}

Result<contract::LossesAccepted> Core::Apply(const contract::AcceptLosses& order, StepContext& ctx) {
  Parts& p = *parts_;
  if (!order.cluster_id.empty()) {
    if (Status known = CheckKnown(p, order.cluster_id); !known.ok()) return std::unexpected(std::move(known));
  }
  const size_t missing = p.reconcile.AcceptLosses(order.cluster_id, ctx);
  const size_t failed = p.repairs.AllowNow(order.cluster_id, p.machines, ctx);
  p.cycle.Request();
  return contract::LossesAccepted{.missing = Narrow(static_cast<int64_t>(missing)),
                                  .failed = Narrow(static_cast<int64_t>(failed))};
}

Status Core::Apply(const contract::DecommissionCluster& order, StepContext& ctx) {
  Parts& p = *parts_;
  MUSTER_RETURN_IF_ERROR(CheckKnown(p, order.cluster_id));
  if (p.sessions.Has(order.cluster_id)) {
    return {Code::kAborted, fmt::format("cluster {} has a session; a cluster that is connected is not gone: stop its "
                                        "operator first",
                                        model::Quoted(order.cluster_id))};
  }
  p.demand.End(order.cluster_id, ctx);
  p.clusters.Decommission(order.cluster_id, ctx);
  return {};
}

}  // namespace muster::shard
