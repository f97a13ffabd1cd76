// QueueJudge: the execute queue is fair. Operations that are ready and wait for a free call are served in turns:
// between two calls for one cluster, every other cluster that has one waiting gets its own. A Preempt waits behind
// nothing else, and none that was decided is left for later because of a limit.
//
// Of the core it reads which operations wait, whom they are for, and its counters.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "core/shard/shard.h"
#include "sim/findings.h"

namespace muster::sim {

class QueueJudge {
 public:
  // `counts`: whether Preempts are counted, which takes a snapshot of the shard in every cycle.
  QueueJudge(bool counts, Findings& findings) : counts_(counts), findings_(findings) {}

  void Stepped(const shard::Core& core, std::span<const shard::Core::Effect> effects);
  void Crashed();

 private:
  using Machines = std::set<std::string>;

  // An operation of the cluster is called, or ends without a call.
  void OnTurn(const std::string& cluster, const std::string& machine, bool called);
  void JudgePreempts(const shard::Core& core, const std::string& machine);
  void CountPreempts(const shard::Core& core, std::span<const shard::Core::Effect> effects);
  void LookAtQueue(const shard::Core& core);

  const bool counts_;
  Findings& findings_;
  // As they were after the step before.
  std::map<std::string, Machines> lanes_;  // by cluster
  Machines preempts_;
  std::map<std::string, std::map<std::string, int>> waits_;  // by cluster: calls for others since its last turn
  std::map<std::string, int> void_;                          // by cluster: places in its lane whose operation has ended
  uint64_t decided_ = 0;                                     // Preempts, in this life
  uint64_t barred_ = 0;                                      // actions whose machine was not free
};

}  // namespace muster::sim
