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

// What becomes of the store under a cluster that is at rest: it begins again with nothing, or with a backup from the
// time when clients were still at work.
enum class StoreLoss : uint8_t { kEmptied, kRestored };

struct SchedulerWorldOptions {
  std::string journal_directory;  // if given, the steps of the first scheduler are written to <directory>/scheduler
};

// Runs one seed to its end: a time of faults, then a time of calm in which everything must come to rest.
RunResult RunSchedulerWorld(uint64_t seed, const SchedulerWorldOptions& options = {});

// The same world without its other faults: clients work for a while, and then the store is lost as `loss` says. Of what
// ran, no more may be deleted than the rail of orphans lets through, until a person accepts the nodes; then everything
// must come to rest as the store has it.
RunResult RunStoreLoss(uint64_t seed, StoreLoss loss);

}  // namespace muster::sim
