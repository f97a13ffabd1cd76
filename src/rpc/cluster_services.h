// The gRPC services of a scheduler: persys.control.v1.AgentControl, for existing agents and command lines, and
// muster.v1.Cluster, for ours. Both are in front of one contract::ClusterPort.
//
// A request is converted and validated before the port gets it: what is refused (INVALID_ARGUMENT, naming the field)
// has no effect. AgentControl has no pages: its lists are put together from the pages that the port gives. A suggestion
// of an automation is answered with accepted=false, and gRPC OK, where the scheduler refuses what it suggests.
//
// Streams of nodes. Join (ours) and ControlStream (foreign) carry registration and heartbeats to the port; an error of
// the port ends the stream with its status. A ControlStream is also a way to send commands to its node: the
// NodeStreams port is told of it once its node is accepted, and when it ends.
//
// Thread-safety: the ports are called from gRPC's threads and from the services' own, many at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "contract/agent.h"
#include "contract/cluster.h"
#include "contract/logs.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

// For Server::SetServing.
constexpr std::string_view kControlService = "persys.control.v1.AgentControl";
constexpr std::string_view kClusterService = "muster.v1.Cluster";

// A ControlStream, as a way to its node.
class NodeStream {
 public:
  virtual ~NodeStream() = default;
  // False once the stream ends. Apply and Delete only: the protocol has no other command.
  virtual bool Send(const contract::AgentRequest& command) = 0;
};

class NodeStreams {
 public:
  using Id = uint64_t;

  virtual ~NodeStreams() = default;
  // The node was accepted on this stream. The number is for the calls below.
  virtual Id Opened(const std::string& node, std::shared_ptr<NodeStream> stream) = 0;
  // What the node says of its workloads, all of them.
  virtual void Beat(Id stream, const std::vector<contract::WorkloadStatus>& statuses) = 0;
  virtual void Closed(Id stream) = 0;
};

// One call of Watch.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // False once the watcher is gone. A watcher that does not read is ended with RESOURCE_EXHAUSTED when its caller has
  // no room left for what waits (work_budget.h).
  virtual bool Send(std::shared_ptr<const contract::ClusterChange> change) = 0;
  virtual void Close(Status status) = 0;
};

class WatchPort {
 public:
  virtual ~WatchPort() = default;
  // The port closes the sink if it cannot give the changes; it lets go of a sink whose Send says so.
  virtual void Watch(const contract::WatchCluster& what, std::shared_ptr<WatchSink> sink) = 0;
};

// Requests by a caller whose certificate is that of a tenant: it may change the workloads and sets of its tenant, and
// PERMISSION_DENIED says so of everything else. It reads what is its own, and nodes; others' is NOT_FOUND.
class TenantPort {
 public:
  virtual ~TenantPort() = default;
  virtual void AskFor(const std::string& tenant, contract::ClusterRequest request,
                      contract::ClusterPort::Done done) = 0;
};

// The ports outlive the service, the service the server it is registered with.
std::shared_ptr<grpc::Service> MakeControlService(contract::ClusterPort& cluster, NodeStreams& streams,
                                                  TenantPort& tenants);
std::shared_ptr<grpc::Service> MakeClusterService(contract::ClusterPort& cluster, WatchPort& watches,
                                                  contract::LogsPort& logs, TenantPort& tenants);

}  // namespace muster::rpc
