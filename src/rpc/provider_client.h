// ProviderClient: somebody's capacity provider, ours or another make, as a contract::ProviderPort.
//
// Nothing that the provider says is parsed before it is known to be small enough (message_bounds.h); a list is read
// record after record (ReadMachineList). An answer beyond that is INTERNAL.
//
// Every call has the deadline it was asked with. What the provider answers is validated: a list comes without the
// records that are not fit (they are in `rejected`), and a bad record anywhere else is INTERNAL, by its field. Codes of
// the provider come through as they are; UNAVAILABLE and DEADLINE_EXCEEDED say in their message who did not answer.
//
// Thread-safety: any thread may ask. Answers run on gRPC's threads, also while the client is destroyed, which cancels
// what is open and waits for it; so no answer, of this or any other client, may destroy the client.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "contract/provider.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

// `target` is HOST:PORT. The error is that of MakeChannel; that the provider is there shows with the first call only.
Result<std::unique_ptr<contract::ProviderPort>> MakeProviderClient(const std::string& target, const TlsFiles& tls = {});

}  // namespace muster::rpc
