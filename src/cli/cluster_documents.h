// What the cluster verbs print with -o json and -o yaml. Keys are stable: scripts read them, and a test holds them.
//
// A set, job or quota has the keys of a workload file (docs/workloads.md), and `status` besides. Texts, numbers, lists
// and maps that are empty are left out; names, states and counts are always there.
#pragma once

#include "cli/document.h"
#include "contract/cluster_views.h"
#include "model/workload.h"

namespace muster::cli {

// As in a file, so that it can be applied again.
Document SpecDocument(const model::WorkloadSpec& spec);
Document QuotaSpecDocument(const model::Quota& quota);

Document WorkloadDocument(const contract::WorkloadView& view);
Document NodeDocument(const contract::NodeView& view);
Document SetDocument(const contract::SetView& view);
Document QuotaDocument(const contract::QuotaView& view);
Document EventDocument(const contract::EventView& view);
Document DecisionDocument(const contract::Decision& decision);
Document RefusalDocument(const contract::NodeRefusal& refusal);

// For an object of a watch that is gone.
Document DeletedDocument(contract::ObjectKind kind, const std::string& name);

}  // namespace muster::cli
