#include "bench/line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "host/json_object.h"

namespace muster::bench {
namespace {

// Three digits are what a repeated run confirms.
std::string Micros(double us) {
  if (us < 1000) return fmt::format("{:.3g} us", us);
  if (us < 1'000'000) return fmt::format("{:.3g} ms", us / 1000);
  return fmt::format("{:.3g} s", us / 1'000'000);
}

}  // namespace

void Outcomes::Count(engine::ActionKind kind) {
  switch (kind) {
    case engine::ActionKind::kBootstrap: ++bootstraps; break;
    case engine::ActionKind::kProvision: ++provisions; break;
    case engine::ActionKind::kPreempt: ++preempts; break;
    case engine::ActionKind::kReclaim: ++reclaims; break;
    case engine::ActionKind::kDelete: ++deletes; break;
  }
}

double Percentile(std::vector<double> samples, double p) {
  MUSTER_CHECK(!samples.empty() && p > 0 && p <= 100);
  const auto rank = static_cast<size_t>(std::ceil(p / 100 * static_cast<double>(samples.size())));
  const auto at = samples.begin() + static_cast<ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::ranges::nth_element(samples, at);
  return *at;
}

std::string ToJson(const Line& line) {
  host::JsonObject json;
  json.Add("shape", line.shape)
      .Add("temp", line.temp)
      .Add("engine", line.engine)
      .Add("workers", line.workers)
      .Add("scale", line.scale)
      .Add("machines", line.machines)
      .Add("needs", line.needs)
      .Add("needs_decided", line.decided)
      .Add("clusters", line.clusters)
      .Add("samples", line.micros.size())
      .Add("p50_us", Percentile(line.micros, 50))
      .Add("p90_us", Percentile(line.micros, 90))
      .Add("p99_us", Percentile(line.micros, 99))
      .Add("max_us", Percentile(line.micros, 100));
  if (!line.cpu_micros.empty()) {
    json.Add("p50_cpu_us", Percentile(line.cpu_micros, 50)).Add("p99_cpu_us", Percentile(line.cpu_micros, 99));
  }
  if (line.settle_max_us) json.Add("settle_max_us", *line.settle_max_us);
  if (line.quiet_us) json.Add("quiet_us", *line.quiet_us);
  if (line.allocs) json.Add("allocs_per_cycle", *line.allocs).Add("allocs_p50", *line.allocs_p50);
  json.Add("hot_bytes_per_machine", line.hot_bytes_per_machine)
      .Add("rss_mb", line.rss_mb)
      .Add("conflict_fraction", line.conflict_fraction)
      .Add("retries", line.retries)
      .Add("proposal_us_basic", line.proposal_us_basic)
      .Add("proposal_us_gang", line.proposal_us_gang)
      .Add("displacements", line.displacements)
      .Add("bootstraps", line.outcomes.bootstraps)
      .Add("provisions", line.outcomes.provisions)
      .Add("preempts", line.outcomes.preempts)
      .Add("reclaims", line.outcomes.reclaims)
      .Add("deletes", line.outcomes.deletes)
      .Add("unsatisfied", line.outcomes.unsatisfied)
      .Add("cost_per_hour", line.cost_per_hour)
      .Add("digest", fmt::format("{:016x}", line.digest));
  return json.Take() + "\n";
}

std::string TableHead() {
  return fmt::format("{:<22} {:<6} {:>9} {:>7} {:>7}  {:>8} {:>8} {:>8} {:>8}  {:>8} {:>7}  {}\n", "shape", "temp",
                     "machines", "needs", "samples", "p50", "p90", "p99", "max", "allocs", "rss MB",
                     "boot/prov/preempt/reclaim/delete/short  digest");
}

std::string TableRow(const Line& line) {
  const Outcomes& o = line.outcomes;
  return fmt::format(
      "{:<22} {:<6} {:>9} {:>7} {:>7}  {:>8} {:>8} {:>8} {:>8}  {:>8} {:>7.0f}  {}/{}/{}/{}/{}/{}  {:016x}\n",
      line.shape, line.temp, line.machines, line.needs, line.micros.size(), Micros(Percentile(line.micros, 50)),
      Micros(Percentile(line.micros, 90)), Micros(Percentile(line.micros, 99)), Micros(Percentile(line.micros, 100)),
      line.allocs ? fmt::format("{:.0f}", *line.allocs) : "-", line.rss_mb, o.bootstraps, o.provisions, o.preempts,
      o.reclaims, o.deletes, o.unsatisfied, line.digest);
}

}  // namespace muster::bench
