#include "sim/network.h"

#include "base/probe.h"

namespace muster::sim {

Network::Network(Kernel& kernel, NetworkFaults faults)
    : kernel_(kernel), rng_(kernel.ForkRng(0x6e6574)), faults_(faults) {}

void Network::Send(ProcessId from, ProcessId to, std::function<void()> deliver) {
  ++sent_;
  if (rng_.Chance(faults_.lost_per_mille, 1000) || cuts_.contains({from, to})) {
    PROBE("sim.message_lost");
    ++lost_;
    return;
  }
  // A link that was cut while the message travelled loses it too.
  const auto arrive = [this, from, to, deliver = std::move(deliver)] {
    if (cuts_.contains({from, to})) {
      PROBE("sim.message_cut_off");
      ++lost_;
      return;
    }
    deliver();
  };
  if (rng_.Chance(faults_.doubled_per_mille, 1000)) {
    PROBE("sim.message_doubled");
    ++doubled_;
    kernel_.After(DrawDelay(), arrive);
  }
  kernel_.After(DrawDelay(), arrive);
}

Duration Network::DrawDelay() {
  const bool slow = rng_.Chance(faults_.slow_per_mille, 1000);
  const Duration longest = slow ? faults_.slow_delay : faults_.max_delay;
  return Duration(rng_.Between(faults_.min_delay.count(), longest.count()));
}

}  // namespace muster::sim
