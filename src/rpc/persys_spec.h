// What runs, between a model::WorkloadTemplate and the two ways in which persys writes it: control.v1 (clients to
// scheduler, and scheduler to agent over a ControlStream) and agent.v1 (scheduler to agent).
//
// What the template has no field for is carried in those it has, and comes out as it went in:
//   - a virtual machine is the agent's VMSpec as base64 of its JSON in `env`, under kVmSpecKey; virtual machines have
//     no environment of their own. Clients may send it so themselves, in the metadata of the spec.
//   - a managed volume is a volume whose source is its name, with what differs from the defaults after a '?':
//     "data?driver=nfs&size_gb=10". The source of every other volume is a path and begins with '/'.
// Dropped, as by other schedulers of the protocol: `privileged`, and `dhcp` of networks.
//
// Reading validates; an error is INVALID_ARGUMENT and names the field by its path from the request. Writing cannot
// fail.
//
// Thread-safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "contract/agent.h"
#include "model/resources.h"
#include "model/workload_template.h"

namespace persys::control::v1 {
class WorkloadSpec;
}
namespace persys::agent::v1 {
class ApplyWorkloadRequest;
}  // namespace persys::agent::v1

namespace muster::rpc {

inline constexpr std::string_view kVmSpecKey = "persys.vm_spec_b64";

// The type, or what is wrong with the name; "docker-container" and "docker-compose" are the command line's spellings.
Result<model::WorkloadType> PersysTypeFromName(std::string_view name);

// Amounts as persys writes them: millicores, MiB and GiB. Refused if negative or beyond what fits, by the name of the
// field: "capabilities.cpu_total_millicores" has the path "capabilities" and the infix "total_".
Status SetPersysAmounts(int64_t cpu_millicores, int64_t memory_mb, int64_t disk_gb, std::string_view path,
                        std::string_view infix, model::Resources& into);
// The other way; a part of a MiB or GiB counts as a whole one.
int64_t MegabytesOf(const model::Resources& resources);
int64_t GigabytesOf(const model::Resources& resources);

// `wire` is the field `spec` of the request for this workload.
Result<model::WorkloadTemplate> TemplateFromControl(const persys::control::v1::WorkloadSpec& wire,
                                                    const std::string& workload);
void TemplateToControl(const contract::ApplyOnAgent& apply, persys::control::v1::WorkloadSpec& wire);

Result<model::WorkloadTemplate> TemplateFromAgent(const persys::agent::v1::ApplyWorkloadRequest& wire);
// Fills `type` and `spec` of the request.
void TemplateToAgent(const contract::ApplyOnAgent& apply, persys::agent::v1::ApplyWorkloadRequest& wire);

}  // namespace muster::rpc
