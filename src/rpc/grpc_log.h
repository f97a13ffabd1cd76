// Sends the lines that the code of gRPC and protobuf writes into base/log.h, at debug level: what matters to an
// operator comes back through the API as well and is reported there, once and in our words.
//
// Thread-safety: may be called from any thread; the second call changes nothing.
#pragma once

namespace muster::rpc {

void RouteGrpcLog();

}  // namespace muster::rpc
