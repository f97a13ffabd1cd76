#include "bench/setup.h"

#include <cmath>
#include <numeric>

#include "base/check.h"
#include "bench/process.h"
#include "engine/fast/catalogue.h"
#include "engine/shapes/shapes.h"

namespace muster::bench {
namespace {

engine::Scale ScaleOf(double scale) {
  constexpr int64_t kParts = 1'000'000;
  return {.times = std::llround(scale * static_cast<double>(kParts)), .parts = kParts};
}

const engine::Shape& ShapeOf(const Plan& plan) {
  const engine::Shape* shape = engine::FindShape(plan.shape);
  MUSTER_CHECK(shape != nullptr, "{} has a plan and no shape", plan.shape);
  return *shape;
}

}  // namespace

Setup::Setup(const Plan& plan_of, const EngineOptions& options_of, Parallel& parallel_of)
    : plan(plan_of),
      options(options_of),
      parallel(parallel_of),
      policy{.surplus_hold = options_of.surplus_hold.value_or(plan_of.surplus_hold)},
      world(ShapeOf(plan_of).build(ScaleOf(options_of.scale))),
      rollups(world) {
  for (const model::Machine& machine : world.machines) {
    digests.push_back(model::DigestOf(machine));
  }
  resident_before = ResidentBytes();
}

Line Setup::NewLine(std::string_view temp) const {
  return {.shape = std::string(plan.shape),
          .temp = std::string(temp),
          .engine = options.engine,
          .workers = parallel.width(),
          .scale = options.scale,
          .machines = world.machines.size(),
          .needs = rollups.rows(),
          .clusters = world.clusters.size()};
}

void Meter::Start() {
  allocations_before_ = Allocations();
  cpu_start_ = ThreadCpuTime();
  start_ = clock_.Read().mono;
}

void Meter::Stop() {
  const MonoTime end = clock_.Read().mono;
  cpu_micros_.push_back(std::chrono::duration<double, std::micro>(ThreadCpuTime() - cpu_start_).count());
  if (allocations_before_) allocations_.push_back(static_cast<double>(*Allocations() - *allocations_before_));
  micros_.push_back(std::chrono::duration<double, std::micro>(end - start_).count());
}

void Meter::DropLast() {
  micros_.pop_back();
  cpu_micros_.pop_back();
  if (!allocations_.empty()) allocations_.pop_back();
}

void Meter::Tell(Line& line) const {
  line.micros = micros_;
  line.cpu_micros = cpu_micros_;
  if (allocations_.empty()) return;
  line.allocs =
      std::accumulate(allocations_.begin(), allocations_.end(), 0.0) / static_cast<double>(allocations_.size());
  line.allocs_p50 = Percentile(allocations_, 50);
}

Status SampleFor(double seconds, size_t least, size_t most, const std::function<Status()>& sample) {
  const host::SystemClock clock;
  const MonoTime end = clock.Read().mono + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  for (size_t taken = 0; taken < least || (taken < most && clock.Read().mono < end); ++taken) {
    MUSTER_RETURN_IF_ERROR(sample());
  }
  return {};
}

}  // namespace muster::bench
