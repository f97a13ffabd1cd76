// The contract of an agent as questions to a running one, ours or anybody's: persys.agent.v1, and muster.v1.Agent where
// it is served. Each check is one sentence of docs/agent.md, by the same name.
//
// Checks of reading and of refusals leave nothing behind. The others take workloads through a whole life and delete
// them; they are run only when that is allowed. An agent that has joined a scheduler refuses those, because they have
// no stamp: check one that stands alone.
//
// Thread-safety: one run at a time per agent.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/time.h"
#include "provider/conformance.h"
#include "rpc/agent_probe.h"

namespace muster::cli {

struct AgentConformanceOptions {
  bool use_workloads = false;
  std::string image;         // of a container with /bin/sh; empty: the workloads are processes, through muster.v1.Agent
  std::string run_id;        // makes the names of workloads unlike those of every other run
  Duration patience = 2min;  // for one workload to come into a state
  Duration poll_every = 100ms;
};

// Every check in order; `seen` hears of each as it is done.
std::vector<provider::CheckResult> RunAgentConformance(
    rpc::AgentProbe& agent, const AgentConformanceOptions& options, const Clock& clock,
    const std::function<void(const provider::CheckResult&)>& seen = {});

// Name and rule of every check, in order.
std::vector<std::pair<std::string_view, std::string_view>> AgentConformanceChecks();

}  // namespace muster::cli
