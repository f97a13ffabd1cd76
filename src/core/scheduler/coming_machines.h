// ComingMachines: the machines that the cluster's operator says are on their way to become nodes. A workload that one
// of them could take leaves others alone meanwhile.
//
// Bounded, whatever an operator says: a report expires unless it is said again, and a workload waits for machines for
// ten minutes at most. Not stored: an operator says it again to whoever leads.
#pragma once

#include <optional>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/cluster.h"
#include "core/scheduler/records.h"

namespace muster::scheduler {

class ComingMachines {
 public:
  struct State {
    std::vector<contract::ComingMachine> machines;
    MonoTime until;  // when the report expires

    MUSTER_FIELDS(State, machines, until)
  };

  explicit ComingMachines(State state);

  // Replaces what was said before. True if something does not come any more.
  Result<bool> Report(const contract::ReportMachines& report, MonoTime now);
  // Until when a workload that waits since then waits for a machine, unless the operator says otherwise. Nothing: it
  // waits for none.
  std::optional<MonoTime> AwaitedUntil(const WorkloadRecord& record, MonoTime since, MonoTime now) const;

  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace muster::scheduler
