// What the processes of a session use, from /proc: where a node has no cgroups.
#pragma once

#include <sys/types.h>

#include "runtime/cgroups.h"

namespace muster::runtime {

// Of all processes of the session together; processes that have ended no longer count. Looks at every process of the
// host.
CgroupUsage UsageOfSession(pid_t session);
// The session of a process; -1 if there is no such process.
pid_t SessionOf(pid_t process);

}  // namespace muster::runtime
