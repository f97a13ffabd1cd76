// Child: the process of a workload, from fork to exec.
//
// Before the workload's program runs, its process has: joined its cgroups; a session and a process group of its own;
// the workload's user and group and no others; its working directory; no descriptor but its three streams; default
// signals; no way to gain privileges (no_new_privs); and it dies with the shim. Of the environment it has what the
// launch gives.
//
// Thread-safety: the caller has one thread.
#pragma once

#include <sys/types.h>

#include <expected>
#include <functional>
#include <string>

#include "shim/launch.h"

namespace muster::shim {

struct Child {
  pid_t pid = -1;
  int out = -1;  // read ends of its output, non-blocking
  int err = -1;
};

// What could not be done, as a sentence, and the exit code a shell gives for it: 127 if there is no such program, 126
// for everything else.
struct StartError {
  std::string message;
  int code = 126;
};

// Starts the process of a launch and waits until its program runs. `before_exec` is called with the process id while
// the process waits; an errno that it returns ends the process before its program has run.
std::expected<Child, StartError> StartChild(const std::string& directory, const Launch& launch,
                                            const std::function<int(pid_t)>& before_exec);

}  // namespace muster::shim
