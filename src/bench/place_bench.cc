#include "bench/place_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/gpu_trace.h"
#include "bench/process.h"
#include "host/json_object.h"
#include "host/system_clock.h"
#include "placement/fast/placer.h"
#include "placement/reference/place.h"
#include "placement/shapes/shapes.h"

namespace muster::bench {
namespace {

using placement::Outcome;
using placement::shapes::Filled;
using placement::shapes::Shape;

constexpr std::string_view kUnique = "-unique";
constexpr std::string_view kGpuTrace = "gpu-trace";

struct Sample {
  double build_us = 0;
  double all_us = 0;
  double cpu_us = 0;
  std::vector<Outcome> outcomes;
};

double Micros(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

Sample TakeSample(const Filled& filled, const PlaceOptions& options) {
  const host::SystemClock clock;
  Sample sample;
  if (options.placer == "reference") {
    placement::World world = filled.world;
    const MonoTime start = clock.Read().mono;
    const Duration cpu = ThreadCpuTime();
    sample.outcomes = placement::reference::Place(world, filled.pending, filled.policy);
    sample.all_us = Micros(clock.Read().mono - start);
    sample.cpu_us = Micros(ThreadCpuTime() - cpu);
    return sample;
  }
  const MonoTime start = clock.Read().mono;
  const Duration cpu = ThreadCpuTime();
  placement::fast::Placer placer(filled.policy);
  placer.Load(filled.world);
  sample.build_us = Micros(ThreadCpuTime() - cpu);
  sample.outcomes = placer.Place(filled.pending);
  sample.all_us = Micros(clock.Read().mono - start);
  sample.cpu_us = Micros(ThreadCpuTime() - cpu);
  return sample;
}

double Middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

PlaceLine Measure(std::string_view name, const Filled& filled, const PlaceOptions& options) {
  PlaceLine line{.shape = std::string(name), .placer = options.placer};
  line.nodes = filled.world.nodes.size();
  line.pending = filled.pending.size();
  std::vector<double> all;
  std::vector<double> build;
  std::vector<double> cpu;
  double spent = 0;
  do {
    const Sample sample = TakeSample(filled, options);
    all.push_back(sample.all_us);
    build.push_back(sample.build_us);
    cpu.push_back(sample.cpu_us);
    spent += sample.all_us;
    line.digest = placement::Digest(sample.outcomes);
    line.placed = static_cast<size_t>(
        std::ranges::count_if(sample.outcomes, [](const Outcome& outcome) { return !outcome.node.empty(); }));
  } while (spent < options.seconds * 1e6);
  line.samples = all.size();
  const auto rate = [&](double micros) { return static_cast<double>(line.pending) / micros * 1e6; };
  line.rate_per_s = rate(Middle(all));
  line.cpu_rate_per_s = rate(Middle(cpu));
  line.best_per_s = rate(*std::ranges::min_element(all));
  line.build_us = Middle(build);
  return line;
}

Result<PlaceLine> MeasureTrace(const PlaceOptions& options) {
  if (options.data.empty()) return InvalidArgument("gpu-trace reads its files: say where they are with --data DIR");
  MUSTER_ASSIGN_OR_RETURN(const GpuTrace trace, ReadGpuTrace(options.data));
  PlaceLine line{.shape = std::string(kGpuTrace), .placer = "fast", .nodes = trace.world.nodes.size()};
  const host::SystemClock clock;
  double share = 0;
  double descent = 0;
  double micros = 0;
  double cpu_micros = 0;
  for (uint64_t seed = options.first_seed; seed <= options.last_seed; ++seed) {
    const std::vector<placement::Unit> arrivals = Arrivals(trace, seed);
    const MonoTime start = clock.Read().mono;
    const Duration cpu = ThreadCpuTime();
    const TraceResult result = RunTrace(trace, arrivals);
    micros += Micros(clock.Read().mono - start);
    cpu_micros += Micros(ThreadCpuTime() - cpu);
    share += result.allocated;
    descent += RunDescent(trace, arrivals);
    line.pending += arrivals.size();
    line.placed += result.placed;
    line.digest ^= result.digest;
    ++line.samples;
  }
  line.rate_per_s = static_cast<double>(line.pending) / micros * 1e6;
  line.cpu_rate_per_s = static_cast<double>(line.pending) / cpu_micros * 1e6;
  line.best_per_s = line.rate_per_s;
  line.gpu_allocated = share / static_cast<double>(line.samples);
  line.descent = descent / static_cast<double>(line.samples);
  return line;
}

}  // namespace

std::vector<std::string> PlaceShapes() {
  std::vector<std::string> names;
  for (const Shape& shape : placement::shapes::Shapes()) {
    names.emplace_back(shape.name);
    names.push_back(std::string(shape.name) + std::string(kUnique));
  }
  names.emplace_back(kGpuTrace);
  return names;
}

Result<PlaceLine> RunPlaceShape(std::string_view name, const PlaceOptions& options) {
  if (name == kGpuTrace) return MeasureTrace(options);
  const bool unique = name.ends_with(kUnique);
  const std::string_view base = unique ? name.substr(0, name.size() - kUnique.size()) : name;
  for (const Shape& shape : placement::shapes::Shapes()) {
    if (shape.name == base) return Measure(name, shape.build(options.scale, unique), options);
  }
  return InvalidArgument(fmt::format("there is no shape {}", name));
}

std::string ToJson(const PlaceLine& line) {
  host::JsonObject json;
  json.Add("shape", line.shape).Add("placer", line.placer).Add("nodes", line.nodes).Add("pending", line.pending);
  json.Add("placed", line.placed).Add("samples", line.samples).Add("rate_per_s", line.rate_per_s);
  json.Add("cpu_rate_per_s", line.cpu_rate_per_s);
  json.Add("best_per_s", line.best_per_s).Add("build_us", line.build_us).Add("workers", line.workers);
  if (line.gpu_allocated) json.Add("gpu_allocated", *line.gpu_allocated);
  if (line.descent) json.Add("gpu_allocated_descent", *line.descent);
  return json.Add("digest", fmt::format("{:016x}", line.digest)).Take() + "\n";
}

std::string PlaceTableHead() {
  return fmt::format("{:<26} {:>8} {:>9} {:>9} {:>8} {:>12} {:>12} {:>12} {:>11}  {}\n", "shape", "nodes", "pending",
                     "placed", "samples", "units/s", "by cpu time", "best", "index ms", "digest");
}

std::string PlaceTableRow(const PlaceLine& line) {
  std::string row = fmt::format("{:<26} {:>8} {:>9} {:>9} {:>8} {:>12.0f} {:>12.0f} {:>12.0f} {:>11.2f}  {:016x}",
                                line.shape, line.nodes, line.pending, line.placed, line.samples, line.rate_per_s,
                                line.cpu_rate_per_s, line.best_per_s, line.build_us / 1e3, line.digest);
  if (line.gpu_allocated) {
    row += fmt::format("  devices {:.2f} %, by descent {:.2f} %", *line.gpu_allocated, *line.descent);
  }
  return row + "\n";
}

}  // namespace muster::bench
