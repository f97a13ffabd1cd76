#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "base/probe.h"
#include "cli/verbs.h"
#include "host/json_object.h"
#include "host/pool.h"
#include "host/system_clock.h"
#include "sim/campaign.h"
#include "sim/counter_world.h"
#include "sim/failures_world.h"
#include "sim/loop_world.h"
#include "sim/losses_world.h"
#include "sim/provider_world.h"
#include "sim/scheduler_world.h"
#include "sim/shard_world.h"

namespace muster::cli {
namespace {

struct Flags {
  uint64_t seeds = 1000;
  uint64_t first_seed = 0;
  uint64_t repeats = 2;
  uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::string> mutants;
  bool until_failure = false;
  std::string journal;
  std::string output = "text";
};

// Runs one seed; the cores of a world that can write journals write them below `journal`, if given.
using RunWorld = std::function<sim::RunResult(uint64_t seed, const std::string& journal)>;
enum class Journals : uint8_t { kWritten, kNone };

std::string ReplayCommand(const std::string& scenario, const Flags& flags, uint64_t seed) {
  std::string command = fmt::format("muster sim {} --first-seed {} --seeds 1", scenario, seed);
  for (const std::string& mutant : flags.mutants) command += " --mutant " + mutant;
  return command;
}

// A line on standard error every two seconds; on a terminal it rewrites itself.
class Progress {
 public:
  explicit Progress(uint64_t seeds) : seeds_(seeds), next_(clock_.Read().mono + 2s) {}
  ~Progress() {
    if (terminal_ && shown_) fmt::print(stderr, "\n");
  }
  void Show(uint64_t done) {
    if (clock_.Read().mono < next_) return;
    next_ = clock_.Read().mono + 2s;
    shown_ = true;
    fmt::print(stderr, "{}{} of {} seeds{}", terminal_ ? "\r" : "", done, seeds_, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  const uint64_t seeds_;
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  const host::SystemClock clock_;
  MonoTime next_;
  bool shown_ = false;
};

std::string Describe(const std::string& scenario, const Flags& flags, const sim::CampaignReport& report,
                     double seconds) {
  const sim::RunResult& total = report.total;
  const double runs = static_cast<double>(flags.repeats);
  std::string text =
      fmt::format("{}: {} seeds, {} failed\n", scenario, report.seeds_run, report.failures.size()) +
      fmt::format("  event-log hash   {:016x}\n", total.log_hash) +
      fmt::format("  events           {} ({:.2f} million a second over {} threads, {} runs a seed)\n", total.events,
                  static_cast<double>(total.events) * runs / seconds / 1e6, flags.threads, flags.repeats) +
      fmt::format("  simulated        {:.1f} hours\n", std::chrono::duration<double>(total.simulated).count() / 3600) +
      fmt::format("  faults           {} crashes, {} of {} messages lost, {} doubled\n", total.crashes,
                  total.messages_lost, total.messages, total.messages_doubled) +
      fmt::format("  checks           {}\n", total.steps_checked);
  if (!faults::Compiled()) text += "  probes           not in this build; `./dev sim` runs the build that has them\n";
  for (const auto& [name, hits] : faults::ProbeHits()) text += fmt::format("  probe {:<26} {}\n", name, hits);
  for (size_t i = 0; i < std::min<size_t>(report.failures.size(), 10); ++i) {
    const sim::SeedFailure& failure = report.failures[i];
    text += fmt::format("seed {}: {}\n  again: {}\n", failure.seed, failure.what,
                        ReplayCommand(scenario, flags, failure.seed));
  }
  return text;
}

std::string ToJson(const std::string& scenario, const sim::CampaignReport& report, double seconds) {
  host::JsonObject json;
  json.Add("scenario", scenario)
      .Add("seeds", report.seeds_run)
      .Add("failed", report.failures.size())
      .Add("hash", fmt::format("{:016x}", report.total.log_hash))
      .Add("events", report.total.events)
      .Add("seconds", seconds)
      .Add("crashes", report.total.crashes)
      .Add("messages", report.total.messages)
      .Add("messages_lost", report.total.messages_lost)
      .Add("messages_doubled", report.total.messages_doubled)
      .Add("checks", report.total.steps_checked);
  if (!report.failures.empty()) {
    json.Add("first_failed_seed", report.failures.front().seed).Add("first_failure", report.failures.front().what);
  }
  return json.Take() + "\n";
}

Result<int> RunScenario(const std::string& name, const RunWorld& run, const Flags& flags) {
  if (flags.seeds == 0 || flags.seeds > 1'000'000'000'000) return InvalidArgument("--seeds must be from 1 to 10^12");
  if (flags.repeats == 0 || flags.repeats > 1000) return InvalidArgument("--repeats must be from 1 to 1000");
  if (flags.threads == 0 || flags.threads > 256) return InvalidArgument("--threads must be from 1 to 256");
  if (!flags.journal.empty() && (flags.seeds != 1 || flags.repeats != 1)) {
    return InvalidArgument("--journal records one run: give --seeds 1 --repeats 1 and the seed as --first-seed");
  }
  if (!flags.mutants.empty() && !faults::Compiled()) {
    return InvalidArgument("--mutant needs a build with planted bugs; run it as `./dev sim ...`");
  }
  for (const std::string& mutant : flags.mutants) faults::SetMutant(mutant, true);
  host::Pool pool(flags.threads);
  const host::SystemClock clock;
  const MonoTime start = clock.Read().mono;
  sim::CampaignReport report;
  {
    Progress progress(flags.seeds);
    report = sim::RunCampaign([&](uint64_t seed) { return run(seed, flags.journal); },
                              {.first_seed = flags.first_seed,
                               .seeds = flags.seeds,
                               .repeats = static_cast<uint32_t>(flags.repeats),
                               .stop_at_failure = flags.until_failure,
                               .progress = [&](uint64_t done) { progress.Show(done); }},
                              pool);
  }
  const std::vector<std::string> reached = faults::MutantsSeen();
  for (const std::string& mutant : flags.mutants) {
    if (std::ranges::find(reached, mutant) != reached.end()) continue;
    return InvalidArgument(fmt::format("--mutant {}: no planted bug of that name was passed; in this scenario: {}",
                                       mutant, fmt::join(reached, ", ")));
  }
  const double seconds = std::chrono::duration<double>(clock.Read().mono - start).count();
  Print(flags.output == "json" ? ToJson(name, report, seconds) : Describe(name, flags, report, seconds));
  return report.failures.empty() ? kOk : kFailed;
}

void AddScenario(Verb& sim, const std::string& name, const std::string& summary, Journals journals, RunWorld run) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = sim.AddVerb(name, summary);
  verb.Option("--seeds", flags->seeds, "How many seeds to run")
      .Option("--first-seed", flags->first_seed, "The first of them")
      .Option("--repeats", flags->repeats, "Runs of each seed; all must give the same event-log hash")
      .Option("--threads", flags->threads, "Seeds run at once; the report does not depend on it")
      .Option("--mutant", flags->mutants, "Switch on a planted bug, to see that it is found; may be repeated")
      .Flag("--until-failure", flags->until_failure, "Stop soon after the first seed that fails")
      .Choice("-o,--output", flags->output, {"text", "json"}, "Form of the report")
      .Example(fmt::format("muster sim {} --seeds 10000", name));
  if (journals == Journals::kWritten) {
    verb.Path("--journal", flags->journal, "Write what each core saw below this directory, for muster replay")
        .Example(fmt::format("muster sim {} --first-seed 17 --seeds 1 --repeats 1 --journal DIR", name));
  }
  verb.Run([flags, name, run = std::move(run)] { return RunScenario(name, run, *flags); });
}

}  // namespace

void AddSim(CommandLine& app) {
  Verb sim = app.AddVerb("sim", "Run a scenario on virtual time with faults, many seeds, and say what broke")
                 .Example("muster sim counter --seeds 10000");
  AddScenario(sim, "counter", "Two counters that mirror each other, under crashes and a bad network",
              Journals::kWritten, [](uint64_t seed, const std::string& journal) {
                return sim::RunCounterWorld(seed, {.journal_directory = journal});
              });
  AddScenario(sim, "provider",
              "Three shards, one of them a zombie, against the provider under crashes and a bad network",
              Journals::kWritten, [](uint64_t seed, const std::string& journal) {
                return sim::RunProviderWorld(seed, {.journal_directory = journal});
              });
  AddScenario(sim, "shard", "Two shards and a zombie, their provider and four clusters, under every fault",
              Journals::kWritten, [](uint64_t seed, const std::string& journal) {
                return sim::RunShardWorld(seed, {.journal_directory = journal});
              });
  AddScenario(sim, "scheduler", "Two schedulers on one store, five agents and their clients, under every fault",
              Journals::kWritten, [](uint64_t seed, const std::string& journal) {
                return sim::RunSchedulerWorld(seed, {.journal_directory = journal});
              });
  AddScenario(sim, "failures", "A shard of whose provider or clusters a part fails while demand grows", Journals::kNone,
              [](uint64_t seed, const std::string&) { return sim::RunFailuresWorld(seed); });
  AddScenario(sim, "losses", "A shard whose provider fails, forgets or loses machines in masses", Journals::kNone,
              [](uint64_t seed, const std::string&) { return sim::RunLossesWorld(seed); });
  AddScenario(sim, "breathing", "Two clusters that want more and less in turn for a day", Journals::kNone,
              [](uint64_t seed, const std::string&) { return sim::RunBreathingWorld(seed); });
  AddScenario(sim, "loop", "The whole loop: two clusters share a fleet whose machines join them, under every fault",
              Journals::kNone, [](uint64_t seed, const std::string&) { return sim::RunLoopWorld(seed); });
  AddScenario(sim, "agents", "Two schedulers and the agents that ship on five computers, under every fault",
              Journals::kNone, [](uint64_t seed, const std::string&) { return sim::RunAgentsWorld(seed); });
}

}  // namespace muster::cli
