// From a workload's template to the launch of its shim: what is refused, its environment, its user and its limits.
//
// Thread-safety: functions without state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "contract/runtime.h"
#include "runtime/cgroups.h"
#include "shim/launch.h"

namespace muster::runtime {

// As whom processes run.
struct ProcessUser {
  enum class Mode : uint8_t {
    kOwn,    // each workload has a user of its own, out of a range that nothing else uses
    kAgent,  // the agent's: workloads can read what the agent can
    kFixed,  // one user for all workloads
  };
  Mode mode = Mode::kOwn;
  uid_t user = 0;   // of kFixed
  gid_t group = 0;  // of kFixed
};
// "own", "agent" or the name of a user. INVALID_ARGUMENT if there is no such user, or if this process may not change
// its user.
Result<ProcessUser> ParseProcessUser(std::string_view text);

// The range of users for ProcessUser::Mode::kOwn: above what distributions, containers and user namespaces take.
inline constexpr uid_t kFirstOwnUser = 2'000'000'000;
inline constexpr uint32_t kOwnUsers = 100'000'000;
// The user of a workload of its own: the same on every call. `salt` tells agents of one host apart.
uid_t OwnUser(std::string_view salt, std::string_view workload);

// INVALID_ARGUMENT naming the field, if a process cannot be like that: text with a NUL, a name of a variable with
// anything but letters, digits, '_', '.' and '-', volumes, more than the kernel takes.
Status CheckProcess(const contract::StartRun& start);
// Everything but the user and the cgroup. The environment is that of the template, with PATH and HOME if it has none.
shim::Launch LaunchOf(const contract::StartRun& start, const std::string& work);
CgroupLimits LimitsOf(const model::WorkloadTemplate& spec);

}  // namespace muster::runtime
