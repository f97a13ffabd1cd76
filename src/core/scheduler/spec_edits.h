// SpecEdits: what a request or a set wants of a workload becomes its draft: created, changed, stopped, deleted,
// retried.
//
// A changed spec or desired state ends a back-off, begins attempts anew and revives what had failed or ended. A changed
// spec that its node cannot hold any more makes the workload leave it. The caller's revision is shown and goes to
// agents as it is; another spec under the same revision goes as "<revision>-<digest>". The workload must not be busy.
#pragma once

#include <map>
#include <string>

#include "contract/cluster.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/rooms.h"
#include "core/scheduler/step_context.h"
#include "model/workload.h"

namespace muster::scheduler {

struct WantedWorkload {
  std::string id;
  std::string set;
  std::string tenant;
  std::string revision;  // empty: made of the spec
  std::map<std::string, std::string> labels;
  model::WorkloadTemplate spec;
  model::DesiredState desired = model::DesiredState::kRunning;
  std::map<std::string, std::string> require_labels;
  std::map<std::string, std::string> metadata;
};

class SpecEdits {
 public:
  SpecEdits(const Config& config, Drafts& drafts, Rooms& rooms);

  // The record as it would become; nothing is edited.
  WorkloadRecord Preview(const WantedWorkload& wanted, Now now) const;
  // What becoming this would be: created, configured or unchanged.
  contract::ApplyResult ResultOf(const WorkloadRecord& next) const;
  // Whether what Preview gave, applied, begins anew: back-offs end, and what has ended or failed runs again.
  bool Revives(const WorkloadRecord& record) const;
  contract::ApplyResult Apply(const WantedWorkload& wanted, StepContext& ctx);
  // It exists. False: it was so already.
  bool SetDesired(const std::string& id, model::DesiredState desired, StepContext& ctx);
  void Retry(const std::string& id, StepContext& ctx);

 private:
  void Revive(WorkloadRecord& record, Reason reason, StepContext& ctx);
  void MoveIfNeeded(const WorkloadRecord& before, WorkloadRecord& record);

  const Config& config_;
  Drafts& drafts_;
  Rooms& rooms_;
};

}  // namespace muster::scheduler
