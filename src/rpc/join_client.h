// JoinClient: the agent's end of muster.v1.Cluster/Join. It keeps the node joined to one of the schedulers of a list:
// connects, registers, sends heartbeats, and does so again with the next scheduler after the stream has ended.
//
// The pause before a stream is tried again doubles from 200 ms to 5 s, with a random part; it begins anew after a
// registration that was accepted. A registration that is not accepted (NodeRegistered::accepted is false) is given to
// the handler like any other, and tried again after the longest pause.
//
// Invariants:
//   1. Calls of the handler come one at a time: Registration, Joined, acknowledgements, Left, and again. Left comes
//      once for each Registration.
//   2. A heartbeat is sent only on the stream on which the node is joined; others are dropped. If one is still unsent
//      when the next comes, the next replaces it.
//
// Thread-safety: Beat from any thread, also from the handler, which runs on threads of gRPC and of the client and must
// not block. The destructor leaves and waits for the handler; the handler must not destroy the client.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "contract/cluster.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

class JoinHandler {
 public:
  virtual ~JoinHandler() = default;
  // What the node says of itself as it is at this moment; asked before each stream. `facts.native` is set by the
  // client.
  virtual contract::RegisterNode Registration() = 0;
  // The scheduler's answer: with the epoch and the full state if it accepted the node.
  virtual void Joined(const std::string& scheduler, contract::NodeRegistered registered) = 0;
  virtual void Acked(contract::HeartbeatAck ack) = 0;
  // The stream has ended, or none could be had; it is tried again by itself.
  virtual void Left(const std::string& scheduler, Status why) = 0;
};

class JoinClient {
 public:
  virtual ~JoinClient() = default;
  virtual void Beat(contract::Heartbeat heartbeat) = 0;
  // Ends the stream, so that the node registers anew with what it says of itself now.
  virtual void Rejoin() = 0;
};

// Begins at once. `schedulers` is HOST:PORT, or several with commas; the error is that of MakeChannel. The handler
// outlives the client. `cluster` is as in MakeClusterClient.
Result<std::unique_ptr<JoinClient>> MakeJoinClient(const std::string& schedulers, JoinHandler& handler,
                                                   const TlsFiles& tls = {}, const std::string& cluster = {});

}  // namespace muster::rpc
