// Network: carries messages between the processes of a simulated world, badly.
//
// A message is a closure that runs where it arrives. It may be late, lost, doubled, or overtaken by a later one; a
// link may be cut, in one direction or both. With faults off it is only late.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "base/index.h"
#include "base/rng.h"
#include "sim/kernel.h"

namespace muster::sim {

using ProcessId = Index<struct ProcessTag>;

struct NetworkFaults {
  uint32_t lost_per_mille = 0;
  uint32_t doubled_per_mille = 0;
  uint32_t slow_per_mille = 0;  // takes up to `slow_delay` instead of `max_delay`
  Duration min_delay = 200us;
  Duration max_delay = 5ms;
  Duration slow_delay = 3s;
};

class Network {
 public:
  Network(Kernel& kernel, NetworkFaults faults);

  void Send(ProcessId from, ProcessId to, std::function<void()> deliver);
  void SetFaults(NetworkFaults faults) { faults_ = faults; }
  // One direction only; Heal() ends every cut.
  void Cut(ProcessId from, ProcessId to) { cuts_.emplace(from, to); }
  void Heal() { cuts_.clear(); }

  uint64_t sent() const { return sent_; }
  uint64_t lost() const { return lost_; }
  uint64_t doubled() const { return doubled_; }

 private:
  Duration DrawDelay();

  Kernel& kernel_;
  Rng rng_;
  NetworkFaults faults_;
  std::set<std::pair<ProcessId, ProcessId>> cuts_;
  uint64_t sent_ = 0;
  uint64_t lost_ = 0;
  uint64_t doubled_ = 0;
};

}  // namespace muster::sim
