#include "bench/gpu_trace.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <numeric>
#include <sstream>

#include "base/rng.h"
#include "host/text_file.h"
#include "placement/fast/placer.h"

namespace muster::bench {
namespace {

using placement::Kind;
using placement::KindIndex;
using placement::Node;
using placement::Unit;

constexpr int64_t kMebiMilli = (int64_t{1} << 20) * 1000;

using Row = std::vector<std::string>;

// The rows below the head, each with as many fields as the head.
Result<std::vector<Row>> ReadCsv(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(path));
  std::vector<Row> rows;
  std::istringstream lines(text);
  size_t width = 0;
  for (std::string line; std::getline(lines, line);) {
    Row row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    if (line.ends_with(',')) row.emplace_back();
    if (width == 0) width = row.size();
    if (row.size() != width) {
      return InvalidArgument(
          fmt::format("{}: line {} has {} fields, the first has {}", path, rows.size() + 1, row.size(), width));
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return InvalidArgument(path + ": there is no head");
  rows.erase(rows.begin());
  return rows;
}

Result<int64_t> Number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    return InvalidArgument(fmt::format("{} is not a whole number", text));
  }
  return number;
}

Status ReadNodes(const std::string& path, GpuTrace& trace) {
  auto rows = ReadCsv(path);
  if (!rows) return rows.error();
  for (const Row& row : *rows) {
    Node& node = trace.world.nodes.emplace_back();
    node.id = row[0];
    const auto cpu = Number(row[1]);
    const auto memory = Number(row[2]);
    const auto devices = Number(row[3]);
    if (!cpu || !memory || !devices) return InvalidArgument(fmt::format("{}: node {}", path, node.id)).error();
    node.total = {{"cpu", *cpu}, {"memory", *memory * kMebiMilli}};
    node.labels["gpu-model"] = row[4];
    node.devices.assign(static_cast<size_t>(*devices), 1000);
    trace.capacity += *devices * 1000;
  }
  return {};
}

Status ReadPods(const std::string& path, GpuTrace& trace) {
  auto rows = ReadCsv(path);
  if (!rows) return rows.error();
  placement::KindTable kinds;
  std::vector<int64_t> times;
  for (const Row& row : *rows) {
    const auto cpu = Number(row[1]);
    const auto memory = Number(row[2]);
    const auto devices = Number(row[3]);
    const auto milli = Number(row[4]);
    if (!cpu || !memory || !devices || !milli) return InvalidArgument(fmt::format("{}: pod {}", path, row[0])).error();
    Kind kind;
    kind.request = {{"cpu", *cpu}, {"memory", *memory * kMebiMilli}};
    const bool part = *devices == 1 && *milli < 1000;
    (part ? kind.devices.milli : kind.devices.whole) = static_cast<int32_t>(part ? *milli : *devices);
    const KindIndex index = kinds.Add(kind);
    times.resize(kinds.kinds().size());
    ++times[index.value()];
    trace.pods.push_back(index);
  }
  trace.world.kinds = kinds.Take();
  for (size_t i = 0; i < times.size(); ++i) {
    const Kind& kind = trace.world.kinds[i];
    trace.policy.device_mix.push_back({.request = kind.request, .devices = kind.devices, .weight = times[i]});
  }
  return {};
}

int64_t MilliOf(const Kind& kind) { return kind.devices.whole * int64_t{1000} + kind.devices.milli; }

}  // namespace

Result<GpuTrace> ReadGpuTrace(const std::string& folder) {
  GpuTrace trace;
  if (const Status status = ReadNodes(folder + "/gpu-trace-nodes.csv", trace); !status.ok())
    return std::unexpected(status);
  if (const Status status = ReadPods(folder + "/gpu-trace-pods.csv", trace); !status.ok())
    return std::unexpected(status);
  return trace;
}

std::vector<Unit> Arrivals(const GpuTrace& trace, uint64_t seed) {
  Rng rng(seed);
  std::vector<KindIndex> kinds = trace.pods;
  rng.Shuffle(std::span(kinds));
  int64_t asked = 0;
  for (const KindIndex kind : kinds) asked += MilliOf(trace.world.kinds[kind.value()]);
  while (asked * 10 < trace.capacity * 13) {
    kinds.push_back(trace.pods[rng.Below(trace.pods.size())]);
    asked += MilliOf(trace.world.kinds[kinds.back().value()]);
  }
  std::vector<Unit> units;
  for (const KindIndex kind : kinds) units.push_back({.id = fmt::format("pod-{:05}", units.size()), .kind = kind});
  return units;
}

TraceResult RunTrace(const GpuTrace& trace, const std::vector<Unit>& arrivals) {
  placement::fast::Placer placer(trace.policy);
  placer.Load(trace.world);
  int64_t milli = 0;
  TraceResult result;
  std::vector<placement::Outcome> outcomes;
  for (const Unit& unit : arrivals) {
    outcomes.push_back(std::move(placer.Place({&unit, 1}).front()));
    if (outcomes.back().node.empty()) continue;
    ++result.placed;
    milli += MilliOf(trace.world.kinds[unit.kind.value()]);
  }
  result.allocated = 100.0 * static_cast<double>(milli) / static_cast<double>(trace.capacity);
  result.digest = placement::Digest(outcomes);
  return result;
}

}  // namespace muster::bench
