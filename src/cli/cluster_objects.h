// What `muster get` lists: objects of any kind, which of them are asked for, and how they are printed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "cli/cluster.h"
#include "cli/cluster_names.h"
#include "cli/cluster_tables.h"
#include "cli/document.h"
#include "contract/cluster_views.h"

namespace muster::cli {

using ClusterObject = std::variant<contract::WorkloadView, contract::NodeView, contract::SetView, contract::QuotaView,
                                   contract::EventView, contract::Decision>;

ClusterKind KindOf(const ClusterObject& object);         // a decision is an event
const std::string& NameOf(const ClusterObject& object);  // of a quota its tenant, of an event its workload or node
Document DocumentOf(const ClusterObject& object);
Row RowOf(const ClusterObject& object, const RowStyle& style);

// Which objects of a kind are asked for. Empty: any.
struct ObjectFilter {
  std::vector<std::string> names;
  std::vector<model::Requirement> selector;  // on labels; events have none
  std::string tenant;
  std::string node;
  std::string status;  // of workloads and nodes, in any case
  std::string set;
};
bool Passes(const ClusterObject& object, const ObjectFilter& filter);

// The objects of one kind that pass, in the order of the scheduler, and at which revision.
struct ObjectList {
  std::vector<ClusterObject> objects;
  contract::Revision revision = 0;  // 0: the kind has none
};
Result<ObjectList> ListObjects(ClusterSession& session, ClusterKind kind, const ObjectFilter& filter);
// The one of this name. NOT_FOUND says where to look.
Result<ClusterObject> GetObject(ClusterSession& session, ClusterKind kind, const std::string& name);

}  // namespace muster::cli
