// The world of losses: one shard with three hundred machines in three zones and two clusters, on a provider that does
// one thing wrong. It shows machines as Failed that are not, in masses or a few, forgets machines and may remember some
// of them, does either while the shard is down, which may be killed again within its first sweep, loses a zone, or only
// answers late; it makes lists late and answers a capped page with its newest revision, may not answer lists without a
// cap for a while at first, and may refuse to delete what is Failed. Records of Failed machines may not name their
// cluster. A cluster may say that it wants nothing, several times in a row, or less and less, and not mean it; one may
// want less and mean it. The shard may crash in the middle, and one cluster may be paused while machines are missing or
// called Failed. Then an operator looks, the provider is well again, and every cluster has what it wants.
//
// Judged from outside: what the shard gives up, repairs, drains and buys meanwhile, that nothing takes more than a
// tenth of a cluster at a time (change_judge.h), that nobody stays short beside machines that could be bought
// (starvation_judge.h), that a lost zone is replaced before an operator looks, that nothing is given up of a cluster
// that is paused, that what went while the shard was down is replaced as slowly, that no demand is in force that fell
// all at once, and whether the shard knows every machine as it is.
#pragma once

#include <cstdint>

#include "sim/campaign.h"

namespace muster::sim {

RunResult RunLossesWorld(uint64_t seed);

// Two clusters that want more and less in turn, the one when the other does not, and a little less for half of every
// minute, for a day in which the shard is killed now and then: how often machines move is bounded by what the demand
// asks for.
RunResult RunBreathingWorld(uint64_t seed);

}  // namespace muster::sim
