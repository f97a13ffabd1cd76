// The provider's world: three shards against one provider core and a simulated cloud that outlives its crashes. One of
// the shards is a zombie: the earlier life of another, with its id and an older epoch, that does not know it is dead.
// Calls are lost, late, doubled and overtaken, the provider crashes, machines fail and are taken away.
//
// What must hold is judged from outside, from what was delivered, answered, durable and done to the machines.
#pragma once

#include <cstdint>
#include <string>

#include "sim/campaign.h"

namespace muster::sim {

struct ProviderWorldOptions {
  std::string journal_directory;  // if given, the steps of the provider are written to <directory>/provider
};

// Runs one seed to its end: a time of faults, then a time of calm in which everything must come to rest.
RunResult RunProviderWorld(uint64_t seed, const ProviderWorldOptions& options = {});

}  // namespace muster::sim
