// ControlClient: a node's end of persys.control.v1.AgentControl, as agents of another make have it: heartbeats, each a
// call of its own. For measurements of a scheduler; our agents join by join_client.h.
//
// Every call has a deadline of ten seconds.
//
// Thread-safety: any thread may call. Answers run on gRPC's threads, also while the client is destroyed, which cancels
// what is open and waits for it; so no answer may destroy the client.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "contract/cluster.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

class ControlClient {
 public:
  virtual ~ControlClient() = default;
  // Of `used`, cpu and memory are said; of a status, the workload, its state and its message.
  virtual void Beat(const contract::Heartbeat& beat, std::function<void(Status)> done) = 0;
};

// The error is that of MakeChannel.
Result<std::unique_ptr<ControlClient>> MakeControlClient(const std::string& target, const TlsFiles& tls = {});

}  // namespace muster::rpc
