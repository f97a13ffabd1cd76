// Shim: one run of one process workload, from the launch to the exit record.
//
// It reads the launch of its directory, starts the process, writes its output to the log files, and stops it when it is
// told: it sends SIGTERM to the workload's process group and, after the grace, SIGKILL to everything the workload has
// started. The agent tells it with StopSignal() (launch.h), an operator with SIGTERM, which means the grace of the
// launch. A later request can shorten the grace and never lengthens it. When the main process has ended, what it left
// behind is killed.
//
// Invariants:
//   1. A launch is run at most once (launch.h).
//   2. The exit record is written when nothing of the workload runs any more, and the log is complete by then.
//   3. The workload holds no descriptor of the shim, and the shim none of the agent.
//
// Thread-safety: the process has one thread.
#pragma once

#include <string>

namespace muster::shim {

// Runs the launch of `directory`; returns what the process is to exit with: 0 if it was run or needed no run, 1 if the
// directory has no readable launch or another shim has it.
int Run(const std::string& directory);

}  // namespace muster::shim
