// SchedulerMetrics: what a scheduler shows of itself, as Prometheus series. Names and labels that begin with
// persys_scheduler_ are those that dashboards and alerts of this protocol already know; ours begin with
// muster_scheduler_. The table is in docs/operating-scheduler.md.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <string_view>

#include "base/metrics.h"
#include "base/status.h"
#include "base/time.h"
#include "core/scheduler/snapshot.h"
#include "core/scheduler/types.h"

namespace muster::scheduler {

class SchedulerMetrics {
 public:
  // The registry behind `in` outlives this.
  explicit SchedulerMetrics(metrics::Declarations& in);

  // A call to this scheduler; `method` is its path, "/package.Service/Method".
  void CallServed(std::string_view method, Code code, Duration took);
  // A call to an agent.
  void AgentCalled(const contract::AgentRequest& request, Code code, Duration took);
  void Ended(const Reconciled& reconciled);
  // A step of the core in which workloads were reconciled.
  void CycleEnded(bool success, Duration took);
  // Brings everything up to date that the core counts itself.
  void Update(const Snapshot& snapshot, size_t watchers, bool store_up);

 private:
  const metrics::Counters<2> served_;
  const metrics::Histograms<2> served_seconds_;
  const metrics::Counters<2> agent_calls_;
  const metrics::Histograms<2> agent_seconds_;
  const metrics::Counters<2> results_;
  const metrics::Counters<1> actions_;
  const metrics::Histograms<0> cycle_seconds_;
  const metrics::Counters<1> cycles_;
  const metrics::Gauges<1> nodes_;
  const metrics::Gauges<1> workloads_;
  const metrics::Gauges<1> desired_;
  const metrics::Counters<1> store_writes_;
  const metrics::Counters<0> attempts_;
  const metrics::Counters<0> failures_;
  const metrics::Counters<0> retries_;
  const metrics::Counters<0> unhealthy_;
  const metrics::Counters<0> failovers_;
  const metrics::Counters<0> orphans_deleted_;
  const metrics::Counters<1> commits_;
  const metrics::Gauges<0> commits_open_;
  const metrics::Gauges<0> calls_open_;
  const metrics::Gauges<0> waiting_;
  const metrics::Gauges<0> orphans_held_;
  const metrics::Gauges<0> leading_;
  const metrics::Gauges<0> store_up_;
  const metrics::Gauges<0> watchers_;
  std::mutex mu_;  // one Update at a time
};

}  // namespace muster::scheduler
