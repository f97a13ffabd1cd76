// The engine benchmark: one shape through one engine, a Line for every temperature it is measured at.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/parallel.h"
#include "base/status.h"
#include "bench/line.h"
#include "bench/plans.h"

namespace muster::bench {

struct EngineOptions {
  std::string engine = "fast";  // or "reference"
  double seconds = 10;          // of samples, for each line; a few are taken in any case
  double scale = 1;             // multiplies machines and clusters
  std::optional<Duration> surplus_hold;
};

// Calls `see` with each line as soon as it is measured. INVALID_ARGUMENT if this engine cannot do this shape in
// reasonable time; INTERNAL if two runs of the same cycle gave different answers.
Status RunEngineShape(const Plan& plan, const EngineOptions& options, Parallel& parallel,
                      const std::function<void(const Line&)>& see);

}  // namespace muster::bench
