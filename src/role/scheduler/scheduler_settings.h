// Everything that an operator can set of a scheduler. docs/operating-scheduler.md has the table.
#pragma once

#include "host/settings.h"
#include "role/scheduler/scheduler_role.h"

namespace muster::scheduler {

// Declares the settings; their values go to `options`, which outlives `settings`.
void DeclareSettings(host::Settings& settings, RoleOptions& options);

}  // namespace muster::scheduler
