// One line of the audit log, as a flat JSON object: what was decided for a machine, or how it ended, or an order.
#pragma once

#include <string>
#include <string_view>

#include "core/shard/types.h"

namespace muster::shard {

// Keys timestamp, cycle, kind, machine, cluster, reason, grace and outcome are those that existing tools read; ours
// come after them.
std::string AuditLine(const Audit& audit, std::string_view shard);
// An order: kind is "order." and its name, outcome "taken" or "refused", and ours are who and why.
std::string AuditLine(const AuditOrder& audit, std::string_view shard);

}  // namespace muster::shard
