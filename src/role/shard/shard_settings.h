// Everything that an operator can set of a shard. docs/operating-shard.md has the table.
#pragma once

#include "host/settings.h"
#include "role/shard/shard_role.h"

namespace muster::shard {

// Declares the settings; their values go to `options`, which outlives `settings`.
void DeclareSettings(host::Settings& settings, RoleOptions& options);

}  // namespace muster::shard
