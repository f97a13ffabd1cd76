// StepContext: what every part of the shard is given for the length of one step: the time, and where its effects,
// durable writes, counts and requests go. The writes of a step become durable before any of its effects happens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "contract/effects.h"
#include "core/shard/cycle_timer.h"
#include "core/shard/types.h"

namespace muster::shard {

struct StepContext {
  const Now now;
  std::vector<Effect>& effects;
  CycleTimer& cycle;
  Counters& counters;
  std::vector<contract::Write> writes = {};

  void Emit(Effect effect) { effects.push_back(std::move(effect)); }
  void Write(contract::Write write) { writes.push_back(std::move(write)); }
  void Note(model::Reason reason, std::string subject, std::string detail) {
    Emit(Notice{.reason = reason, .subject = std::move(subject), .detail = std::move(detail)});
  }
};

}  // namespace muster::shard
