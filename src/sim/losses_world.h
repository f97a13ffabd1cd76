// The world of losses: one shard with three hundred machines in three zones and two clusters, on a provider that does
// one thing wrong. It shows machines as Failed that are not, forgets machines, loses a zone, or only answers late; it
// makes lists late and answers a capped page with its newest revision, and may refuse to delete what is Failed. The
// shard may crash in the middle. Then an operator looks, the provider is well again, and every cluster has what it
// wants.
//
// Judged from outside: what the shard gives up, repairs, drains and buys meanwhile, and whether it knows every machine
// as it is.
#pragma once

#include <cstdint>

#include "sim/campaign.h"

namespace muster::sim {

RunResult RunLossesWorld(uint64_t seed);

// Two clusters that want more and less in turn, the one when the other does not, for a day: how often machines move is
// bounded by what the demand asks for.
RunResult RunBreathingWorld(uint64_t seed);

}  // namespace muster::sim
