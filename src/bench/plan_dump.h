// The shape plan-dump: a Kubernetes dump of 5,000 nodes and 100,000 pods, read from a file, planned and consolidated.
#pragma once

#include <string>

#include "base/status.h"
#include "kube/dump.h"
#include "planner/catalogue.h"
#include "planner/plan.h"

namespace muster::bench {

// A generated dump as it was read back, and what reading took.
struct ReadDump {
  kube::Dump dump;
  double seconds = 0;
  double cpu_seconds = 0;
  double rss_mb = 0;  // the most that the process had resident by then
};

// Writes the dump to a file for temporary data, reads it, and removes it. UNAVAILABLE if the file cannot be written.
Result<ReadDump> ReadGeneratedDump(int64_t nodes, int64_t pods);

// The request of `muster plan --keep none` or `--consolidate`. Every unit may move to amd64 and on-demand, which is all
// that the catalogue sells.
Result<planner::Request> RequestOf(const kube::Dump& dump, const planner::Catalogue& catalogue, planner::Keep keep);

}  // namespace muster::bench
