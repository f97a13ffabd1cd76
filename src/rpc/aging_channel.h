// AgingChannel: a channel that does not use any connection for longer than an age.
//
// gRPC looks at a server's certificate once, in the handshake. A server whose certificate has expired or was revoked
// since, or whose CA was removed, could hold its connection for ever. So a connection takes calls for half of the age,
// and no call, streams included, lasts longer than that half (it gets an earlier deadline): then the next call makes a
// new connection, with a new handshake. Our servers do the same with their callers (ServerOptions::connection_age).
//
// Files that are not fit for a new connection, as in the middle of a rotation, leave the old one for one more age. Then
// calls fail with UNAVAILABLE until the files are fit: a CA that was removed is trusted no longer.
//
// Thread-safety: as grpc::Channel.
#pragma once

#include <memory>

#include "base/status.h"
#include "rpc/channel.h"

namespace grpc {
class ChannelInterface;
}

namespace muster::rpc {

// As MakeChannel, with the age of `options.tls`; without TLS or an age, it is a plain channel.
Result<std::shared_ptr<grpc::ChannelInterface>> MakeAgingChannel(const ChannelOptions& options);

// The channel, which MakeAgingChannel or MakeChannel made, waits no longer after a failure before it connects again.
void ConnectAgainSoon(grpc::ChannelInterface& channel);

}  // namespace muster::rpc
