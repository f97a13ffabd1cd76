#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/tls_flags.h"
#include "cli/verbs.h"
#include "contract/coordinator.h"
#include "engine/types.h"
#include "host/log_backend.h"
#include "host/role.h"
#include "host/signals.h"
#include "model/money.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/text_scalars.h"
#include "role/shard/shard_role.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string listen = ":7780";
  std::string metrics_addr = ":8780";
  std::string id = "shard-0";
  std::string data_dir;
  std::string provider_addr;
  std::string cycle_interval = "1s";
  uint64_t phase1_workers = 1;
  std::string victim_weights = "1,0.1,0.1,0.1";
  std::vector<std::string> own;
  int64_t epoch_at_least = 0;
  std::string failed_policy = "repair";
  int64_t execute_concurrency = 64;
  int64_t max_actions_per_cycle = 0;
  double reclaim_cap_fraction = 0.05;
  std::string reclaim_budget = "5%/10m";
  std::string surplus_hold = "120s";
  std::string release_hold = "on-demand=10m,spot=1m";
  bool empty_rollup_guard = true;
  bool incremental_reconcile = true;
  bool actuation_paused = false;
  bool dry_run = false;
  std::string audit_log;
  std::string audit_rotate = "64MiB";
  std::string coordinator_addr;
  std::string advertise_addr;
  std::string heartbeat = "10s";
  std::string hints = "5s";
  std::string journal;
  std::string log_level = "info";
  TlsFlags tls;
};

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::unexpected<Status> Wrong(std::string_view flag, std::string_view why) {
  return InvalidArgument(fmt::format("{}: {}", flag, why));
}

Result<Duration> DurationOf(std::string_view flag, std::string_view text) {
  auto duration = model::ParseDuration(text);
  if (!duration) return Wrong(flag, duration.error().message());
  return *duration;
}

Result<Duration> PositiveDuration(std::string_view flag, std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const Duration duration, DurationOf(flag, text));
  if (duration <= Duration::zero()) return Wrong(flag, "must be longer than nothing");
  return duration;
}

Result<double> NumberOf(std::string_view flag, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 1e6)) {
    return Wrong(flag, fmt::format("{} is not a number from 0 to 1000000", model::Quoted(text)));
  }
  return value;
}

Result<model::Probability> FractionOf(std::string_view flag, double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) return Wrong(flag, fmt::format("{} is not from 0 to 1", fraction));
  return model::Probability{static_cast<int32_t>(std::lround(fraction * 1e6))};
}

Result<engine::VictimWeights> WeightsOf(std::string_view text) {
  constexpr std::string_view kFlag = "--victim-weights";
  engine::VictimWeights weights;
  int64_t* const fields[] = {&weights.priority_gap, &weights.drain_speed, &weights.interruption, &weights.reclamation};
  const auto parts = Split(text, ',');
  if (parts.size() != std::size(fields)) {
    return Wrong(kFlag, "give four numbers: priority gap, drain speed, interruption and reclamation penalty");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(const double weight, NumberOf(kFlag, parts[i]));
    *fields[i] = std::llround(weight * 1e6);
  }
  return weights;
}

// "5%/10m"
Status ReadBudget(std::string_view text, shard::Config& config) {
  constexpr std::string_view kFlag = "--reclaim-budget";
  const auto parts = Split(text, '/');
  if (parts.size() != 2 || !parts[0].ends_with('%')) {
    return Wrong(kFlag, fmt::format("{} is not written like 5%/10m", model::Quoted(text))).error();
  }
  const auto percent = NumberOf(kFlag, parts[0].substr(0, parts[0].size() - 1));
  if (!percent) return percent.error();
  const auto fraction = FractionOf(kFlag, *percent / 100);
  if (!fraction) return fraction.error();
  const auto window = PositiveDuration(kFlag, parts[1]);
  if (!window) return window.error();
  config.reclaim_budget = *fraction;
  config.reclaim_window = *window;
  return {};
}

// "on-demand=10m,spot=1m"
Status ReadReleaseHolds(std::string_view text, engine::Policy& policy) {
  constexpr std::string_view kFlag = "--release-hold";
  for (const std::string_view part : Split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return Wrong(kFlag, fmt::format("{} is not written like spot=1m", model::Quoted(part))).error();
    }
    const std::string_view type = part.substr(0, equals);
    const auto hold = DurationOf(kFlag, part.substr(equals + 1));
    if (!hold) return hold.error();
    if (type == "on-demand") {
      policy.release_hold_on_demand = *hold;
    } else if (type == "spot") {
      policy.release_hold_spot = *hold;
    } else {
      return Wrong(kFlag, fmt::format("{}: only on-demand and spot machines are given back; owned hardware stays",
                                      model::Quoted(type)))
          .error();
    }
  }
  return {};
}

Status ReadOwned(const std::vector<std::string>& given, shard::Config& config) {
  for (const std::string& text : given) {
    for (const std::string_view part : Split(text, ',')) {
      const size_t equals = part.find('=');
      if (equals == 0 || equals == std::string_view::npos || equals + 1 == part.size()) {
        return Wrong("--own",
                     fmt::format("{} is not written like topology.kubernetes.io/zone=zone-a", model::Quoted(part)))
            .error();
      }
      config.own.push_back({.key = std::string(part.substr(0, equals)), .value = std::string(part.substr(equals + 1))});
    }
  }
  return {};
}

// An id becomes part of file names, metadata and metrics.
Status CheckId(const std::string& id) {
  const bool plain =
      !id.empty() && id.size() <= 64 &&
      id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == std::string::npos;
  if (plain) return {};
  return {Code::kInvalidArgument, "--id must be 1 to 64 letters, digits, '-', '_' and '.'"};
}

Result<uint64_t> BytesOf(std::string_view flag, std::string_view text) {
  const auto milli = model::ParseQuantity(text.ends_with('B') ? text.substr(0, text.size() - 1) : text);
  constexpr int64_t kLeast = 4096;
  if (!milli || *milli / 1000 < kLeast) {
    return Wrong(flag, fmt::format("{} is not a size of 4KiB or more, such as 64MiB", model::Quoted(text)));
  }
  return static_cast<uint64_t>(*milli / 1000);
}

Result<shard::Config> ConfigOf(const Flags& flags) {
  shard::Config config;
  config.id = flags.id;
  if (Status id = CheckId(flags.id); !id.ok()) return std::unexpected(std::move(id));
  MUSTER_ASSIGN_OR_RETURN(config.cycle_interval, PositiveDuration("--cycle-interval", flags.cycle_interval));
  MUSTER_ASSIGN_OR_RETURN(config.policy.victim_weights, WeightsOf(flags.victim_weights));
  MUSTER_ASSIGN_OR_RETURN(config.policy.surplus_hold, DurationOf("--surplus-hold", flags.surplus_hold));
  MUSTER_ASSIGN_OR_RETURN(config.reclaim_cap, FractionOf("--reclaim-cap-fraction", flags.reclaim_cap_fraction));
  MUSTER_ASSIGN_OR_RETURN(config.hints_interval, PositiveDuration("--available-capacity-interval", flags.hints));
  MUSTER_ASSIGN_OR_RETURN(config.report_interval,
                          PositiveDuration("--coordinator-heartbeat-interval", flags.heartbeat));
  for (Status status : {ReadBudget(flags.reclaim_budget, config), ReadReleaseHolds(flags.release_hold, config.policy),
                        ReadOwned(flags.own, config)}) {
    if (!status.ok()) return std::unexpected(std::move(status));
  }
  constexpr int64_t kMost = 1'000'000;
  if (flags.epoch_at_least < 0) return Wrong("--epoch-at-least", "must not be below 0");
  if (flags.max_actions_per_cycle < 0) return Wrong("--max-actions-per-cycle", "must not be below 0; 0 is no limit");
  if (flags.execute_concurrency < 1 || flags.execute_concurrency > kMost) {
    return Wrong("--execute-concurrency", fmt::format("must be from 1 to {}", kMost));
  }
  if (flags.actuation_paused && flags.dry_run)
    return Wrong("--dry-run", "leave it out: --actuation-paused is stricter");
  config.epoch_at_least = flags.epoch_at_least;
  config.max_actions_per_cycle = flags.max_actions_per_cycle;
  config.execute_concurrency = static_cast<int32_t>(flags.execute_concurrency);
  config.failed_policy = flags.failed_policy == "keep" ? shard::FailedPolicy::kKeep : shard::FailedPolicy::kRepair;
  config.empty_rollup_guard = flags.empty_rollup_guard;
  config.incremental_reconcile = flags.incremental_reconcile;
  config.mode = flags.actuation_paused ? contract::ActuationMode::kPaused
                : flags.dry_run        ? contract::ActuationMode::kDryRun
                                       : contract::ActuationMode::kUnspecified;
  config.address = flags.advertise_addr.empty() ? flags.listen : flags.advertise_addr;
  return config;
}

Result<int> Serve(const Flags& flags, const host::BuildInfo& build) {
  shard::RoleOptions options{.data_dir = flags.data_dir,
                             .journal = flags.journal,
                             .audit = {.path = flags.audit_log},
                             .provider_addr = flags.provider_addr,
                             .coordinator_addr = flags.coordinator_addr,
                             .build = build};
  if (flags.data_dir.empty()) return InvalidArgument("--data-dir is missing; name a directory for the shard's state");
  if (flags.provider_addr.empty())
    return InvalidArgument("--provider-addr is missing; name the HOST:PORT of a provider");
  constexpr uint64_t kMostWorkers = 256;
  if (flags.phase1_workers < 1 || flags.phase1_workers > kMostWorkers) {
    return InvalidArgument(fmt::format("--phase1-workers must be from 1 to {}", kMostWorkers));
  }
  options.workers = flags.phase1_workers;
  MUSTER_ASSIGN_OR_RETURN(options.config, ConfigOf(flags));
  MUSTER_ASSIGN_OR_RETURN(options.audit.rotate_bytes, BytesOf("--audit-rotate", flags.audit_rotate));
  MUSTER_ASSIGN_OR_RETURN(options.tls, flags.tls.Files());
  MUSTER_ASSIGN_OR_RETURN(options.listen, flags.tls.ListenGrpc(flags.listen, "--listen"));
  MUSTER_ASSIGN_OR_RETURN(options.metrics_addr, flags.tls.ListenHttp(flags.metrics_addr, "--metrics-addr"));
  MUSTER_ASSIGN_OR_RETURN(const log::Level level, host::ParseLogLevel(flags.log_level));

  host::Signals signals;  // first: every thread inherits the blocked signals
  host::InstallLogBackend(level);
  std::mutex mu;
  Status failure;
  options.failed = [&](const Status& why) {
    {
      const std::lock_guard lock(mu);
      failure = why;
    }
    signals.RequestStop("the shard cannot go on");
  };
  {
    shard::ShardRole role(std::move(options));
    if (Status status = host::RunRole(role, signals); !status.ok()) return std::unexpected(std::move(status));
  }
  if (!failure.ok()) return std::unexpected(std::move(failure));
  return kOk;
}

}  // namespace

void AddShard(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("shard", "Run a shard: decides which machines its clusters get, and has that done");
  verb.Option("--listen", flags->listen, "gRPC address, HOST:PORT or :PORT for loopback; port 0 picks a free one")
      .Option("--metrics-addr", flags->metrics_addr, "HTTP address, written the same way")
      .Option("--id", flags->id, "Name of this shard; no two may have the same")
      .Path("--data-dir", flags->data_dir, "Directory for state, made if missing; one process at a time")
      .Option("--provider-addr", flags->provider_addr, "HOST:PORT of the provider")
      .Option("--own", flags->own, "Own only machines with these labels, key=value,...; all unless given")
      .Option("--cycle-interval", flags->cycle_interval, "Longest time between two decisions")
      .Option("--phase1-workers", flags->phase1_workers, "Threads that decide; the answers do not depend on it")
      .Option("--victim-weights", flags->victim_weights,
              "What counts in choosing a victim: priority gap, drain speed, interruption, reclamation")
      .Option("--surplus-hold", flags->surplus_hold, "How long a cluster keeps a machine that nobody claims")
      .Option("--release-hold", flags->release_hold, "How long idle machines are kept, by type")
      .Option("--max-actions-per-cycle", flags->max_actions_per_cycle, "Most actions begun in a cycle; 0 is no limit")
      .Option("--reclaim-cap-fraction", flags->reclaim_cap_fraction,
              "Most of a cluster's machines reclaimed in a cycle")
      .Option("--reclaim-budget", flags->reclaim_budget, "Most of a cluster's machines reclaimed in a span of time")
      .Flag("--empty-rollup-guard,!--no-empty-rollup-guard", flags->empty_rollup_guard,
            "Hold roll-ups that suddenly want next to nothing; on unless switched off")
      .Flag("--incremental-reconcile,!--no-incremental-reconcile", flags->incremental_reconcile,
            "Ask the provider for changes between full lists; on unless switched off")
      .Flag("--actuation-paused", flags->actuation_paused, "Start paused: decide, and do nothing")
      .Flag("--dry-run", flags->dry_run, "Start in dry run: decide, and log what would have been done")
      .Option("--execute-concurrency", flags->execute_concurrency, "Most transitions in the provider's hands")
      .Choice("--failed-policy", flags->failed_policy, {"repair", "keep"}, "What is done with Failed machines")
      .Option("--available-capacity-interval", flags->hints, "How often clusters are told what is free")
      .Path("--audit-log", flags->audit_log, "File for every action and its outcome, as JSON lines")
      .Option("--audit-rotate", flags->audit_rotate, "Size at which a new audit log is begun; five old ones are kept")
      .Path("--journal", flags->journal, "Directory for what the core saw, for muster replay")
      .Option("--coordinator-addr", flags->coordinator_addr, "HOST:PORT of the coordinator; none unless given")
      .Option("--advertise-addr", flags->advertise_addr,
              "Address told to the coordinator; that of --listen unless given")
      .Option("--coordinator-heartbeat-interval", flags->heartbeat, "How often the shard reports")
      .Option("--epoch-at-least", flags->epoch_at_least, "After lost state: an epoch higher than any before")
      .Choice("--log-level", flags->log_level, {"debug", "info", "warn", "error"}, "Lowest level that is logged");
  AddTlsFlags(verb, flags->tls);
  verb.Configurable();
  verb.Example("muster shard --data-dir /var/lib/muster/shard --provider-addr 127.0.0.1:9100")
      .Example("muster shard --config /etc/muster/shard.yaml --dry-run")
      .Example("muster shard --data-dir D --provider-addr P:9100 --own topology.kubernetes.io/zone=zone-a")
      .Run([flags, build = app.build()] { return Serve(*flags, build); });
}

}  // namespace muster::cli
