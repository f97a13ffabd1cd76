// ShardClient: somebody's running shard as a contract::ShardPort, for the command line and the web.
//
// Everything goes through muster.v1.Fleet, and UNIMPLEMENTED says that the shard is of another make. Needs are then
// asked for through bigfleet.v1alpha1.ShardRead, which every shard of the protocol serves; it knows four reasons only,
// and every cluster seems to have a session. What the shard answers is validated: a bad row is INTERNAL, by its field.
// Every call has a deadline of ten seconds, lists one of a minute. Thread-safety and lifetime as for
// MakeProviderClient.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "contract/shard.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

// `target` is HOST:PORT. The error is that of MakeChannel; that the shard is there shows with the first call only.
Result<std::unique_ptr<contract::ShardPort>> MakeShardClient(const std::string& target, const TlsFiles& tls = {});

}  // namespace muster::rpc
