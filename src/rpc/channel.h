// Channel: the one way clients reach a gRPC server, ours or anybody's; and the small things every call needs.
//
// Thread-safety: all functions may be called from any thread, and so may a channel's.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "rpc/identity.h"
#include "rpc/tls_files.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace muster::rpc {

class CertificateCheck;

// For services whose messages grow with the fleet: lists, roll-ups.
constexpr int kLargeMessageBytes = 256 << 20;
constexpr int kSmallMessageBytes = 4 << 20;
constexpr int kSessionMessageBytes = 32 << 20;  // a cluster's whole demand

struct ChannelOptions {
  std::string target;          // HOST:PORT, or unix:/PATH: a socket of this machine, always in plaintext
  TlsFiles tls = {};           // plaintext unless given; to another machine only if it says so
  ExpectedServer serves = {};  // whom a server's certificate may name
  // Of a channel that this one follows, with the revocation lists that were fit; none: one of its own.
  std::shared_ptr<CertificateCheck> certificates = nullptr;
  int max_message_bytes = kSmallMessageBytes;
  // A ping after this long without traffic. Other makes of server take more than one in five minutes for abuse and hang
  // up; against ours, 30 s is welcome.
  Duration keep_alive = 310s;
  // gRPC's own retries of calls that no server has seen. Its code aborts the process when a stream ends without a
  // status, as those of a server in Go may when it stops: off for such servers.
  bool transparent_retries = true;
  // How long at most after a failure the server is tried again.
  Duration longest_reconnect = 5s;
  // A connection of its own, which shares nothing with other channels to the same target.
  bool own_connection = false;
  // A connection without calls is closed after this long, and made again with the next call; 0: never.
  Duration idle_timeout = 0s;
};

// Connects with the first call, and again by itself. With TLS, the server's certificate must come from the CA and name
// the target's host and whom `serves` expects, and changed files are in use within a second or two. No answer is
// unpacked. INVALID_ARGUMENT when the target is no HOST:PORT, or another machine without TLS; the error of
// ReadTlsMaterial when the files are not fit.
Result<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options);

// A deadline `timeout` from here.
void SetDeadline(grpc::ClientContext& context, Duration timeout);

Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const Status& status);

}  // namespace muster::rpc
