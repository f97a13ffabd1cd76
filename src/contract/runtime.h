// What an agent's core and the runtimes of its node say to each other. The core decides what runs; a runtime starts,
// stops and removes, and reports what it has.
//
// A run is one launch of a workload. The core numbers the launches of a workload and makes the number durable before it
// asks for the launch, so that a launch that is asked for again after a crash is the same one: a runtime that has seen
// the number starts nothing and answers with the run. Runs outlive the agent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/agent.h"
#include "model/node.h"
#include "model/workload_template.h"

namespace muster::contract {

// The newest launch of a workload as its runtime knows it.
struct Run {
  std::string workload;
  uint64_t launch = 0;
  std::string revision;  // of that launch
  bool running = false;  // false: it has ended
  WallTime started_at;
  // Of a run that has ended:
  WallTime ended_at;
  std::optional<int32_t> exit_code;  // 128 + N for signal N; absent: not known
  bool oom_killed = false;
  std::string message;                          // how it ended, or why it could not be started
  std::string output;                           // the last lines it wrote, if it ended badly
  std::map<std::string, std::string> metadata;  // of the runtime: "process.pid", "limits"

  bool operator==(const Run&) const = default;
  MUSTER_FIELDS(Run, workload, launch, revision, running, started_at, ended_at, exit_code, oom_killed, message, output,
                metadata)
};

// --- requests; each is safe to repeat

// Done when it runs or could not be started, which is a run that has ended. An error means that nothing was started,
// but for DEADLINE_EXCEEDED and UNAVAILABLE, after which it may run.
struct StartRun {
  std::string workload;
  uint64_t launch = 0;
  std::string revision;
  model::WorkloadTemplate spec;  // to a runtime: secrets are among the variables, `secret_env` has their names
  std::map<std::string, std::string> labels;
  std::string tenant;  // empty: none

  MUSTER_FIELDS(StartRun, workload, launch, revision, spec, labels, tenant)
};
// Done when nothing of it runs: it is asked to end and, after the grace, killed.
struct StopRun {
  std::string workload;
  Duration grace{};

  MUSTER_FIELDS(StopRun, workload, grace)
};
// Its files, logs and limits go; whatever of it runs is killed. Done when nothing is left.
struct RemoveRun {
  std::string workload;

  MUSTER_FIELDS(RemoveRun, workload)
};
// The runs of all workloads that the runtime has. A run that an earlier agent started is watched from here on.
struct ListRuns {
  MUSTER_FIELDS(ListRuns)
};

using RuntimeRequest = std::variant<StartRun, StopRun, RemoveRun, ListRuns>;

// Of StartRun and StopRun the run, if the runtime has one; of ListRuns all, by workload; of RemoveRun nothing.
struct RuntimeReply {
  std::vector<Run> runs;

  MUSTER_FIELDS(RuntimeReply, runs)
};

}  // namespace muster::contract
