#include "bench/plan_bench.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "bench/line.h"
#include "bench/plan_shapes.h"
#include "host/json_object.h"
#include "model/money.h"

namespace muster::bench {
namespace {

double MicrosSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

Result<PlanLine> RunPlanShape(std::string_view shape, const PlanOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(planner::Request request, MakePlanShape(shape, options.data_dir));
  request.effort = options.effort;
  PlanLine line{.shape = std::string(shape), .effort = std::string(planner::EffortName(options.effort))};
  line.workloads = request.pending.size();
  MUSTER_ASSIGN_OR_RETURN(const planner::Plan replayed, planner::MakePlan(request));
  line.pending = replayed.replay.pending_at_first;
  line.added_machines = replayed.replay.machines_added;
  line.added_per_hour = model::ToDollars(replayed.replay.cost_added);
  request.exact = !options.replay;
  const auto began = std::chrono::steady_clock::now();
  do {
    const auto start = std::chrono::steady_clock::now();
    MUSTER_ASSIGN_OR_RETURN(const planner::Plan plan, planner::MakePlan(request));
    line.micros.push_back(MicrosSince(start));
    const uint64_t digest = Digest(plan);
    if (line.micros.size() > 1 && digest != line.digest) {
      return Error(Code::kInternal, fmt::format("{}: two runs of one request gave different plans", shape));
    }
    line.digest = digest;
    line.unplaced = plan.unplaced.size();
    line.machines = plan.machines.size() - static_cast<size_t>(plan.replay.machines_added);
    line.cost_per_hour = model::ToDollars({plan.cost_machines.micros - plan.replay.cost_added.micros});
    line.bound_per_hour = model::ToDollars(plan.lower_bound);
    line.steps = plan.steps;
  } while (MicrosSince(began) < options.seconds * 1e6);
  return line;
}

std::string ToJson(const PlanLine& line) {
  host::JsonObject json;
  json.Add("shape", line.shape)
      .Add("effort", line.effort)
      .Add("workloads", line.workloads)
      .Add("unplaced", line.unplaced)
      .Add("machines", line.machines)
      .Add("cost_per_hour", line.cost_per_hour)
      .Add("bound_per_hour", line.bound_per_hour)
      .Add("replay_pending", line.pending)
      .Add("replay_machines", line.added_machines)
      .Add("replay_cost_per_hour", line.added_per_hour)
      .Add("steps", line.steps)
      .Add("samples", line.micros.size())
      .Add("p50_us", Percentile(line.micros, 50))
      .Add("p99_us", Percentile(line.micros, 99))
      .Add("digest", fmt::format("{:016x}", line.digest));
  return json.Take() + "\n";
}

std::string PlanTableHead() {
  return fmt::format("{:<14} {:<6} {:>9} {:>8} {:>8} {:>12} {:>12} {:>10} {:>10}  {:<28} {}\n", "shape", "effort",
                     "workloads", "unplaced", "machines", "$/h", "bound $/h", "p50 ms", "p99 ms",
                     "replay: pending +machines +$/h", "digest");
}

std::string TableRow(const PlanLine& line) {
  return fmt::format("{:<14} {:<6} {:>9} {:>8} {:>8} {:>12.4f} {:>12.4f} {:>10.3g} {:>10.3g}  {:<28} {:016x}\n",
                     line.shape, line.effort, line.workloads, line.unplaced, line.machines, line.cost_per_hour,
                     line.bound_per_hour, Percentile(line.micros, 50) / 1000, Percentile(line.micros, 99) / 1000,
                     fmt::format("{} +{} +{:.2f}", line.pending, line.added_machines, line.added_per_hour),
                     line.digest);
}

}  // namespace muster::bench
