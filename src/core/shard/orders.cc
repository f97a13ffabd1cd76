// What operators ask and order. Questions go to the parts that know; an order is checked here and given to its part.
#include <fmt/format.h>

#include <utility>

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

bool NeedsMachines(const contract::ShardRequest& request) {
  return !std::holds_alternative<contract::SetActuation>(request) &&
         !std::holds_alternative<contract::ListClusters>(request) &&
         !std::holds_alternative<contract::ListActions>(request);
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
                 [&](const contract::ListClusters&) { reply(p.inspection.ListClusters(ctx.now)); },
                 [&](const contract::SetActuation& order) {
                   if (order.mode == ActuationMode::kUnspecified || order.mode > ActuationMode::kPaused) {
                     return refuse(Status(Code::kInvalidArgument, "mode: give active, dry-run or paused"));
                   }
                   reply(Apply(order, ctx));
                 },
                 [&](const contract::RepairMachine& order) { done(Apply(order, ctx)); },
                 [&](const contract::ForgetMachine& order) { done(Apply(order, ctx)); },
                 [&](const auto&) { p.inspection.Ask(asked, ctx); },
             },
             asked.body);
}

contract::ActuationSet Core::Apply(const contract::SetActuation& order, StepContext& ctx) {
  Parts& p = *parts_;
  const ActuationMode before = p.rails.modes().Get(order.cluster_id);
  p.rails.SetMode(order.cluster_id, order.mode, ctx);
  p.trial.Request();
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

}  // namespace muster::shard
