// ActionLog: what the agent has done lately, as ListActions of persys.agent.v1 shows it.
//
// Bounded: the oldest action goes when there are too many. Thread-safety: all functions may be called from any thread.
#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "base/time.h"
#include "core/agent/types.h"
#include "rpc/agent_services.h"

namespace muster::agent {

class ActionLog {
 public:
  explicit ActionLog(size_t most = 1000) : most_(most) {}

  // Numbers grow: a number that is not there yet is a new action.
  void Record(const Acted& acted, WallTime now);
  std::vector<rpc::AgentAction> List() const;  // oldest first

 private:
  struct Entry {
    uint64_t number = 0;
    rpc::AgentAction action;
  };
  const size_t most_;
  mutable std::mutex mu_;
  std::deque<Entry> entries_;  // guarded by mu_; by number
};

}  // namespace muster::agent
