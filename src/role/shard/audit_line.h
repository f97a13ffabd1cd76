// One line of the audit log: what was decided for a machine, or how it ended, as a flat JSON object.
#pragma once

#include <string>
#include <string_view>

#include "core/shard/types.h"

namespace muster::shard {

// Keys timestamp, cycle, kind, machine, cluster, reason, grace and outcome are those that existing tools read; ours
// come after them.
std::string AuditLine(const Audit& audit, std::string_view shard);

}  // namespace muster::shard
