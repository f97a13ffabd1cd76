// The scheduler's world: two schedulers in front of one store, five nodes with agents, and clients that apply, change,
// stop, scale and delete. Messages are lost, late, doubled and overtaken; the store answers late, not at all, or with
// Unknown for what it did; schedulers crash and pause (and wake as zombies); agents crash, hang, refuse, lie, lose
// workloads; nodes go down and come back.
//
// What must hold is judged from outside (scheduler_judge.h).
#pragma once

#include <cstdint>
#include <string>

#include "sim/campaign.h"

namespace muster::sim {

struct SchedulerWorldOptions {
  std::string journal_directory;  // if given, the steps of the first scheduler are written to <directory>/scheduler
};

// Runs one seed to its end: a time of faults, then a time of calm in which everything must come to rest.
RunResult RunSchedulerWorld(uint64_t seed, const SchedulerWorldOptions& options = {});

}  // namespace muster::sim
