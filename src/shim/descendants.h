// Ends everything that a workload has started and that still runs when its main process has ended or must end.
//
// The shim is the reaper of its descendants: a process whose parent has ended becomes the shim's child, also one that
// has left the session. Killing the shim's children until there are none therefore ends all of them.
#pragma once

#include <sys/types.h>

namespace muster::shim {

// Sends SIGKILL to the process group `group` and to all children of this process.
void KillDescendants(pid_t group);

}  // namespace muster::shim
