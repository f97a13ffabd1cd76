// `muster bench place`: placement on the shapes of docs/benchmarks.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "bench/place_bench.h"
#include "cli/bench.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string shape;
  std::string placer = "fast";
  double seconds = 5;
  double scale = 1;
  std::string data;
  uint64_t first_seed = 42;
  uint64_t last_seed = 51;
  bool json = false;
};

Status Check(const Flags& flags, const std::vector<std::string>& names) {
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  if (flags.shape.empty()) return bad("say which shape with --shape NAME, or --shape all");
  if (flags.shape != "all" && std::ranges::find(names, flags.shape) == names.end()) {
    return bad(fmt::format("--shape {}: there is no such shape; write all, or one of {}", flags.shape,
                           fmt::join(names, ", ")));
  }
  // Written so that NaN is refused too.
  if (!(flags.scale >= 0.0001 && flags.scale <= 10)) return bad("--scale must be from 0.0001 to 10");
  if (!(flags.seconds > 0 && flags.seconds <= 86'400)) return bad("--seconds must be above 0 and at most 86400");
  if (flags.first_seed > flags.last_seed) return bad("--first-seed must not be above --last-seed");
  return {};
}

Result<int> BenchPlace(const Flags& flags) {
  const std::vector<std::string> names = bench::PlaceShapes();
  if (Status status = Check(flags, names); !status.ok()) return std::unexpected(std::move(status));
  const bench::PlaceOptions options{.placer = flags.placer,
                                    .seconds = flags.seconds,
                                    .scale = flags.scale,
                                    .data = flags.data,
                                    .first_seed = flags.first_seed,
                                    .last_seed = flags.last_seed};
  if (!flags.json) Print(bench::PlaceTableHead());
  for (const std::string& name : names) {
    if (flags.shape != "all" && flags.shape != name) continue;
    if (flags.shape == "all" && name == "gpu-trace" && flags.data.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(const bench::PlaceLine line, bench::RunPlaceShape(name, options));
    Print(flags.json ? bench::ToJson(line) : bench::PlaceTableRow(line));
    std::fflush(stdout);
  }
  return kOk;
}

}  // namespace

void AddBenchPlace(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  bench.AddVerb("place", "Measure placement: units decided a second, the index built in the same time")
      .Option("--shape", flags->shape, "Which shape, or all of them")
      .Choice("--placer", flags->placer, {"fast", "reference"}, "Which placer decides")
      .Option("--seconds", flags->seconds, "How long to take samples for each line")
      .Option("--scale", flags->scale, "Multiplies nodes and pending units")
      .Option("--data", flags->data, "Folder with the files of gpu-trace")
      .Option("--first-seed", flags->first_seed, "gpu-trace: the first shuffle")
      .Option("--last-seed", flags->last_seed, "gpu-trace: the last shuffle")
      .Flag("--json", flags->json, "One JSON object a line instead of a table")
      .Example("muster bench place --shape kube-5000-spread")
      .Example("muster bench place --shape all --json | jq -c '[.shape,.rate_per_s]'")
      .Example("muster bench place --shape gpu-trace --data data")
      .Run([flags]() -> Result<int> { return BenchPlace(*flags); });
}

}  // namespace muster::cli
