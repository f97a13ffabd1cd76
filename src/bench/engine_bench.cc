#include "bench/engine_bench.h"

#include "bench/fast_run.h"
#include "bench/reference_run.h"
#include "bench/setup.h"

namespace muster::bench {

Status RunEngineShape(const Plan& plan, const EngineOptions& options, Parallel& parallel,
                      const std::function<void(const Line&)>& see) {
  Setup setup(plan, options, parallel);
  return options.engine == "reference" ? RunReference(setup, see) : RunFast(setup, see);
}

}  // namespace muster::bench
