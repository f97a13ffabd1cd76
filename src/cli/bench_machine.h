// The time from an apply to a process that runs where a machine must be made for it, step by step, through a `muster
// up` of its own: scheduler, operator, shard and a provider whose machines are agents, as people start them.
//
// Thread-safety: functions of their arguments; one at a time.
#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "base/status.h"

namespace muster::cli {

// Milliseconds since the call of apply. A step may be over before the one above it is seen.
struct MachineSteps {
  double pending = 0;     // a watch of the scheduler shows the workload
  double need = 0;        // the shard has the need, and decides to buy for it
  double created = 0;     // the provider has made the machine
  double configured = 0;  // the shard knows the machine as Configured
  double joined = 0;      // a watch of the scheduler shows its node as Ready
  double running = 0;     // a watch of the scheduler shows the workload as Running
};

// One workload after the other, each as large as the smallest machine, so that each takes one of its own. A first one
// is not counted. The processes and the directory are gone afterwards.
Result<std::vector<MachineSteps>> MeasureMachines(size_t samples, const std::stop_token& stop);

}  // namespace muster::cli
