#include "bench/plan_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "bench/line.h"
#include "bench/plan_dump.h"
#include "bench/plan_shapes.h"
#include "bench/process.h"
#include "host/json_object.h"
#include "model/money.h"
#include "planner/consolidate.h"

namespace muster::bench {
namespace {

double MicrosSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
}

// One sample: time that passed, and time of the processor.
class Sample {
 public:
  void AddTo(PlanLine& line) const {
    line.micros.push_back(MicrosSince(began_));
    line.cpu_micros.push_back(std::chrono::duration<double, std::micro>(ThreadCpuTime() - cpu_began_).count());
  }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const Duration cpu_began_ = ThreadCpuTime();
};

constexpr int64_t kDumpNodes = 5'000;
constexpr int64_t kDumpPods = 100'000;

void Fill(const planner::Plan& plan, PlanLine& line) {
  line.unplaced = plan.unplaced.size();
  line.machines = plan.machines.size() - static_cast<size_t>(plan.replay.machines_added);
  line.cost_per_hour = model::ToDollars({plan.cost_machines.micros - plan.replay.cost_added.micros});
  line.bound_per_hour = model::ToDollars(plan.lower_bound);
  line.steps = plan.steps;
  if (!plan.replay.done) return;
  line.pending = plan.replay.pending_at_first;
  line.added_machines = plan.replay.machines_added;
  line.added_per_hour = model::ToDollars(plan.replay.cost_added);
}

void Fill(const planner::Request& request, const planner::Consolidation& answer, PlanLine& line) {
  line.machines = 0;
  line.nodes_gone = 0;
  int64_t cost = 0;
  for (const planner::Wave& wave : answer.waves) {
    line.machines += wave.machines.size();
    line.nodes_gone += wave.nodes.size();
    for (const planner::PlannedMachine& machine : wave.machines) {
      cost += request.candidates[machine.candidate].price.micros;
    }
  }
  line.cost_per_hour = model::ToDollars({cost});
  line.saved_per_hour = model::ToDollars(answer.saved);
}

uint64_t DigestOf(const planner::Consolidation& answer) {
  Hasher hasher;
  for (const planner::Wave& wave : answer.waves) {
    for (const planner::PlannedMachine& machine : wave.machines) hasher.Add(machine.candidate);
    for (const planner::Eviction& eviction : wave.evictions) {
      hasher.Add(eviction.unit);
      hasher.Add(eviction.to);
    }
    for (const std::string& node : wave.nodes) hasher.Add(node);
  }
  return hasher.value();
}

// One sample: from the dump to the answer.
Result<uint64_t> AnswerOnce(const kube::Dump& dump, const planner::Catalogue& catalogue, bool consolidate,
                            planner::Effort effort, PlanLine& line) {
  const planner::Keep keep = consolidate ? planner::Keep::kNodes : planner::Keep::kNone;
  MUSTER_ASSIGN_OR_RETURN(planner::Request request, RequestOf(dump, catalogue, keep));
  request.effort = effort;
  line.workloads = request.world.placed.size() + request.pending.size();
  if (!consolidate) {
    MUSTER_ASSIGN_OR_RETURN(const planner::Plan plan, planner::MakePlan(request));
    Fill(plan, line);
    return Digest(plan);
  }
  MUSTER_ASSIGN_OR_RETURN(const planner::Consolidation answer, planner::MakeConsolidation(request));
  Fill(request, answer, line);
  return DigestOf(answer);
}

Result<PlanLine> RunDumpShape(std::string_view shape, const PlanOptions& options) {
  if (options.data_dir.empty()) {
    return InvalidArgument(
        fmt::format("{}: its prices are read from a file: give its directory with --data DIR", shape));
  }
  MUSTER_ASSIGN_OR_RETURN(const planner::Catalogue catalogue, Ec2Catalogue(options.data_dir));
  MUSTER_ASSIGN_OR_RETURN(const ReadDump read, ReadGeneratedDump(kDumpNodes, kDumpPods));
  PlanLine line{.shape = std::string(shape), .effort = std::string(planner::EffortName(options.effort))};
  line.read_seconds = read.seconds;
  line.read_cpu_seconds = read.cpu_seconds;
  line.read_mb = read.rss_mb;
  const bool consolidate = shape.ends_with("-consolidate");
  const auto began = std::chrono::steady_clock::now();
  do {
    const Sample sample;
    MUSTER_ASSIGN_OR_RETURN(const uint64_t digest, AnswerOnce(read.dump, catalogue, consolidate, options.effort, line));
    sample.AddTo(line);
    if (line.micros.size() > 1 && digest != line.digest) {
      return Error(Code::kInternal, fmt::format("{}: two runs of one request gave different plans", shape));
    }
    line.digest = digest;
  } while (MicrosSince(began) < options.seconds * 1e6);
  return line;
}

}  // namespace

Result<PlanLine> RunPlanShape(std::string_view shape, const PlanOptions& options) {
  const auto row = std::ranges::find(PlanShapes(), shape, &PlanShape::name);
  if (row != PlanShapes().end() && row->from_dump) return RunDumpShape(shape, options);
  MUSTER_ASSIGN_OR_RETURN(planner::Request request, MakePlanShape(shape, options.data_dir));
  request.effort = options.effort;
  PlanLine line{.shape = std::string(shape), .effort = std::string(planner::EffortName(options.effort))};
  line.workloads = request.pending.size();
  MUSTER_ASSIGN_OR_RETURN(const planner::Plan replayed, planner::MakePlan(request));
  Fill(replayed, line);
  request.exact = !options.replay;
  const auto began = std::chrono::steady_clock::now();
  do {
    const Sample sample;
    MUSTER_ASSIGN_OR_RETURN(const planner::Plan plan, planner::MakePlan(request));
    sample.AddTo(line);
    const uint64_t digest = Digest(plan);
    if (line.micros.size() > 1 && digest != line.digest) {
      return Error(Code::kInternal, fmt::format("{}: two runs of one request gave different plans", shape));
    }
    line.digest = digest;
    Fill(plan, line);
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
      .Add("cpu_p50_us", Percentile(line.cpu_micros, 50))
      .Add("cpu_p99_us", Percentile(line.cpu_micros, 99))
      .Add("digest", fmt::format("{:016x}", line.digest));
  if (line.read_seconds > 0) {
    json.Add("read_us", line.read_seconds * 1e6)
        .Add("read_cpu_us", line.read_cpu_seconds * 1e6)
        .Add("read_rss_mb", line.read_mb)
        .Add("nodes_gone", line.nodes_gone)
        .Add("saved_per_hour", line.saved_per_hour);
  }
  return json.Take() + "\n";
}

std::string PlanTableHead() {
  return fmt::format("{:<21} {:<6} {:>9} {:>8} {:>8} {:>12} {:>12} {:>10} {:>10}  {:<28} {}\n", "shape", "effort",
                     "workloads", "unplaced", "machines", "$/h", "bound $/h", "p50 ms", "cpu p50",
                     "replay: pending +machines +$/h", "digest");
}

std::string TableRow(const PlanLine& line) {
  std::string row =
      fmt::format("{:<21} {:<6} {:>9} {:>8} {:>8} {:>12.4f} {:>12.4f} {:>10.3g} {:>10.3g}  {:<28} {:016x}\n",
                  line.shape, line.effort, line.workloads, line.unplaced, line.machines, line.cost_per_hour,
                  line.bound_per_hour, Percentile(line.micros, 50) / 1000, Percentile(line.cpu_micros, 50) / 1000,
                  fmt::format("{} +{} +{:.2f}", line.pending, line.added_machines, line.added_per_hour), line.digest);
  if (line.read_seconds == 0) return row;
  row += fmt::format("  read in {:.2f} s ({:.2f} s of processor time), {:.0f} MB resident", line.read_seconds,
                     line.read_cpu_seconds, line.read_mb);
  if (line.nodes_gone > 0) row += fmt::format("; {} nodes go, {:.2f} $/h saved", line.nodes_gone, line.saved_per_hour);
  return row + "\n";
}

}  // namespace muster::bench
