// Queries: questions about nodes, workloads, sets, quotas and events, answered from what is durable. A store that does
// not answer makes them stale, and they say since when.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "contract/cluster.h"
#include "core/scheduler/quota_use.h"
#include "core/scheduler/rooms.h"
#include "core/scheduler/standing.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/store_copy.h"
#include "core/scheduler/views.h"

namespace muster::scheduler {

class Queries {
 public:
  Queries(const Standing& standing, const StoreCopy& copy, Rooms& rooms, const QuotaUse& quota, const Views& views);

  // Nothing if the request is no question. A tenant, unless empty, is answered about what is its own: of others'
  // workloads, sets, quotas and events it learns that there are none. Nodes and counts are everybody's.
  std::optional<Result<contract::ClusterReply>> Answer(const contract::ClusterRequest& request,
                                                       const std::string& tenant, Now now) const;

 private:
  using Reply = Result<contract::ClusterReply>;
  // Whether a tenant may see the workload.
  bool IsOf(const std::string& tenant, const std::string& workload) const;
  // The question as it is answered to a tenant. NOT_FOUND if it is about another's.
  Result<contract::ClusterRequest> Narrowed(contract::ClusterRequest request, const std::string& tenant) const;
  // Those of a workload, or all: of other programs first, then ours by their sequence.
  void ForEachEvent(const std::string& workload, const std::function<void(const EventRecord&)>& take) const;
  // Those that the tenant may see; empty: all.
  contract::EventsListed Events(const contract::ListEvents& ask, const std::string& tenant) const;
  contract::SetsListed Sets(const contract::ListSets& ask, const std::string& tenant) const;
  Reply Ask(const contract::ListNodes& ask, Now now) const;
  Reply Ask(const contract::ListWorkloads& ask, Now now) const;
  Reply Ask(const contract::GetNode& ask, Now now) const;
  Reply Ask(const contract::GetWorkload& ask, Now now) const;
  Reply Ask(const contract::ListSets& ask, Now now) const;
  Reply Ask(const contract::ListQuotas& ask, Now now) const;
  Reply Ask(const contract::ListEvents& ask, Now now) const;
  Reply Ask(const contract::GetSummary& ask, Now now) const;
  Reply Ask(const contract::ExplainWorkload& ask, Now now) const;

  const Standing& standing_;
  const StoreCopy& copy_;
  Rooms& rooms_;
  const QuotaUse& quota_;
  const Views& views_;
};

}  // namespace muster::scheduler
