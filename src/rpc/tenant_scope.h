// AskAs: puts a request of a cluster to the port that its caller may use. Changes of workloads and sets by a tenant go
// to the TenantPort; everything else to the ClusterPort, since the table of identity.h has let it through.
//
// Thread-safety: functions without state.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "contract/cluster.h"
#include "rpc/cluster_services.h"
#include "rpc/identity.h"

namespace muster::rpc {

template <class Request>
constexpr bool kTenantMayAsk =
    std::is_same_v<Request, contract::ApplyWorkload> || std::is_same_v<Request, contract::ApplySpec> ||
    std::is_same_v<Request, contract::DeleteObject> || std::is_same_v<Request, contract::RetryWorkload> ||
    std::is_same_v<Request, contract::ScaleSet> || std::is_same_v<Request, contract::RestartSet>;

template <class Request>
void AskAs(const std::optional<Identity>& caller, contract::ClusterPort& cluster, TenantPort& tenants, Request request,
           contract::ClusterPort::Done done) {
  if constexpr (kTenantMayAsk<Request>) {
    if (caller && caller->kind == Identity::Kind::kTenant) {
      return tenants.AskFor(caller->id, std::move(request), std::move(done));
    }
  }
  cluster.Ask(std::move(request), std::move(done));
}

}  // namespace muster::rpc
