// Units from workload files: a set of N becomes N units of one kind.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/workload.h"
#include "placement/types.h"

namespace muster::placement {

// The label that every member of a set or job carries: the default of selectors that a file leaves out.
inline constexpr std::string_view kSetLabel = "muster.io/set";

// What placement reads of a workload, set or job. The namespace is the tenant, or "default". `gpu` and `gpu-milli` of
// the resources are devices; every other name is a resource of the node.
Kind KindOf(const model::WorkloadSpec& spec);
// The same of its parts: the name, which members have as their set, the tenant, the labels and the template.
Kind KindOf(const std::string& set, const std::string& tenant, const std::map<std::string, std::string>& named,
            const model::WorkloadTemplate& body);

// Appends a unit for every member, in order; their age is `order`, so that earlier workloads of a file come first.
void AppendUnits(const model::WorkloadSpec& spec, int64_t order, KindTable& kinds, std::vector<Unit>& units);

}  // namespace muster::placement
