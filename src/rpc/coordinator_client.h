// CoordinatorClient: reports of a shard to the coordinator (bigfleet.v1alpha1.Coordinator.ReportShard).
//
// Thread-safety and lifetime as for MakeProviderClient.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "contract/coordinator.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

class CoordinatorClient {
 public:
  virtual ~CoordinatorClient() = default;
  // `done` runs exactly once. Instructions of a kind this build does not know come through as std::monostate.
  virtual void Report(const contract::ShardReport& report, Duration timeout,
                      std::function<void(Result<contract::ReportAck>)> done) = 0;
};

Result<std::unique_ptr<CoordinatorClient>> MakeCoordinatorClient(const std::string& target, const TlsFiles& tls = {});

}  // namespace muster::rpc
