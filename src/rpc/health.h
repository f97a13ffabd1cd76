// CheckHealth: asks a gRPC server, of any make, whether it serves.
//
// Thread-safety: may be called from any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "host/address.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

// OK if the server says SERVING for `service` (empty: the whole server). FAILED_PRECONDITION if it answers otherwise,
// NOT_FOUND if it does not know the service, UNAVAILABLE or DEADLINE_EXCEEDED if it does not answer within `timeout`.
// With TLS files it presents their certificate; any of the CA will do. INVALID_ARGUMENT when they are not fit.
Status CheckHealth(const host::Address& server, std::string_view service, Duration timeout, const TlsFiles& tls = {});

}  // namespace muster::rpc
