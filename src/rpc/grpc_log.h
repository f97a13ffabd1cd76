// Sends the lines that the code of gRPC and protobuf writes into base/log.h, at debug level: what matters to an
// operator comes back through the API as well and is reported there, once and in our words.
//
// One kind of line is told on: that of a compressed message, which gRPC refuses without telling anybody else. It
// says neither who sent the message nor to which server or client of the process.
//
// Thread-safety: may be called from any thread; the second call of RouteGrpcLog changes nothing.
#pragma once

#include <functional>

namespace muster::rpc {

void RouteGrpcLog();

// Calls `told` for each compressed message that this process refuses, on threads of gRPC, until it is called again for
// the same `who`; with nothing: no more. `told` returns at once.
void TellOfCompressed(const void* who, std::function<void()> told);

}  // namespace muster::rpc
