// SessionClient: the cluster's end of a session with a shard, ours or another make.
//
// One object is one stream; it ends once and does not come back by itself.
//
// Thread-safety: Send and Close may be called from any thread, also from the handler. The handler runs on gRPC's
// threads, one call at a time, and Ended is the last. The destructor closes and waits for Ended, so the handler must
// not destroy the client.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "contract/session.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

class SessionHandler {
 public:
  virtual ~SessionHandler() = default;
  virtual void Received(contract::ShardMessage message) = 0;
  // A message that cannot be read (INTERNAL, naming the field); the session goes on.
  virtual void Unreadable(Status why) = 0;
  // OK if this side closed it, or the shard in good order; else why, UNAVAILABLE with the name of who does not answer.
  virtual void Ended(Status status) = 0;
};

class SessionClient {
 public:
  virtual ~SessionClient() = default;
  // In order, after Hello. What is not sent when the stream ends is dropped.
  virtual void Send(contract::OperatorMessage message) = 0;
  // Says that nothing more is sent, after what was; the shard then ends the stream. Idempotent. A destroyed client
  // waits two seconds for that and then cancels.
  virtual void Close() = 0;
};

// Connects and says Hello. `target` is HOST:PORT; the error is that of MakeChannel, everything later comes through
// Ended. The handler outlives the client.
Result<std::unique_ptr<SessionClient>> OpenSession(const std::string& target, contract::Hello hello,
                                                   SessionHandler& handler, const TlsFiles& tls = {});

}  // namespace muster::rpc
