// The tables (wire_table.h) of what muster.v1.Agent and muster.v1.Cluster both say: workloads, what runs, and its
// status. For the conversions of the two.
#pragma once

#include <vector>

#include "contract/agent.h"
#include "model/requirement.h"
#include "model/workload_template.h"
#include "muster/v1/agent.pb.h"
#include "rpc/wire_optional.h"
#include "rpc/wire_table.h"

namespace muster::rpc {

inline constexpr Numbers kWorkloadTypes{
    .least = 0, .most = 4, .what = "a workload type; use 1 (process), 2 (container), 3 (compose) or 4 (vm)"};
inline constexpr Numbers kActualStates{.least = 0, .most = 5, .what = "a state; use 0 (unknown) to 5 (missing)"};
inline constexpr Numbers kPenaltyNumbers{.least = 0, .most = 27, .what = "a penalty; use 1 (zero) to 27 (pinned)"};

MUSTER_WIRE_PART(contract::Stamp, v1::Stamp, MUSTER_WIRE(epoch), MUSTER_WIRE(sequence));
MUSTER_WIRE_PART(contract::WorkloadUsage, v1::WorkloadUsage, MUSTER_WIRE(cpu_milli), MUSTER_WIRE(memory_bytes),
                 MUSTER_WIRE(disk_read_bytes), MUSTER_WIRE(disk_write_bytes), MUSTER_WIRE(net_rx_bytes),
                 MUSTER_WIRE(net_tx_bytes), MUSTER_WIRE_AS(collected_at, collected_at_unix_nanos),
                 MUSTER_WIRE(source, AnyBytes()));
MUSTER_WIRE_PART(contract::WorkloadStatus, v1::WorkloadStatus, MUSTER_WIRE(workload), MUSTER_WIRE(type, kWorkloadTypes),
                 MUSTER_WIRE(revision), MUSTER_WIRE(wanted_running), MUSTER_WIRE(actual, kActualStates),
                 MUSTER_WIRE(message, AnyBytes()), MUSTER_WIRE_OPTIONAL(exit_code), MUSTER_WIRE(restarts, Count()),
                 MUSTER_WIRE_AS(created_at, created_at_unix_nanos), MUSTER_WIRE_AS(updated_at, updated_at_unix_nanos),
                 MUSTER_WIRE(metadata, AnyBytes()), MUSTER_WIRE_OPTIONAL(usage), MUSTER_WIRE(stamp));

MUSTER_WIRE_PART(model::Port, v1::WorkloadPort, MUSTER_WIRE(container), MUSTER_WIRE(host),
                 MUSTER_WIRE(protocol, Numbers(0, 2, "a protocol; use 0 (TCP), 1 (UDP) or 2 (SCTP)")),
                 MUSTER_WIRE(host_ip));
MUSTER_WIRE_PART(model::VolumeMount, v1::WorkloadVolume, MUSTER_WIRE(source), MUSTER_WIRE(target),
                 MUSTER_WIRE(read_only));
MUSTER_WIRE_PART(model::Requirement, v1::Requirement, MUSTER_WIRE(key),
                 MUSTER_WIRE(op, Numbers(0, 7, "an operator; use 1 (In) to 7 (Lt)")), MUSTER_WIRE(values));
MUSTER_WIRE_LIST(std::vector<model::Requirement>, v1::RequirementList, all_of);
MUSTER_WIRE_PART(model::TolerationRule, v1::TolerationRule, MUSTER_WIRE(key), MUSTER_WIRE(any_value),
                 MUSTER_WIRE(value), MUSTER_WIRE(effect));
MUSTER_WIRE_PART(model::SpreadRule, v1::SpreadRule, MUSTER_WIRE_AS(spread.topology_key, topology_key),
                 MUSTER_WIRE_AS(spread.max_skew, max_skew),
                 MUSTER_WIRE_AS(spread.when, when,
                                Numbers(0, 2, "a rule; use 1 (DoNotSchedule) or 2 (ScheduleAnyway)")),
                 MUSTER_WIRE(min_domains, Count()), MUSTER_WIRE_OPTIONAL(selector), MUSTER_WIRE(match_label_keys),
                 MUSTER_WIRE_DEFAULT(honor_requirements), MUSTER_WIRE(honor_taints));
MUSTER_WIRE_PART(model::NeighbourRule, v1::NeighbourRule, MUSTER_WIRE(topology_key), MUSTER_WIRE_OPTIONAL(selector),
                 MUSTER_WIRE(weight, Count()));
MUSTER_WIRE_PART(model::WorkloadTemplate, v1::WorkloadTemplate, MUSTER_WIRE(type, kWorkloadTypes), MUSTER_WIRE(command),
                 MUSTER_WIRE(image), MUSTER_WIRE(compose), MUSTER_WIRE(env), MUSTER_WIRE(ports), MUSTER_WIRE(volumes),
                 MUSTER_WIRE(resources), MUSTER_WIRE(requirements), MUSTER_WIRE(tolerations), MUSTER_WIRE(spread),
                 MUSTER_WIRE(colocate), MUSTER_WIRE(exclude), MUSTER_WIRE(priority),
                 MUSTER_WIRE_DEFAULT(interruption, kPenaltyNumbers), MUSTER_WIRE_DEFAULT(reclamation, kPenaltyNumbers),
                 MUSTER_WIRE(restart, Numbers(0, 2, "a restart policy; use 0 (always), 1 (on-failure) or 2 (never)")),
                 MUSTER_WIRE_DEFAULT_AS(grace, grace_nanos, Count()), MUSTER_WIRE(secret_env));
MUSTER_WIRE_PART(contract::ApplyOnAgent, v1::ApplyOnAgent, MUSTER_WIRE(workload, Required("name the workload")),
                 MUSTER_WIRE(set), MUSTER_WIRE(tenant), MUSTER_WIRE(revision), MUSTER_WIRE(run), MUSTER_WIRE(spec),
                 MUSTER_WIRE(labels), MUSTER_WIRE(stamp));

}  // namespace muster::rpc
