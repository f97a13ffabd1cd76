#include "role/shard/shard_settings.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "contract/coordinator.h"
#include "engine/types.h"
#include "model/names.h"

namespace muster::shard {
namespace {

using host::AgainstRule;
using host::Parser;
using host::PositiveDuration;
using host::SplitAt;
using host::WholeNumber;

// How long idle machines are kept, by capacity type.
struct ReleaseHolds {
  Duration on_demand;
  Duration spot;
};

struct Budget {
  model::Probability share;
  Duration window;
};

// An id becomes part of file names, metadata and metrics.
Parser<std::string> ShardId() {
  return host::Name("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.",
                    "letters, digits, '-', '_' and '.'");
}

Parser<engine::VictimWeights> Weights() {
  return {.rule = "four numbers from 0 to 1000000: priority gap, drain speed, interruption and reclamation penalty",
          .read = [](std::string_view text) -> std::expected<engine::VictimWeights, std::string> {
            engine::VictimWeights weights;
            const std::array<int64_t*, 4> fields = {&weights.priority_gap, &weights.drain_speed, &weights.interruption,
                                                    &weights.reclamation};
            const auto parts = SplitAt(text, ',');
            if (parts.size() != fields.size()) return AgainstRule();
            const auto number = host::Number(0, 1e6);
            for (size_t i = 0; i < parts.size(); ++i) {
              const auto weight = number.read(parts[i]);
              if (!weight) return AgainstRule();
              *fields[i] = std::llround(*weight * 1e6);
            }
            return weights;
          }};
}

Parser<Budget> ReclaimBudget() {
  return {.rule = "a percentage and a duration greater than zero, such as 10%/2m",
          .read = [](std::string_view text) -> std::expected<Budget, std::string> {
            const auto parts = SplitAt(text, '/');
            if (parts.size() != 2 || !parts[0].ends_with('%')) return AgainstRule();
            const auto percent = host::Number(0, 100).read(parts[0].substr(0, parts[0].size() - 1));
            if (!percent) return AgainstRule();
            const auto window = PositiveDuration().read(parts[1]);
            if (!window) return std::unexpected(window.error());
            return Budget{.share = {static_cast<int32_t>(std::lround(*percent * 1e4))}, .window = *window};
          }};
}

// A type that is not named keeps its hold.
Parser<ReleaseHolds> HoldsByType(ReleaseHolds unless_named) {
  return {.rule = "durations by capacity type, such as on-demand=10m,spot=1m",
          .read = [unless_named](std::string_view text) -> std::expected<ReleaseHolds, std::string> {
            ReleaseHolds holds = unless_named;
            for (const std::string_view part : SplitAt(text, ',')) {
              const size_t equals = part.find('=');
              if (equals == std::string_view::npos) return AgainstRule();
              const std::string_view type = part.substr(0, equals);
              const auto hold = host::AnyDuration().read(part.substr(equals + 1));
              if (!hold) return std::unexpected(hold.error());
              if (type != "on-demand" && type != "spot") {
                return std::unexpected(fmt::format(
                    "{}: only on-demand and spot machines are given back; owned hardware stays", model::Quoted(type)));
              }
              (type == "spot" ? holds.spot : holds.on_demand) = *hold;
            }
            return holds;
          }};
}

// Shards of this protocol take 0 for "as you think best".
Parser<Duration> HintsInterval() {
  return {.rule = "a duration, such as 90s; 0 means 5s",
          .read = [](std::string_view text) -> std::expected<Duration, std::string> {
            const auto given = host::AnyDuration().read(text == "0" ? "0s" : text);
            if (!given) return std::unexpected(given.error());
            return *given == Duration::zero() ? Config().hints_interval : *given;
          }};
}

Parser<contract::Domain> LabelOfMachine() {
  return {.rule = "labels, such as topology.kubernetes.io/zone=zone-a",
          .read = [](std::string_view text) -> std::expected<contract::Domain, std::string> {
            const size_t equals = text.find('=');
            if (equals == 0 || equals == std::string_view::npos || equals + 1 == text.size()) return AgainstRule();
            return contract::Domain{.key = std::string(text.substr(0, equals)),
                                    .value = std::string(text.substr(equals + 1))};
          }};
}

// What becomes more than one field of the configuration, or none by itself.
struct Composed {
  ReleaseHolds holds;
  Budget budget;
  bool paused = false;
  bool dry_run = false;
  std::string advertise_addr;
};

void DeclareDecisions(host::Settings& settings, RoleOptions& options, Composed& composed) {
  Config& config = options.config;
  settings
      .List("--own", config.own, LabelOfMachine(),
            "Own only machines with these labels, key=value,...; all unless given")
      .Add("--cycle-interval", config.cycle_interval, "1s", PositiveDuration(), "Longest time between two decisions")
      .Add("--phase1-workers", options.workers, "1", WholeNumber<size_t>(1, 256),
           "Threads that decide; the answers do not depend on it")
      .Add("--phase1-retries", config.policy.phase1_retries, "10", WholeNumber<int32_t>(0, 1000),
           "How often a plan that was overtaken may be made again; 0 plans nothing ahead, and the answers do not "
           "depend on it")
      .Add("--victim-weights", config.policy.victim_weights, "1,0.1,0.1,0.1", Weights(),
           "What counts in choosing a victim: priority gap, drain speed, interruption, reclamation")
      .Add("--surplus-hold", config.policy.surplus_hold, "120s", host::AnyDuration(),
           "How long a cluster keeps a machine that no need claims")
      .Add("--release-hold", composed.holds, "on-demand=10m,spot=1m",
           HoldsByType({.on_demand = config.policy.release_hold_on_demand, .spot = config.policy.release_hold_spot}),
           "How long idle machines are kept, by type");
}

void DeclareRails(host::Settings& settings, Config& config, std::string& limits, Composed& composed) {
  settings
      .Add("--max-actions-per-cycle", config.max_actions_per_cycle, "0", WholeNumber<int64_t>(0),
           "Most actions begun in a cycle; 0 is no limit")
      .Add("--reclaim-cap-fraction", config.reclaim_cap, "0.05", host::Fraction(),
           "Most of a cluster's machines reclaimed in a cycle")
      .Add("--reclaim-budget", composed.budget, "10%/2m", ReclaimBudget(),
           "Most of a cluster's machines reclaimed in a span of time")
      .Add("--cluster-limits", limits, "", host::Text("a file"),
           "The most that single clusters may ask for and have, read again when it changes; no limits unless given")
      .Switch("--empty-rollup-guard", config.empty_rollup_guard,
              "Hold roll-ups that suddenly want next to nothing; on unless switched off")
      .Switch("--incremental-reconcile", config.incremental_reconcile,
              "Ask the provider for changes between full lists; on unless switched off")
      .Switch("--actuation-paused", composed.paused, "Start paused: decide, and do nothing")
      .Switch("--dry-run", composed.dry_run, "Start in dry run: decide, and log what would have been done")
      .Add("--execute-concurrency", config.execute_concurrency, "64", WholeNumber<int32_t>(1, 1'000'000),
           "Most transitions in the provider's hands")
      .Choice("--failed-policy", config.failed_policy,
              {{"repair", FailedPolicy::kRepair}, {"keep", FailedPolicy::kKeep}}, "repair",
              "What is done with Failed machines");
}

void DeclarePartners(host::Settings& settings, RoleOptions& options, Composed& composed) {
  Config& config = options.config;
  settings
      .Add("--available-capacity-interval", config.hints_interval, "5s", HintsInterval(),
           "How often clusters are told what is free")
      .Path("--audit-log", options.audit.path, "File for every action and its outcome, as JSON lines")
      .Add("--audit-rotate", options.audit.rotate_bytes, "64MiB", host::ByteSize(4096),
           "Size at which a new audit log is begun; five old ones are kept")
      .Add("--journal-limit", options.journal_limit, "512MiB", host::ByteSize(1 << 20),
           "Size of the whole journal; the oldest of its eight parts go")
      .Add("--coordinator-addr", options.coordinator_addr, "", host::Text("HOST:PORT"),
           "The coordinator; none unless given")
      .Add("--advertise-addr", composed.advertise_addr, "", host::Text("HOST:PORT"),
           "Address told to the coordinator; that of --listen unless given")
      .Add("--coordinator-heartbeat-interval", config.report_interval, "10s", PositiveDuration(),
           "How often the shard reports")
      .Add("--epoch-at-least", config.epoch_at_least, "0", WholeNumber<int64_t>(0),
           "After lost state: an epoch higher than any before");
}

// A pause is stricter than dry run, and holds where both are given.
Status Compose(const host::Settings& settings, const Composed& composed, Config& config) {
  config.mode = composed.paused    ? contract::ActuationMode::kPaused
                : composed.dry_run ? contract::ActuationMode::kDryRun
                                   : contract::ActuationMode::kUnspecified;
  config.policy.release_hold_on_demand = composed.holds.on_demand;
  config.policy.release_hold_spot = composed.holds.spot;
  config.reclaim_budget = composed.budget.share;
  config.reclaim_window = composed.budget.window;
  config.address = composed.advertise_addr.empty() ? settings.text("--listen") : composed.advertise_addr;
  return {};
}

}  // namespace

void DeclareSettings(host::Settings& settings, RoleOptions& options) {
  rpc::DeclareServerSettings(settings, options.server, ":7780", ":8780");
  settings.Require("--data-dir", "name a directory for the shard's state")
      .Add("--id", options.config.id, "shard-0", ShardId(), "Name of this shard; no two may have the same")
      .Add("--provider-addr", options.provider_addr, "", host::Text("HOST:PORT"), "The provider")
      .Require("--provider-addr", "name the HOST:PORT of a provider");
  const auto composed = std::make_shared<Composed>();
  DeclareDecisions(settings, options, *composed);
  DeclareRails(settings, options.config, options.cluster_limits, *composed);
  DeclarePartners(settings, options, *composed);
  settings.Check([&settings, composed, &options] { return Compose(settings, *composed, options.config); });
}

}  // namespace muster::shard
