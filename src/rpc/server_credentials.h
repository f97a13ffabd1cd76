// Credentials of a server: TLS 1.3 with client certificates, files looked at before each handshake, and every call
// checked against the table of identity.h before its service sees it.
//
// Thread-safety: may be called from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "rpc/identity.h"
#include "rpc/refusal.h"
#include "rpc/tls_files.h"

namespace grpc {
class ServerContextBase;
class ServerCredentials;
}  // namespace grpc

namespace muster::rpc {

// Plaintext without files. `own_cluster` and `callers` are as in Authorise. A call that is denied is told to `refused`.
// The error is that of ReadTlsMaterial.
Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const TlsFiles& files,
                                                                       ForeignNodes foreign = ForeignNodes::kRefused,
                                                                       std::string own_cluster = {},
                                                                       Refused refused = {},
                                                                       Callers callers = Callers::kAll);

// Who calls, inside a handler; nothing on a plaintext connection, where nobody is checked.
std::optional<Identity> CallerOf(const grpc::ServerContextBase& context);

// The same as text, for logs: the identity; on a plaintext connection "local" for a caller on this machine, else the
// caller's address without its port.
std::string CallerName(const grpc::ServerContextBase& context);

}  // namespace muster::rpc
