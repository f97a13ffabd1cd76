#include "role/shard/audit_line.h"

#include "host/json_object.h"
#include "model/reason.h"
#include "model/text_scalars.h"

namespace muster::shard {

std::string AuditLine(const Audit& audit, std::string_view shard) {
  const contract::ActionView& action = audit.action;
  host::JsonObject json;
  json.Add("timestamp", model::FormatWallTime(action.decided + audit.took))
      .Add("cycle", action.cycle)
      .Add("kind", action.kind)
      .Add("machine", action.machine_id)
      .Add("cluster", action.cluster_id)
      .Add("reason", model::ReasonName(action.reason))
      .Add("grace", action.grace_seconds)
      .Add("outcome", action.outcome)
      .Add("shard", shard)
      .Add("need", action.need_fingerprint)
      .Add("group", action.need_group)
      .Add("error", action.error)
      .Add("tookSeconds", std::chrono::duration<double>(audit.took).count());
  return json.Take();
}

std::string AuditLine(const AuditOrder& audit, std::string_view shard) {
  const contract::OrderView& order = audit.order;
  host::JsonObject json;
  json.Add("timestamp", model::FormatWallTime(order.at))
      .Add("cycle", audit.cycle)
      .Add("kind", "order." + order.kind)
      .Add("machine", order.machine_id)
      .Add("cluster", order.cluster_id)
      .Add("reason", "order")
      .Add("grace", int64_t{0})
      .Add("outcome", audit.refusal.ok() ? "taken" : "refused")
      .Add("shard", shard)
      .Add("who", order.who)
      .Add("why", order.reason)
      .Add("error", audit.refusal.message());
  return json.Take();
}

}  // namespace muster::shard
