#include "sim/campaign.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace muster::sim {
namespace {

// Seeds between two looks at whether to stop: few at first, for most planted bugs are found soon.
constexpr uint64_t kFirstChunk = 4;
constexpr uint64_t kLargestChunk = 64;

RunResult RunRepeatedly(const Scenario& scenario, uint64_t seed, uint32_t repeats) {
  RunResult first = scenario(seed);
  for (uint32_t i = 1; i < repeats && !first.failure; ++i) {
    const RunResult again = scenario(seed);
    if (again.log_hash != first.log_hash || again.failure != first.failure) {
      first.failure = fmt::format("run {} gave event-log hash {:016x}, run 1 gave {:016x}: not deterministic", i + 1,
                                  again.log_hash, first.log_hash);
    }
  }
  return first;
}

}  // namespace

CampaignReport RunCampaign(const Scenario& scenario, const CampaignOptions& options, Parallel& parallel) {
  CampaignReport report;
  Hasher combined;
  std::vector<RunResult> results;
  uint64_t chunk = options.stop_at_failure ? kFirstChunk : kLargestChunk;
  while (report.seeds_run < options.seeds && !(options.stop_at_failure && !report.failures.empty())) {
    const uint64_t base = options.first_seed + report.seeds_run;
    results.assign(std::min(chunk, options.seeds - report.seeds_run), {});
    chunk = std::min(2 * chunk, kLargestChunk);
    parallel.For(results.size(), [&](size_t i) { results[i] = RunRepeatedly(scenario, base + i, options.repeats); });
    for (size_t i = 0; i < results.size(); ++i) {
      const RunResult& run = results[i];
      combined.Add(run.log_hash);
      report.total.events += run.events;
      report.total.steps_checked += run.steps_checked;
      report.total.crashes += run.crashes;
      report.total.messages += run.messages;
      report.total.messages_lost += run.messages_lost;
      report.total.messages_doubled += run.messages_doubled;
      report.total.simulated += run.simulated;
      if (run.failure) report.failures.push_back({.seed = base + i, .what = *run.failure});
    }
    report.seeds_run += results.size();
    if (options.progress) options.progress(report.seeds_run);
  }
  report.total.log_hash = combined.value();
  return report;
}

}  // namespace muster::sim
