// The gRPC services of a shard: Shard (sessions of clusters) in front of a contract::SessionPort, ShardRead and
// muster.v1.Fleet (operators) in front of a contract::ShardPort.
//
// Sessions. A stream's first message must be Hello with a cluster id; under TLS the certificate must be that cluster's.
// Roll-ups are read off the thread that receives, so that blobs and acknowledgements are never behind them, and only
// the newest of those that wait is read. Equal profiles share one object from roll-up to roll-up. What the shard sends
// waits in a queue of the stream: an update makes an unsent earlier one with its supersedes_key void, and a peer that
// does not read until the rest has grown too long is closed with RESOURCE_EXHAUSTED. The port is told that a stream has
// ended as soon as that is certain, also while what is queued still goes out.
//
// Thread-safety: the ports are called from gRPC's threads and from the services' own, many at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "contract/session.h"
#include "contract/shard.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

// For Server::SetServing.
constexpr std::string_view kSessionService = "bigfleet.v1alpha1.Shard";
constexpr std::string_view kShardReadService = "bigfleet.v1alpha1.ShardRead";
constexpr std::string_view kFleetService = "muster.v1.Fleet";

// What the session service counts; called from many threads, returns at once.
struct SessionEvents {
  std::function<void()> identity_rejected = [] {};
  std::function<void(Duration)> rollup_decoded = [](Duration) {};  // how long it took
  std::function<void()> rollup_replaced = [] {};                   // by a newer one, before it was read
};

// The port outlives the service, the service the server it is registered with. Give that server kLargeMessageBytes.
std::shared_ptr<grpc::Service> MakeSessionService(contract::SessionPort& shard, SessionEvents events = {});
std::shared_ptr<grpc::Service> MakeShardReadService(contract::ShardPort& shard);
std::shared_ptr<grpc::Service> MakeFleetService(contract::ShardPort& shard);

}  // namespace muster::rpc
