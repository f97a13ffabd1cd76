// LiveWorld: a running system as its scheduler and its shard show it, ready to be the start of a whole loop of cores
// (sim/loop.h); and the digest by which an apply knows that it is still the one a plan was made for.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/halves.h"
#include "contract/shard.h"
#include "model/workload_decode.h"
#include "sim/loop_start.h"

namespace muster::cli {

struct LiveWorld {
  std::string cluster;                 // of the scheduler, as the shard names it
  sim::LoopStart start;                // this cluster whole, the others by their demand
  std::set<std::string> out_of_stock;  // machines that the shard holds back, because they could not be had
  std::vector<std::string> notes;      // what of the running system the copy does not have, as sentences
};

// `cluster` empty: the one whose machines are the scheduler's nodes, or the only one that the shard knows.
Result<LiveWorld> ReadLiveWorld(Halves& halves, const std::string& cluster);

// What a plan was made for: the files, and the world. Written "p1.FILES.WORKLOADS.NODES.FLEET", eight hexadecimal
// digits each. Heartbeats, usage and counters, which change all the time, are not in it.
struct PlanId {
  uint32_t files = 0;
  uint32_t workloads = 0;  // with sets and quotas: what is wanted, what of it has ended, and where it is
  uint32_t nodes = 0;
  uint32_t fleet = 0;  // machines, ceilings, what other clusters want, and the notes

  bool operator==(const PlanId&) const = default;
};
PlanId PlanIdOf(const LiveWorld& world, const model::WorkloadFile& file);
std::string FormatPlanId(const PlanId& id);
Result<PlanId> ParsePlanId(std::string_view text);
// OK if it is the same; FAILED_PRECONDITION saying what moved.
Status CheckPlanId(const PlanId& planned, const PlanId& now);

}  // namespace muster::cli
