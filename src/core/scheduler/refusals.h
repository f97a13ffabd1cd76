// Refusals: requests that a tenant's quota or rate refused, as decisions.
//
// Who asks is told every time. The stream of decisions is bounded, however fast a tenant asks: for each tenant ten
// decisions within a second; how many were left out is said with the next one, if it comes within a minute. A caller
// without a tenant may name any: what the scheduler's own bound refuses, whatever the tenant, is counted as that of one
// tenant, and so is what comes while kMostTenants are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "core/scheduler/reasons.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/store_copy.h"

namespace muster::scheduler {

class Refusals {
 public:
  static constexpr size_t kMostTenants = 1'000;

  struct Told {
    MonoTime since;  // of the second that is counted
    int32_t told = 0;
    int64_t left_out = 0;

    MUSTER_FIELDS(Told, since, told, left_out)
  };
  struct State {
    std::map<std::string, Told> tenants;  // at most kMostTenants, and one for all others

    MUSTER_FIELDS(State, tenants)
  };

  explicit Refusals(State state) : state_(std::move(state)) {}

  // A request of the tenant for the object was refused with this status.
  void Tell(const std::string& tenant, const ObjectId& object, Reason reason, const Status& status, StepContext& ctx);

  const State& state() const { return state_; }

 private:
  // What counts for the refusal, within its second.
  Told& Count(const std::string& tenant, const Status& status, MonoTime now);

  State state_;
};

}  // namespace muster::scheduler
