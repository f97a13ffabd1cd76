// StreamTable: the ControlStreams of foreign nodes, as another way to call their agents: for a node that cannot be
// dialled.
//
// The protocol has no answers on a stream. So an Apply and a Delete are answered as soon as they are sent, the first as
// Pending; and what the node has is what its last heartbeat on the stream said, with what was applied since as Pending.
// A workload that was deleted since is shown until a heartbeat comes without it.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "contract/agent.h"
#include "rpc/cluster_services.h"

namespace muster::scheduler {

class StreamTable final : public rpc::NodeStreams {
 public:
  Id Opened(const std::string& node, std::shared_ptr<rpc::NodeStream> stream) override;
  void Beat(Id stream, const std::vector<contract::WorkloadStatus>& statuses) override;
  void Closed(Id stream) override;

  bool Has(const std::string& node) const;
  // UNAVAILABLE if the node has no stream, or has not said yet what it has.
  Result<contract::AgentReply> Ask(const std::string& node, const contract::AgentRequest& request);

 private:
  struct Row {
    Id id = 0;
    std::shared_ptr<rpc::NodeStream> stream;
    bool beaten = false;                                       // a heartbeat has come
    std::map<std::string, contract::WorkloadStatus> statuses;  // by workload
  };
  Row* Find(Id stream);

  mutable std::mutex mu_;
  // Guarded by mu_.
  Id last_ = 0;
  std::map<std::string, Row> rows_;  // by node
};

}  // namespace muster::scheduler
