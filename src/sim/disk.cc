#include "sim/disk.h"

#include "base/probe.h"

namespace muster::sim {

Disk::Disk(Kernel& kernel, DiskFaults faults, uint64_t stream)
    : kernel_(kernel), rng_(kernel.ForkRng(stream)), faults_(faults) {}

void Disk::Write(contract::Persist batch, std::function<void()> done) {
  const uint64_t number = ++last_number_;
  pending_.push_back({.number = number, .batch = std::move(batch), .done = std::move(done)});
  const bool stalls = rng_.Chance(faults_.stall_per_mille, 1000);
  const Duration longest = stalls ? faults_.stall : faults_.max_sync;
  kernel_.After(Duration(rng_.Between(faults_.min_sync.count(), longest.count())),
                [this, number] { SyncUpTo(number); });
}

void Disk::SyncUpTo(uint64_t number) {
  while (!pending_.empty() && pending_.front().number <= number) {
    const Pending batch = std::move(pending_.front());
    pending_.pop_front();
    Apply(batch.batch);
    batch.done();
  }
}

void Disk::Crash() {
  while (!pending_.empty() && rng_.Chance(1, 2)) {
    PROBE("sim.crash_kept_batch");
    Apply(pending_.front().batch);
    pending_.pop_front();
  }
  if (!pending_.empty()) PROBE("sim.crash_lost_batch");
  pending_.clear();
}

void Disk::Apply(const contract::Persist& batch) {
  for (const contract::Write& write : batch.writes) {
    if (write.value) {
      durable_[write.key] = *write.value;
    } else {
      durable_.erase(write.key);
    }
  }
}

}  // namespace muster::sim
