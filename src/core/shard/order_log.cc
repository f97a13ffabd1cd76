#include "core/shard/order_log.h"

namespace muster::shard {
namespace {

const contract::OrderView& FindOrNone(const OrderLog::ByName& orders, const std::string& name) {
  static const contract::OrderView none;
  const auto found = orders.find(name);
  return found == orders.end() ? none : found->second;
}

}  // namespace

std::string_view OrderKindName(OrderKind kind) {
  switch (kind) {
    case OrderKind::kPause: return "pause";
    case OrderKind::kDryRun: return "dry-run";
    case OrderKind::kResume: return "resume";
    case OrderKind::kRepair: return "repair";
    case OrderKind::kForget: return "forget";
    case OrderKind::kRecall: return "recall";
    case OrderKind::kAccept: return "accept";
    case OrderKind::kDecommission: return "decommission";
  }
  return "?";
}

void OrderLog::RegisterRows(contract::RowReader& reader) {
  reader.On(kOrderRows, [this](const std::string& cluster, contract::OrderView order) {
    if (!cluster.empty()) clusters_.Add(cluster);
    state_.last.insert_or_assign(cluster, std::move(order));
  });
  reader.On(kForgetOrderRows, [this](const std::string& machine, contract::OrderView order) {
    state_.forgotten.insert_or_assign(machine, std::move(order));
  });
}

void OrderLog::Add(OrderKind kind, contract::OrderView order, const Status& refusal, StepContext& ctx) {
  order.kind = OrderKindName(kind);
  order.at = ctx.now.wall;
  ctx.Emit(AuditOrder{.order = order, .refusal = refusal, .cycle = ctx.cycle.number()});
  if (!refusal.ok()) return;
  if (kind == OrderKind::kForget) {
    ctx.Write(kForgetOrderRows.Put(order.machine_id, order));
    state_.forgotten.insert_or_assign(order.machine_id, order);
  }
  if (!order.machine_id.empty()) return;  // who paused a cluster is not to be hidden by an order for one machine
  ctx.Write(kOrderRows.Put(order.cluster_id, order));
  std::string cluster = order.cluster_id;
  state_.last.insert_or_assign(std::move(cluster), std::move(order));
}

void OrderLog::KeepForgotten(const std::set<std::string, std::less<>>& forgotten, StepContext& ctx) {
  std::erase_if(state_.forgotten, [&](const auto& order) {
    if (forgotten.contains(order.first)) return false;
    ctx.Write(kForgetOrderRows.Erase(order.first));
    return true;
  });
}

const contract::OrderView& OrderLog::LastOf(const std::string& cluster) const {
  return FindOrNone(state_.last, cluster);
}

const contract::OrderView& OrderLog::ForgottenBy(const std::string& machine) const {
  return FindOrNone(state_.forgotten, machine);
}

}  // namespace muster::shard
