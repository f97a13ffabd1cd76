// What every world with faults does with its time: phases one after the other, until its judge has found something; and
// what it reports then.
#pragma once

#include <functional>
#include <vector>

#include "base/time.h"
#include "sim/campaign.h"
#include "sim/kernel.h"
#include "sim/network.h"

namespace muster::sim {

struct Phase {
  std::function<void()> begin;  // may be empty
  Duration lasts{};
};

// `judge` has failure() and checks(). `result` has what the world counts itself.
template <class Judge>
RunResult RunPhases(Kernel& kernel, const Network& network, const Judge& judge, const RunResult& result,
                    const std::vector<Phase>& phases) {
  const auto broken = [&judge] { return judge.failure().has_value(); };
  const MonoTime start = kernel.now().mono;
  MonoTime end = start;
  for (const Phase& phase : phases) {
    if (broken()) break;
    if (phase.begin) phase.begin();
    end += phase.lasts;
    if (!broken()) kernel.RunUntil(end, broken);
  }
  return {.log_hash = kernel.log_hash(),
          .events = kernel.events_run(),
          .steps_checked = judge.checks(),
          .crashes = result.crashes,
          .messages = network.sent(),
          .messages_lost = network.lost(),
          .messages_doubled = network.doubled(),
          .simulated = kernel.now().mono - start,
          .failure = judge.failure()};
}

}  // namespace muster::sim
