// Server: one gRPC server of a process, with the standard health and reflection services on it.
//
// gRPC types stop here: a role hands in its services and sees no gRPC header. With TLS files every caller is checked
// against the table of identity.h before a service sees the call.
//
// Health: after Start the server as a whole (the empty service name) says NOT_SERVING until SetServing(true). Stop says
// NOT_SERVING first, so that clients that watch move away.
//
// Limits, for every service on it: no message is unpacked, receiving has a bound on memory, a connection has a bound on
// streams, on the time of its handshake and on that without a call; gRPC has none on how many connections there are.
// What a denied or refused call was is told to `refused`, and what an operator ordered is a line in the log.
//
// Thread-safety: all functions may be called from any thread, except that Start and Stop do not overlap.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "host/address.h"
#include "rpc/channel.h"
#include "rpc/identity.h"
#include "rpc/refusal.h"
#include "rpc/tls_files.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

struct ServerOptions {
  host::Address address;  // no host: the socket alone
  // A Unix socket, in plaintext; empty: none. Whoever may write to the file may call: it is this user's.
  std::string socket = {};
  TlsFiles tls = {};                           // plaintext unless given
  int max_message_bytes = kSmallMessageBytes;  // of what it sends, per message
  int max_request_bytes = kSmallMessageBytes;  // of what it receives, per message
  // What all connections together may hold of messages that have not been read yet. Beyond it senders are made to wait,
  // and then lose their streams.
  size_t receive_memory = 48 << 20;
  Duration connection_age =
      0s;  // 0: for ever. After it a connection is ended, and its peer connects and is looked at again
  Duration connection_idle = 5min;  // after which a connection without a call is ended; its peer connects again to call
  ForeignNodes foreign_nodes = ForeignNodes::kRefused;
  std::string cluster = {};  // its own, for Authorise; empty: none
  Callers callers = Callers::kAll;
  Duration stop_grace = 3s;  // how long calls under way may go on after Stop
  Refused refused = {};
  // Told of every call that has ended, by its path ("/package.Service/Method"), on threads of gRPC; returns at once.
  std::function<void(std::string_view method, Code code, Duration took)> call_ended = {};
};

class Server {
 public:
  explicit Server(ServerOptions options);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens when it returns OK; the error says why the address cannot be had or what is wrong with the TLS files. The
  // services outlive the server.
  Status Start(std::span<grpc::Service* const> services = {});
  // Where it listens, with the real port; before Start the address as given.
  host::Address address() const;
  // What the health service says, for one service by its full name or, with the empty name, for the whole server.
  void SetServing(bool serving, std::string_view service = {});
  // Idempotent: takes no further call, cancels what is left after stop_grace, waits for the handlers.
  void Stop();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace muster::rpc
