// StepContext: what every part of the scheduler is given for the length of one step: the time, and where its effects
// and counts go.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/scheduler/snapshot.h"
#include "core/scheduler/types.h"

namespace muster::scheduler {

struct StepContext {
  const Now now;
  std::vector<Effect>& effects;
  Counters& counters;

  void Emit(Effect effect) { effects.push_back(std::move(effect)); }
  void Note(std::string what, std::string subject, std::string detail) {
    Emit(Notice{.what = std::move(what), .subject = std::move(subject), .detail = std::move(detail)});
  }
};

}  // namespace muster::scheduler
