// ControlStream: one call of persys.control.v1.AgentControl/ControlStream. Private to the service.
//
// The node registers, or begins with a heartbeat if it is registered already; the protocol has no answer to either.
// What the port refuses, or does not accept, ends the stream. From then on the scheduler sends commands. Each message
// is read when the port has answered the one before it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/cluster.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/bounded_read.h"
#include "rpc/cluster_services.h"
#include "rpc/identity.h"
#include "rpc/queued_stream.h"

namespace muster::rpc {

class ControlStream final
    : public QueuedStream<grpc::ServerBidiReactor<grpc::ByteBuffer, persys::control::v1::ControlMessage>,
                          contract::AgentRequest, persys::control::v1::ControlMessage>,
      public NodeStream {
 public:
  using Message = persys::control::v1::ControlMessage;

  ControlStream(Worker& senders, contract::ClusterPort& cluster, NodeStreams& streams, std::optional<Identity> caller)
      : QueuedStream(senders), cluster_(cluster), streams_(streams), caller_(std::move(caller)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, Message>* Begin() {
    auto* held = Hold();
    heard_.Await([weak = weak_from_this()] {
      if (const auto silent = weak.lock()) silent->End(Silent());
    });
    StartRead(&bytes_);
    return held;
  }

  bool Send(const contract::AgentRequest& command) override;

 private:
  static Status Silent();
  void OnReadDone(bool ok) override;
  void Receive();
  void Register(contract::RegisterNode request);
  void Beat(contract::Heartbeat beat);
  // The port accepts the node: from here on the scheduler may use the stream.
  void Accepted(const std::string& node, const std::vector<contract::WorkloadStatus>* statuses);
  bool SpeaksFor(const std::string& node);
  void Encode(const contract::AgentRequest& command, Message& out) override;
  void Ended() override;
  std::shared_ptr<ControlStream> Shared() { return std::static_pointer_cast<ControlStream>(shared_from_this()); }

  contract::ClusterPort& cluster_;
  NodeStreams& streams_;
  const std::optional<Identity> caller_;
  // Of the thread that receives.
  grpc::ByteBuffer bytes_;
  Heard heard_;
  Message in_;
  std::string node_;

  std::mutex streams_mu_;              // calls of `streams_`
  std::optional<NodeStreams::Id> id_;  // guarded by streams_mu_
  bool closed_ = false;                // guarded by streams_mu_
};

}  // namespace muster::rpc
