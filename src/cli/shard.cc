#include "cli/role_verb.h"
#include "cli/verbs.h"
#include "role/shard/shard_settings.h"

namespace muster::cli {

void AddShard(CommandLine& app) {
  AddRoleVerb<shard::ShardRole>(
      app, "shard", "Run a shard: decides which machines its clusters get, and has that done",
      {"muster shard --data-dir /var/lib/muster/shard --provider-addr 127.0.0.1:9100",
       "muster shard --config /etc/muster/shard.yaml --dry-run",
       "muster shard --data-dir D --provider-addr P:9100 --own topology.kubernetes.io/zone=zone-a"},
      shard::DeclareSettings);
}

}  // namespace muster::cli
