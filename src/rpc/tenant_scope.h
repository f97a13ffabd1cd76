// AskAs: puts a request of a cluster to the port that its caller may use. What a tenant asks goes to the TenantPort,
// everything else to the ClusterPort, since the table of identity.h has let it through.
// TenantWatch: a watch as a tenant may see it.
//
// Thread-safety: functions without state.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "contract/cluster.h"
#include "rpc/cluster_services.h"
#include "rpc/identity.h"

namespace muster::rpc {

// The tenant whose certificate the caller has; empty: another caller's.
inline std::string TenantOf(const std::optional<Identity>& caller) {
  return caller && caller->kind == Identity::Kind::kTenant ? caller->id : std::string();
}

template <class Request>
void AskAs(const std::optional<Identity>& caller, contract::ClusterPort& cluster, TenantPort& tenants, Request request,
           contract::ClusterPort::Done done) {
  const std::string tenant = TenantOf(caller);
  if (!tenant.empty()) return tenants.AskFor(tenant, std::move(request), std::move(done));
  cluster.Ask(std::move(request), std::move(done));
}

// Leaves out the workloads and sets of others. An object that is gone has no owner any more: its name alone is told. So
// is what happens to nodes, which are everybody's.
class TenantWatch final : public WatchSink {
 public:
  TenantWatch(std::string tenant, std::shared_ptr<WatchSink> sink)
      : tenant_(std::move(tenant)), sink_(std::move(sink)) {}

  bool Send(std::shared_ptr<const contract::ClusterChange> change) override {
    if (const auto* changed = std::get_if<contract::ObjectChanged>(&*change)) {
      const auto* workload = std::get_if<contract::WorkloadView>(&changed->now);
      if (workload != nullptr && workload->tenant != tenant_) return true;
      const auto* set = std::get_if<contract::SetView>(&changed->now);
      if (set != nullptr && set->spec.tenant != tenant_) return true;
    }
    return sink_->Send(std::move(change));
  }
  void Close(Status status) override { sink_->Close(std::move(status)); }

 private:
  const std::string tenant_;
  const std::shared_ptr<WatchSink> sink_;
};

}  // namespace muster::rpc
