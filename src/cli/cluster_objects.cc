#include "cli/cluster_objects.h"

#include <algorithm>

#include "cli/cluster_documents.h"
#include "model/names.h"

namespace muster::cli {
namespace {

bool SameStatus(std::string_view a, std::string_view b) { return model::SameName(a, b, model::LetterCase::kAny); }

bool PassesFields(const contract::WorkloadView& view, const ObjectFilter& filter) {
  return (filter.tenant.empty() || view.tenant == filter.tenant) && (filter.node.empty() || view.node == filter.node) &&
         (filter.set.empty() || view.set == filter.set) &&
         (filter.status.empty() || SameStatus(model::WorkloadPhaseName(view.phase), filter.status)) &&
         Selects(filter.selector, view.labels);
}
bool PassesFields(const contract::NodeView& view, const ObjectFilter& filter) {
  return (filter.node.empty() || view.node == filter.node) &&
         (filter.status.empty() || SameStatus(model::NodeStatusName(view.status), filter.status)) &&
         Selects(filter.selector, view.labels);
}
bool PassesFields(const contract::SetView& view, const ObjectFilter& filter) {
  return (filter.tenant.empty() || view.spec.tenant == filter.tenant) &&
         (filter.set.empty() || view.spec.name == filter.set) && Selects(filter.selector, view.spec.labels);
}
bool PassesFields(const contract::QuotaView& view, const ObjectFilter& filter) {
  return filter.tenant.empty() || view.quota.tenant == filter.tenant;
}
bool PassesFields(const contract::EventView& view, const ObjectFilter& filter) {
  return filter.node.empty() || view.node == filter.node;
}
bool PassesFields(const contract::Decision& decision, const ObjectFilter& filter) {
  return filter.node.empty() || decision.node == filter.node;
}

template <class Views>
void Keep(Views& views, const ObjectFilter& filter, ObjectList& list) {
  for (auto& view : views) {
    ClusterObject object = std::move(view);
    if (Passes(object, filter)) list.objects.push_back(std::move(object));
  }
}

template <class View, class Request>
Result<ClusterObject> Named(ClusterSession& session, Request request, ClusterKind kind, const std::string& name) {
  Result<View> view = session.Ask<View>(std::move(request));
  if (!view) return std::unexpected(NamedNotFound(std::move(view).error(), ClusterKindName(kind), name));
  return ClusterObject(*std::move(view));
}

}  // namespace

ClusterKind KindOf(const ClusterObject& object) {
  static constexpr ClusterKind kKinds[] = {ClusterKind::kWorkload, ClusterKind::kNode,  ClusterKind::kSet,
                                           ClusterKind::kQuota,    ClusterKind::kEvent, ClusterKind::kEvent};
  return kKinds[object.index()];
}

const std::string& NameOf(const ClusterObject& object) {
  if (const auto* workload = std::get_if<contract::WorkloadView>(&object)) return workload->workload;
  if (const auto* node = std::get_if<contract::NodeView>(&object)) return node->node;
  if (const auto* set = std::get_if<contract::SetView>(&object)) return set->spec.name;
  if (const auto* quota = std::get_if<contract::QuotaView>(&object)) return quota->quota.tenant;
  if (const auto* event = std::get_if<contract::EventView>(&object)) {
    return event->workload.empty() ? event->node : event->workload;
  }
  const auto& decision = std::get<contract::Decision>(object);
  return decision.workload.empty() ? decision.node : decision.workload;
}

Document DocumentOf(const ClusterObject& object) {
  struct Convert {
    Document operator()(const contract::WorkloadView& view) const { return WorkloadDocument(view); }
    Document operator()(const contract::NodeView& view) const { return NodeDocument(view); }
    Document operator()(const contract::SetView& view) const { return SetDocument(view); }
    Document operator()(const contract::QuotaView& view) const { return QuotaDocument(view); }
    Document operator()(const contract::EventView& view) const { return EventDocument(view); }
    Document operator()(const contract::Decision& decision) const { return DecisionDocument(decision); }
  };
  return std::visit(Convert(), object);
}

Row RowOf(const ClusterObject& object, const RowStyle& style) {
  return std::visit([&](const auto& view) { return RowOf(view, style); }, object);
}

bool Passes(const ClusterObject& object, const ObjectFilter& filter) {
  if (!filter.names.empty() && std::ranges::find(filter.names, NameOf(object)) == filter.names.end()) return false;
  return std::visit([&](const auto& view) { return PassesFields(view, filter); }, object);
}

Result<ObjectList> ListObjects(ClusterSession& session, ClusterKind kind, const ObjectFilter& filter) {
  ObjectList list;
  switch (kind) {
    case ClusterKind::kWorkload: {
      MUSTER_ASSIGN_OR_RETURN(auto listed, ListAll(session, contract::ListWorkloads{.node = filter.node,
                                                                                    .set = filter.set,
                                                                                    .tenant = filter.tenant,
                                                                                    .selector = filter.selector}));
      list.revision = listed.revision;
      Keep(listed.workloads, filter, list);
      return list;
    }
    case ClusterKind::kNode: {
      MUSTER_ASSIGN_OR_RETURN(auto listed, ListAll(session, contract::ListNodes{.selector = filter.selector}));
      list.revision = listed.revision;
      Keep(listed.nodes, filter, list);
      return list;
    }
    case ClusterKind::kSet: {
      MUSTER_ASSIGN_OR_RETURN(auto listed, ListAll(session, contract::ListSets{}));
      list.revision = listed.revision;
      Keep(listed.sets, filter, list);
      return list;
    }
    case ClusterKind::kQuota: {
      MUSTER_ASSIGN_OR_RETURN(auto listed, session.Ask<contract::QuotasListed>(contract::ListQuotas{}));
      Keep(listed.quotas, filter, list);
      return list;
    }
    case ClusterKind::kEvent: {
      MUSTER_ASSIGN_OR_RETURN(auto listed,
                              session.Ask<contract::EventsListed>(contract::ListEvents{.node = filter.node}));
      Keep(listed.events, filter, list);
      return list;
    }
  }
  return list;
}

Result<ClusterObject> GetObject(ClusterSession& session, ClusterKind kind, const std::string& name) {
  if (kind == ClusterKind::kWorkload) {
    return Named<contract::WorkloadView>(session, contract::GetWorkload{.workload = name}, kind, name);
  }
  if (kind == ClusterKind::kNode)
    return Named<contract::NodeView>(session, contract::GetNode{.node = name}, kind, name);
  if (kind == ClusterKind::kSet) {
    MUSTER_ASSIGN_OR_RETURN(contract::SetView view, FindSet(session, name));
    return ClusterObject(std::move(view));
  }
  MUSTER_ASSIGN_OR_RETURN(auto listed, session.Ask<contract::QuotasListed>(contract::ListQuotas{.tenant = name}));
  for (contract::QuotaView& view : listed.quotas) {
    if (view.quota.tenant == name) return ClusterObject(std::move(view));
  }
  return std::unexpected(NamedNotFound(Status(Code::kNotFound, ""), ClusterKindName(kind), name));
}

}  // namespace muster::cli
