#include "core/shard/order_log.h"

#include <algorithm>
#include <array>

namespace muster::shard {
namespace {

const contract::OrderView& FindOrNone(const OrderLog::ByName& orders, const std::string& name) {
  static const contract::OrderView none;
  const auto found = orders.find(name);
  return found == orders.end() ? none : found->second;
}

// Whether the order holds until another ends it.
bool Lasts(const contract::OrderView& order) {
  using enum OrderKind;
  return std::ranges::any_of(std::array{kPause, kDryRun, kDecommission},
                             [&](OrderKind kind) { return order.kind == OrderKindName(kind); });
}

// Whether the order ends one that lasts, or takes its place.
bool SetsActuation(OrderKind kind) {
  using enum OrderKind;
  return kind == kPause || kind == kDryRun || kind == kResume || kind == kDecommission;
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
  // Who paused a cluster is not to be hidden by what changes nothing about that.
  if (!SetsActuation(kind) && Lasts(LastOf(order.cluster_id))) return;
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

void OrderLog::Forget(const std::string& cluster, StepContext& ctx) {
  if (state_.last.erase(cluster) > 0) ctx.Write(kOrderRows.Erase(cluster));
}

const contract::OrderView& OrderLog::LastOf(const std::string& cluster) const {
  return FindOrNone(state_.last, cluster);
}

const contract::OrderView& OrderLog::ForgottenBy(const std::string& machine) const {
  return FindOrNone(state_.forgotten, machine);
}

}  // namespace muster::shard
