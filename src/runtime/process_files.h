// ProcessFiles: the directory of one process workload, as the agent sees it. shim/launch.h says what is in it.
//
// Layout below the root, `processes` in the agent's data directory: one directory for each workload, named by its id.
// The root and these directories may be passed through but not listed by others (0711), because the working directory
// inside belongs to the workload's user; everything else inside belongs to the agent alone (0600).
//
// Thread-safety: one thread at a time for each workload.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "contract/runtime.h"
#include "shim/launch.h"

namespace muster::runtime {

// What the files of a workload and the kernel say of its newest launch.
struct FoundProcess {
  shim::Launch launch;
  std::optional<shim::Started> started;  // of that launch
  std::optional<shim::Exit> exit;        // of that launch
  pid_t shim = 0;                        // the live shim; 0: none
};

class ProcessFiles {
 public:
  ProcessFiles(const std::filesystem::path& root, const std::string& workload);

  const std::string& directory() const { return directory_; }
  std::string work() const { return directory_ + "/" + std::string(shim::kWorkDir); }

  // Makes the directories that are missing; the working directory belongs to the user and group.
  Status Make(bool change_user, uid_t user, gid_t group) const;
  Status WriteLaunch(const shim::Launch& launch) const;
  // Nothing if there is no launch.
  std::optional<FoundProcess> Find() const;
  // The process id of the shim that holds the lock; 0: none does.
  pid_t FindShim() const;
  // Removes everything. Nothing of the workload may run.
  Status Remove() const;

  // The ids of the workloads below a root; removes what an interrupted Remove left.
  static Result<std::vector<std::string>> List(const std::filesystem::path& root);

 private:
  const std::filesystem::path root_;
  const std::string workload_;
  const std::string directory_;
};

// What the core is told of it. A launch whose shim is gone without an exit record was lost, and has ended.
contract::Run RunOf(const FoundProcess& found);

}  // namespace muster::runtime
