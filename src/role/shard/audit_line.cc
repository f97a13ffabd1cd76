#include "role/shard/audit_line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "host/json_object.h"
#include "model/reason.h"

namespace muster::shard {
namespace {

std::string Rfc3339(WallTime time) {
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(millis);
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(seconds.time_since_epoch().count()), (millis - seconds).count());
}

}  // namespace

std::string AuditLine(const Audit& audit, std::string_view shard) {
  const contract::ActionView& action = audit.action;
  host::JsonObject json;
  json.Add("timestamp", Rfc3339(action.decided + audit.took))
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
