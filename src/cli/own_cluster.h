// OwnCluster: a scheduler and agents of this process, for measurements that need real ones: child processes on free
// ports of the loopback interface, with everything they keep in a temporary directory. All of it goes with the object,
// the processes of workloads too.
//
// Thread-safety: one thread, which lives as long as the object; the client may be used from any.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "host/children.h"
#include "host/system_clock.h"
#include "host/temporary_dir.h"
#include "rpc/cluster_client.h"

namespace muster::cli {

struct OwnClusterOptions {
  std::string store = "sqlite";  // "memory", "sqlite", or the address of a store
  int agents = 4;
};

class OwnCluster {
 public:
  // Starts them and waits until every node is ready. UNAVAILABLE, with the last line of a log, if that does not happen.
  static Result<std::unique_ptr<OwnCluster>> Start(const OwnClusterOptions& options);
  ~OwnCluster();
  OwnCluster(const OwnCluster&) = delete;
  OwnCluster& operator=(const OwnCluster&) = delete;

  rpc::ClusterClient& client() { return *client_; }

 private:
  OwnCluster(std::unique_ptr<host::TemporaryDir> dir, std::filesystem::path program);
  Status StartAll(const OwnClusterOptions& options);
  Status WaitUntilReady(int agents);
  std::string Log(const std::string& name) const;
  // Stops what an agent that has ended has left running.
  void Retire(const std::filesystem::path& data_dir) const;

  const std::unique_ptr<host::TemporaryDir> dir_;
  const std::filesystem::path program_;
  const host::SystemClock clock_;
  host::Children children_;
  std::vector<std::filesystem::path> agents_;  // their directories
  std::unique_ptr<rpc::ClusterClient> client_;
};

}  // namespace muster::cli
