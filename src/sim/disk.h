// Disk: the durable rows of one simulated process.
//
// A batch becomes durable some time after it was written. A crash forgets what was not durable yet, except that of the
// batches under way, oldest first, any number may have made it: the process cannot know.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "base/rng.h"
#include "contract/effects.h"
#include "sim/kernel.h"

namespace muster::sim {

struct DiskFaults {
  Duration min_sync = 100us;
  Duration max_sync = 2ms;
  uint32_t stall_per_mille = 0;  // takes up to `stall` instead
  Duration stall = 2s;
};

class Disk {
 public:
  Disk(Kernel& kernel, DiskFaults faults, uint64_t stream);

  // `done` runs when the batch is durable, unless the process crashes first.
  void Write(contract::Persist batch, std::function<void()> done);
  void Crash();
  // A disk with these rows is put in: the data directory of another process, moved here.
  void Replace(contract::Recovered rows) { durable_ = std::move(rows); }
  void SetFaults(DiskFaults faults) { faults_ = faults; }
  const contract::Recovered& durable() const { return durable_; }

 private:
  struct Pending {
    uint64_t number;
    contract::Persist batch;
    std::function<void()> done;
  };
  void Apply(const contract::Persist& batch);
  void SyncUpTo(uint64_t number);

  Kernel& kernel_;
  Rng rng_;
  DiskFaults faults_;
  contract::Recovered durable_;
  std::deque<Pending> pending_;
  uint64_t last_number_ = 0;
};

}  // namespace muster::sim
