#include <thread>

#include "cli/cluster.h"
#include "host/system_clock.h"
#include "rpc/shard_client.h"

namespace muster::cli {

ClusterAccess RealCluster() {
  return {.connect = [](const ClusterFlags& flags) -> Result<std::unique_ptr<rpc::ClusterClient>> {
            MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
            return rpc::MakeClusterClient(flags.scheduler, tls);
          },
          .clock = std::make_shared<host::SystemClock>(),
          .pause = [](Duration how_long) { std::this_thread::sleep_for(how_long); },
          .shard = [](const ShardFlags& flags) -> Result<std::unique_ptr<contract::ShardPort>> {
            MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
            return rpc::MakeShardClient(flags.shard, tls);
          }};
}

}  // namespace muster::cli
