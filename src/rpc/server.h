// Server: one gRPC server of a process, with the standard health and reflection services on it.
//
// gRPC types stop here: a role hands in its services and sees no gRPC header. With TLS files every caller is checked
// against the table of identity.h before a service sees the call.
//
// Health: after Start the server as a whole (the empty service name) says NOT_SERVING until SetServing(true). Stop says
// NOT_SERVING first, so that clients that watch move away.
//
// Thread-safety: all functions may be called from any thread, except that Start and Stop do not overlap.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "host/address.h"
#include "rpc/channel.h"
#include "rpc/identity.h"
#include "rpc/tls_files.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

struct ServerOptions {
  host::Address address;
  TlsFiles tls = {};                           // plaintext unless given
  int max_message_bytes = kSmallMessageBytes;  // per message, in either direction
  ForeignNodes foreign_nodes = ForeignNodes::kRefused;
  Duration stop_grace = 3s;  // how long calls under way may go on after Stop
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
