#include "role/scheduler/scheduler_metrics.h"

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace muster::scheduler {
namespace {

// Those of the Prometheus clients, which dashboards of this protocol expect.
std::vector<double> DefaultBounds() { return {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}; }

constexpr std::array kAgentCalls = {"ApplyWorkload", "DeleteWorkload", "GetWorkloadStatus",
                                    "ListWorkloads"};  // as in AgentRequest

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

SchedulerMetrics::SchedulerMetrics(metrics::Declarations& in)
    : served_(in, "persys_scheduler_grpc_server_requests_total", "Calls answered, by method and code.",
              {"method", "code"}),
      served_seconds_(in, "persys_scheduler_grpc_server_request_duration_seconds", "Time to the end of a call.",
                      {"method", "code"}, DefaultBounds()),
      agent_calls_(in, "persys_scheduler_agent_rpc_requests_total", "Calls to agents, by method and code.",
                   {"rpc", "code"}),
      agent_seconds_(in, "persys_scheduler_agent_rpc_duration_seconds", "Time to the answer of an agent.",
                     {"rpc", "code"}, DefaultBounds()),
      results_(in, "persys_scheduler_reconciliation_results_total", "Reconciliations of a workload, by what was done.",
               {"action", "success"}),
      actions_(in, "persys_scheduler_reconciliation_actions_total", "Actions of reconciliations.", {"action"}),
      cycle_seconds_(in, "persys_scheduler_reconciliation_cycle_duration_seconds",
                     "Duration of a step in which workloads were reconciled.", {}, DefaultBounds()),
      cycles_(in, "persys_scheduler_reconciliation_cycles_total", "Steps in which workloads were reconciled.",
              {"result"}),
      nodes_(in, "persys_scheduler_nodes_status", "Nodes by status.", {"status"}),
      workloads_(in, "persys_scheduler_workloads_status", "Workloads by status.", {"status"}),
      desired_(in, "persys_scheduler_workloads_desired_state", "Workloads by desired state.", {"desired_state"}),
      store_writes_(in, "persys_scheduler_state_store_writes_total", "Keys written to the store, by category.",
                    {"category"}),
      attempts_(in, "persys_scheduler_scheduling_attempts_total", "Workloads that were to be placed."),
      failures_(in, "persys_scheduler_scheduling_failures_total", "Workloads that no node took."),
      retries_(in, "persys_scheduler_retry_total", "Attempts that failed and are made again."),
      unhealthy_(in, "persys_scheduler_node_unhealthy_total", "Nodes that became NotReady."),
      failovers_(in, "muster_scheduler_failovers_total", "Workloads that were moved away from a node that was lost."),
      orphans_deleted_(in, "muster_scheduler_orphans_deleted_total",
                       "Workloads deleted on nodes because the store does not have them."),
      commits_(in, "muster_scheduler_commits_total", "Transactions of the store, by outcome.", {"outcome"}),
      commits_open_(in, "muster_scheduler_commits_open", "Transactions under way."),
      calls_open_(in, "muster_scheduler_agent_calls_open", "Calls to agents under way."),
      waiting_(in, "muster_scheduler_workloads_waiting", "Workloads that wait for a node."),
      orphans_held_(in, "muster_scheduler_orphans_held",
                    "Workloads on nodes that the store does not have, left alone until the node is accepted."),
      leading_(in, "muster_scheduler_leading", "1 while this scheduler leads."),
      store_up_(in, "muster_scheduler_store_up", "1 while the store answers."),
      watchers_(in, "muster_scheduler_watchers", "Open watches.") {}

void SchedulerMetrics::CallServed(std::string_view method, Code code, Duration took) {
  const std::string name = CodeName(code);
  served_.With(method, name).Add();
  served_seconds_.With(method, name).Observe(Seconds(took));
}

void SchedulerMetrics::AgentCalled(const contract::AgentRequest& request, Code code, Duration took) {
  const char* call = kAgentCalls.at(request.index());
  const std::string name = CodeName(code);
  agent_calls_.With(call, name).Add();
  agent_seconds_.With(call, name).Observe(Seconds(took));
}

void SchedulerMetrics::Ended(const Reconciled& reconciled) {
  results_.With(reconciled.action, reconciled.success ? "true" : "false").Add();
  actions_.With(reconciled.action).Add();
}

void SchedulerMetrics::CycleEnded(bool success, Duration took) {
  cycles_.With(success ? "success" : "failure").Add();
  cycle_seconds_.With().Observe(Seconds(took));
}

void SchedulerMetrics::Update(const Snapshot& snapshot, size_t watchers, bool store_up) {
  const std::lock_guard lock(mu_);
  for (size_t i = 0; i < snapshot.nodes.size(); ++i) {
    nodes_.With(model::NodeStatusName(static_cast<model::NodeStatus>(i)))
        .Set(static_cast<double>(snapshot.nodes.at(i)));
  }
  for (size_t i = 0; i < snapshot.workloads.size(); ++i) {
    workloads_.With(model::WorkloadPhaseName(static_cast<model::WorkloadPhase>(i)))
        .Set(static_cast<double>(snapshot.workloads.at(i)));
  }
  for (size_t i = 0; i < snapshot.desired.size(); ++i) {
    desired_.With(model::DesiredStateName(static_cast<model::DesiredState>(i)))
        .Set(static_cast<double>(snapshot.desired.at(i)));
  }
  const Counters& counters = snapshot.counters;
  for (const auto& [category, count] : counters.store_writes) {
    store_writes_.With(category).RaiseTo(static_cast<double>(count));
  }
  attempts_.With().RaiseTo(static_cast<double>(counters.scheduling_attempts));
  failures_.With().RaiseTo(static_cast<double>(counters.scheduling_failures));
  retries_.With().RaiseTo(static_cast<double>(counters.retries));
  unhealthy_.With().RaiseTo(static_cast<double>(counters.nodes_lost));
  failovers_.With().RaiseTo(static_cast<double>(counters.failovers));
  orphans_deleted_.With().RaiseTo(static_cast<double>(counters.orphans_deleted));
  commits_.With("committed").RaiseTo(static_cast<double>(counters.commits));
  commits_.With("conflict").RaiseTo(static_cast<double>(counters.conflicts));
  commits_.With("unknown").RaiseTo(static_cast<double>(counters.unknowns));
  commits_open_.With().Set(static_cast<double>(snapshot.commits_in_flight));
  calls_open_.With().Set(static_cast<double>(snapshot.calls_in_flight));
  waiting_.With().Set(static_cast<double>(snapshot.waiting));
  orphans_held_.With().Set(static_cast<double>(snapshot.orphans_held));
  leading_.With().Set(snapshot.leading ? 1 : 0);
  store_up_.With().Set(store_up ? 1 : 0);
  watchers_.With().Set(static_cast<double>(watchers));
}

}  // namespace muster::scheduler
