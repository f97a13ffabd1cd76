// Secrets of workloads on their way through a scheduler: sealed before the core sees a request, opened when a workload
// goes to its agent. Nothing between the two has a value.
//
// Thread-safety: functions without state.
#pragma once

#include <string>

#include "base/status.h"
#include "contract/cluster.h"
#include "rpc/secret_seal.h"

namespace muster::scheduler {

// Seals the secrets of what is applied, for its tenant, name and variable. A text that is sealed already stays, if it
// belongs there: what was read from the scheduler can be applied again. `tenant` is that of the caller.
// INVALID_ARGUMENT or, without a seal, FAILED_PRECONDITION, naming the field.
Status SealSecrets(const rpc::SecretSeal* seal, const std::string& tenant, contract::ClusterRequest& request);

// Opens the secrets of what an agent is asked for. The error names the field.
Status OpenSecrets(const rpc::SecretSeal* seal, contract::AgentRequest& request);

// The same for what a node is told when it joins. One that cannot be opened is left empty, and logged: the node runs on
// what it has, and cannot start it anew.
void OpenSecrets(const rpc::SecretSeal* seal, contract::FullState& state);

}  // namespace muster::scheduler
