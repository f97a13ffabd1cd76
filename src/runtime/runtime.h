// Runtime: the port behind which workloads of one type run on this node. `process` is implemented here; containers and
// compose files have the same port.
//
// Runs outlive the runtime object and the agent: a runtime that is opened again finds what runs. What a runtime has
// besides is its own affair (docs/agent.md).
//
// Thread-safety: all functions may be called from any thread. The functions handed in are called on threads of the
// runtime, and not after its destructor has returned.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "contract/agent.h"
#include "contract/logs.h"
#include "contract/runtime.h"
#include "model/node.h"

namespace muster::runtime {

using Usage = std::pair<std::string, contract::WorkloadUsage>;  // by workload

class Runtime {
 public:
  using Done = std::function<void(Result<contract::RuntimeReply>)>;
  // A run has ended. Comes once for each run that was started or listed, also if a StopRun asked for the end.
  using Ended = std::function<void(contract::Run)>;

  virtual ~Runtime() = default;  // closes
  virtual model::WorkloadType type() const = 0;
  // Carries the request out (contract/runtime.h); `done` is called once, at the latest by Close.
  virtual void Ask(contract::RuntimeRequest request, Done done) = 0;
  // Writes what a workload wrote into the sink and ends it. Returns when that is done: with `follow` when the workload
  // is removed, the reader is gone or the runtime is closed.
  virtual void ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) = 0;
  // What the runs use at this moment.
  virtual std::vector<Usage> Measure() = 0;
  // Ends what waits: readers of logs, and requests, which end with UNAVAILABLE. Idempotent; runs go on.
  virtual void Close() = 0;
  // What this node cannot give, each a sentence that begins with its name: "cpu limits: the node has no cgroups".
  virtual std::vector<std::string> Missing() const = 0;
};

}  // namespace muster::runtime
