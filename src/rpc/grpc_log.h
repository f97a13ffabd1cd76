// Sends the lines that the code of gRPC and protobuf writes into base/log.h, at debug level: what matters to an
// operator comes back through the API as well and is reported there, once and in our words.
//
// Two kinds of lines are told on, of what gRPC refuses without telling anybody else: a compressed message, and a
// connection to a server whose handshake failed or took too long. They say neither who the peer was nor which server or
// client of the process it was.
//
// Thread-safety: may be called from any thread; the second call of RouteGrpcLog changes nothing.
#pragma once

#include <functional>
#include <string_view>

namespace muster::rpc {

void RouteGrpcLog();

// Calls `told` with the reason (kCompressed or kHandshake of refusal.h) for each that this process refuses, on threads
// of gRPC, until it is called again for the same `who`; with nothing: no more. `told` returns at once.
void TellOfRefused(const void* who, std::function<void(std::string_view reason)> told);

}  // namespace muster::rpc
