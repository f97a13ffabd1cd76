// SchedulerRole: `muster scheduler`, a scheduler as a server: persys.control.v1.AgentControl and muster.v1.Cluster over
// gRPC in front of a LocalScheduler, with the operator's endpoints beside it; and muster.v1.Enrol, if it has a CA for
// nodes.
//
// /readyz is 200 while the store answers (part "store") and it is known which scheduler leads (part "leadership").
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "core/scheduler/types.h"
#include "host/address.h"
#include "host/role.h"
#include "host/system_clock.h"
#include "role/scheduler/enrolment.h"
#include "role/scheduler/local_scheduler.h"
#include "role/scheduler/scheduler_metrics.h"
#include "rpc/open_store.h"
#include "rpc/role_server.h"
#include "rpc/secret_seal.h"
#include "store/url.h"

namespace muster::scheduler {

// Below the directory of a SQLite store: the key of secrets, if none is named.
inline constexpr std::string_view kSecretKeyFile = "secret.key";

struct RoleOptions {
  rpc::RoleServerOptions server = {};
  uint64_t journal_limit = 512u << 20;  // bytes of all its segments
  std::string store = {};               // URL
  rpc::OpenStoreOptions store_access = {};
  Duration store_lost_after = 5s;
  Duration store_compact_every = 5min;    // an etcd; zero: never
  std::filesystem::path secret_key = {};  // empty: of the store's directory, if it has one
  std::filesystem::path join_ca = {};     // signs the certificates of nodes; empty: none
  std::filesystem::path join_ca_key = {};
  Duration node_certificate_life = 24h;
  Config config = {};
};

class SchedulerRole final : public host::Role {
 public:
  explicit SchedulerRole(RoleOptions options);
  ~SchedulerRole() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return server_.listen_address(); }
  host::Address metrics_address() const { return server_.metrics_address(); }
  std::shared_ptr<const Snapshot> View() const { return scheduler_->View(); }

 private:
  Status MakeScheduler();
  Status MakeEnrolment();
  // Absent for a store that others may use, without --secret-key.
  Result<std::shared_ptr<const rpc::SecretSeal>> MakeSeal(const store::StoreUrl& url) const;

  const RoleOptions options_;
  const host::SystemClock clock_;
  rpc::RoleServer server_;
  SchedulerMetrics metrics_;
  std::unique_ptr<LocalScheduler> scheduler_;
  std::unique_ptr<Enrolment> enrolment_;  // none without a CA
};

}  // namespace muster::scheduler
