// As whom containers run: a tenant has a user of its own on each node, so that what its containers write into volumes
// and paths of the node belongs to the tenant, and root is nobody's. The node may leave it to images (ContainerUser).
//
// Thread-safety: functions without state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/container_body.h"
#include "runtime/docker_engine.h"

namespace muster::runtime {

// "tenant" or "image".
Result<ContainerUser> ParseContainerUser(std::string_view text);

// The range of users of tenants, above that of process workloads (process_launch.h): no id of a process workload leads
// to the user of a tenant.
inline constexpr uid_t kFirstTenantUser = 2'100'000'000;
inline constexpr uint32_t kTenantUsers = 40'000'000;
// The same on every call. `agent` tells agents of one host apart; an empty tenant has a user too.
uid_t TenantUser(std::string_view agent, std::string_view tenant);

// The user of a container: what the image says if that is a number other than 0, and else the tenant's, UID:GID. A name
// is not believed: the image itself says which number it stands for.
std::string UserOfContainer(std::string_view image_user, uid_t tenant_user);

// Sets spec.user by the options, or returns why the engine does not have the image.
Result<DockerEngine::Refusal> ChooseUser(const DockerEngine& engine, const ContainerOptions& options,
                                         const std::string& tenant, ContainerSpec& spec);

}  // namespace muster::runtime
