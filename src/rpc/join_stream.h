// JoinStream: one call of muster.v1.Cluster/Join. Private to the service.
//
// The first message is `join`; heartbeats of that node follow once it was answered. What the port refuses ends the
// stream with the status; a node that is not accepted gets the answer, and the stream ends. Each message is read when
// the one before it was answered, and a node that does not read its answers is dropped.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "contract/cluster.h"
#include "muster/v1/cluster.pb.h"
#include "rpc/bounded_read.h"
#include "rpc/identity.h"
#include "rpc/queued_stream.h"

namespace muster::rpc {

using JoinAnswer = std::variant<contract::NodeRegistered, contract::HeartbeatAck>;

class JoinStream final
    : public QueuedStream<grpc::ServerBidiReactor<grpc::ByteBuffer, v1::JoinReply>, JoinAnswer, v1::JoinReply> {
 public:
  JoinStream(Worker& senders, contract::ClusterPort& cluster, std::optional<Identity> caller)
      : QueuedStream(senders), cluster_(cluster), caller_(std::move(caller)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, v1::JoinReply>* Begin() {
    auto* held = Hold();
    heard_.Await([weak = weak_from_this()] {
      if (const auto silent = weak.lock()) silent->End(Silent());
    });
    StartRead(&bytes_);
    return held;
  }

 private:
  static Status Silent();
  void OnReadDone(bool ok) override;
  void Receive();
  void Register(contract::RegisterNode request);
  void Registered(Result<contract::ClusterReply> reply);
  void Beat(contract::Heartbeat beat);
  void Answer(JoinAnswer answer);
  void Encode(const JoinAnswer& answer, v1::JoinReply& out) override;
  static constexpr size_t kMostUnread = 100;

  std::shared_ptr<JoinStream> Shared() { return std::static_pointer_cast<JoinStream>(shared_from_this()); }

  contract::ClusterPort& cluster_;
  const std::optional<Identity> caller_;
  // Of the thread that receives.
  grpc::ByteBuffer bytes_;
  Heard heard_;
  v1::JoinMessage in_;
  std::string node_;  // that joined; empty: none yet

  std::mutex state_mu_;
  bool accepted_ = false;  // guarded by state_mu_
};

}  // namespace muster::rpc
