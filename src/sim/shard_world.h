// The shards' world: two shards that share a provider and own a zone each, four clusters whose demand moves, and in
// half of the seeds a zombie: a process whose data directory was moved to another, and which does not know it.
//
// Calls are lost, late, doubled and overtaken; processes crash and forget what was not on disk, or come back with an
// older copy of their directory or none; sessions break, are replaced and stay away; clusters answer late, wrongly or
// not at all and send garbage; the provider hangs, is slow, fails, lists garbage and old news, and hides machines;
// stock runs out, machines fail and are interrupted, prices move; clocks jump; operators pause and resume. Then the
// faults end, and everything must come to rest: every cluster has what it wants, nothing is left over, no action is
// taken any more, not even after a restart.
#pragma once

#include <cstdint>
#include <string>

#include "sim/campaign.h"

namespace muster::sim {

struct ShardWorldOptions {
  std::string journal_directory;  // if given, the steps of each shard are written to <directory>/<shard>
};

RunResult RunShardWorld(uint64_t seed, const ShardWorldOptions& options = {});

}  // namespace muster::sim
