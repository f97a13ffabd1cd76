// The world of failures: one shard with three clusters and seventy-two machines of three types in three zones, on a
// provider of which a part fails for five minutes while demand grows. One thing is wrong per seed: a type or a zone is
// out of stock, some machines cannot be created, one cluster's template is bad, one cluster answers nothing, the
// provider is away for half a minute, it refuses to drain and to delete, or it never answers calls for one machine. The
// shard may crash in the middle, and may be started again with an epoch that is out of range. Then all is well again,
// and every cluster has what it wants.
//
// Judged from outside: that what failed is left alone, over restarts too (hold_judge.h); that nobody stays short beside
// machines that work (starvation_judge.h), so that the faults of one cost the others nothing, and one that hangs stops
// nobody; that a cluster has no more configured at a time than three, or than it has; that nothing takes more
// than a tenth of a cluster at a time (change_judge.h); that the queue is fair (queue_judge.h); that what fails
// is told as a failure; that needs do not age faster than time; that no more is taken by priority than is needed; that
// a trial shows all that going live would do; that no epoch is out of range; and that an outage makes nothing dearer
// than it is without. Now and then the cluster with the bad template comes before all others and wants every machine:
// while it is on trial, no more is taken for it at a time than may be configured.
#pragma once

#include <cstdint>

#include "sim/campaign.h"

namespace muster::sim {

RunResult RunFailuresWorld(uint64_t seed);
// The same with one fault: a bad template of the cluster that comes first.
RunResult RunBadTemplateThatComesFirst(uint64_t seed);

}  // namespace muster::sim
