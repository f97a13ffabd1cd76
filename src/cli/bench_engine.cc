// `muster bench engine`: the decision engine on the shapes of docs/benchmarks.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/engine_bench.h"
#include "cli/bench.h"
#include "host/pool.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string shape;
  std::string engine = "fast";
  uint64_t workers = 1;
  double seconds = 10;
  double scale = 1;
  double surplus_hold = -1;
  bool json = false;
};

std::vector<std::string_view> ShapeNames() {
  std::vector<std::string_view> names;
  for (const bench::Plan& plan : bench::Plans()) names.push_back(plan.shape);
  return names;
}

Status Check(const Flags& flags) {
  constexpr double kMostSeconds = 86'400;
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  const std::vector<std::string_view> names = ShapeNames();
  if (flags.shape.empty()) return bad("say which shape with --shape NAME, or --shape all");
  if (flags.shape != "all" && std::ranges::find(names, flags.shape) == names.end()) {
    return bad(fmt::format("--shape {}: there is no such shape; write all, or one of {}", flags.shape,
                           fmt::join(names, ", ")));
  }
  // Written so that NaN is refused too.
  if (!(flags.scale >= 0.0001 && flags.scale <= 10)) return bad("--scale must be from 0.0001 to 10");
  if (!(flags.seconds > 0 && flags.seconds <= kMostSeconds)) return bad("--seconds must be above 0 and at most 86400");
  if (flags.workers == 0 || flags.workers > 64) return bad("--workers must be from 1 to 64");
  if (flags.surplus_hold != -1 && !(flags.surplus_hold >= 0 && flags.surplus_hold <= kMostSeconds)) {
    return bad("--surplus-hold must be from 0 to 86400 seconds");
  }
  return {};
}

Result<int> BenchEngine(const Flags& flags) {
  if (Status status = Check(flags); !status.ok()) return std::unexpected(std::move(status));
  bench::EngineOptions options{.engine = flags.engine, .seconds = flags.seconds, .scale = flags.scale};
  if (flags.surplus_hold >= 0) {
    options.surplus_hold = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.surplus_hold));
  }
  host::Pool pool(flags.workers);
  if (!flags.json) Print(bench::TableHead());
  const auto see = [&](const bench::Line& line) {
    Print(flags.json ? bench::ToJson(line) : bench::TableRow(line));
    std::fflush(stdout);
  };
  int code = kOk;
  for (const bench::Plan& plan : bench::Plans()) {
    if (flags.shape != "all" && flags.shape != plan.shape) continue;
    Status status = bench::RunEngineShape(plan, options, pool, see);
    if (status.ok()) continue;
    if (flags.shape != "all") return std::unexpected(std::move(status));
    fmt::print(stderr, "muster: {}\n", status.message());
    code = kFailed;
  }
  return code;
}

}  // namespace

void AddBenchEngine(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  bench.AddVerb("engine", "Measure the decision engine: cold, full and warm cycles")
      .Option("--shape", flags->shape, "Which shape, or all of them")
      .Choice("--engine", flags->engine, {"fast", "reference"}, "Which engine decides")
      .Option("--workers", flags->workers, "Threads that decide; the answers do not depend on it")
      .Option("--seconds", flags->seconds, "How long to take samples for each line")
      .Option("--scale", flags->scale, "Multiplies machines and clusters")
      .Option("--surplus-hold", flags->surplus_hold,
              "Seconds surplus is kept; -1 takes what the shape is measured with")
      .Flag("--json", flags->json, "One JSON object a line instead of a table")
      .Example("muster bench engine --shape uber-50k --seconds 30")
      .Example("muster bench engine --shape all --scale 0.1 --json | jq -c '[.shape,.temp,.p99_us]'")
      .Example("muster bench engine --shape colocated-5k --engine reference")
      .Run([flags]() -> Result<int> { return BenchEngine(*flags); });
}

}  // namespace muster::cli
