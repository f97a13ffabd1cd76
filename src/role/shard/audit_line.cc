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

}  // namespace muster::shard
