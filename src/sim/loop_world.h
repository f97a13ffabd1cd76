// The loop's world: two native clusters, each with two schedulers on one store and an operator, share a fleet of a
// shard, a provider and fourteen machines whose agents join them; clients apply, scale, stop and delete. For a minute
// everything fails: messages are lost, late, doubled and overtaken, streams break; stores answer late, not at all, or
// with Unknown for what they did; schedulers crash and pause (and wake as zombies), operators, shard, provider and
// agents crash, with the part of their disks lost that was not synced; a second shard goes on from the disk of the
// first, which lives on; machines are lost, cannot be made, configured or drained, and are out of stock; runtimes fail;
// clocks are set. Then nothing fails any more, and everything must come to rest.
//
// What must hold is judged from outside (loop_judge.h).
#pragma once

#include <cstdint>

#include "sim/campaign.h"

namespace muster::sim {

// Runs one seed to its end.
RunResult RunLoopWorld(uint64_t seed);

// The same of the cluster half alone: one cluster, its two schedulers and the agents of five computers, with the
// faults that concern them; clients also cordon and drain.
RunResult RunAgentsWorld(uint64_t seed);

}  // namespace muster::sim
