// The gRPC service CapacityProvider in front of a contract::ProviderPort.
//
// A request is converted and validated before the port hears of it: what is refused has no effect. Under TLS a shard
// may only speak for itself: a token that names another shard is refused with PERMISSION_DENIED. Long lists are encoded
// on a thread of the service's own, never on the thread that answers.
//
// Thread-safety: the port is asked from gRPC's threads, many at a time.
#pragma once

#include <memory>
#include <string_view>

#include "contract/provider.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

constexpr std::string_view kProviderService = "bigfleet.v1alpha1.CapacityProvider";  // for Server::SetServing

// The port outlives the service, the service the server it is registered with. Give that server kLargeMessageBytes.
std::shared_ptr<grpc::Service> MakeProviderService(contract::ProviderPort& provider);

}  // namespace muster::rpc
