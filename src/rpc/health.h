// CheckHealth: asks a gRPC server, of any make, whether it serves.
//
// Thread-safety: may be called from any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "host/address.h"

namespace muster::rpc {

// OK if the server says SERVING for `service` (empty: the whole server). FAILED_PRECONDITION if it answers otherwise,
// NOT_FOUND if it does not know the service, UNAVAILABLE or DEADLINE_EXCEEDED if it does not answer within `timeout`.
Status CheckHealth(const host::Address& server, std::string_view service, Duration timeout);

}  // namespace muster::rpc
