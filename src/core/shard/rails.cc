#include "core/shard/rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/probe.h"
#include "model/quantity.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;

constexpr uint64_t kGuardedRows = 10;      // a smaller demand may lose rows without suspicion
constexpr int64_t kSuspicious = 10;        // less than one part in so many of what was accepted
constexpr int32_t kConfirmed = 3;          // so many in a row are no accident
constexpr Duration kConfirmedAfter = 30s;  // and none of them waits for less
constexpr Duration kRemembered = 10min;    // how long a demand that was in force is compared with

constexpr std::string_view kWhenAccepted = "the third such roll-up in a row, 30 s after the first, is accepted";

// The share of so many machines, never below one.
int64_t ShareOf(model::Probability share, int64_t machines) {
  return std::max<int64_t>(1, machines * share.millionths / 1'000'000);
}

constexpr size_t kMostPast = 16;  // demands that are remembered of a cluster

// Each part becomes the larger of the two.
void Enlarge(Baseline& size, const Baseline& other) {
  size.rows = std::max(size.rows, other.rows);
  for (const auto& [name, total] : other.totals) {
    int64_t& most = size.totals[name];
    most = std::max(most, total);
  }
}

// Whether every measure of `size` is at most that of `other`.
bool IsWithin(const Baseline& size, const Baseline& other) {
  return size.rows <= other.rows && std::ranges::all_of(size.totals, [&](const auto& total) {
           const auto found = other.totals.find(total.first);
           return found != other.totals.end() && total.second <= found->second;
         });
}

}  // namespace

// --- pause and dry run

ActuationMode ActuationModes::Get(const std::string& cluster) const {
  if (cluster.empty()) return shard();
  const auto known = state_.clusters.find(cluster);
  return known == state_.clusters.end() ? ActuationMode::kActive : known->second;
}

void ActuationModes::Set(const std::string& cluster, ActuationMode mode, StepContext& ctx) {
  Restore(cluster, mode);
  if (cluster.empty()) state_.halted = false;
  if (MUTANT("shard.pause_forgotten")) return;
  ctx.Write(mode == ActuationMode::kActive ? kModeRows.Erase(cluster) : kModeRows.Put(cluster, mode));
}

void ActuationModes::Restore(const std::string& cluster, ActuationMode mode) {
  (cluster.empty() ? state_.shard : state_.clusters[cluster]) = mode;
}

bool ActuationModes::AnyKeptBack() const {
  return std::ranges::any_of(state_.clusters, [](const auto& set) { return set.second != ActuationMode::kActive; });
}

ActuationMode ActuationModes::For(const std::string& cluster, const std::optional<engine::NeedKey>& need) const {
  ActuationMode mode = shard();
  const auto add = [&](const std::string& name) {
    const auto known = state_.clusters.find(name);
    if (known == state_.clusters.end() || MUTANT("shard.cluster_pause_ignored")) return;
    mode = std::max(mode, known->second);
  };
  add(cluster);
  if (need) add(need->cluster);
  return mode;
}

// --- the budget of changes

void ChangeBudget::Restore(const std::string& cluster, uint64_t spent) {
  constexpr uint64_t kMost = 100'000;  // more is damage, and as good as so many
  state_[cluster] = {.times = std::deque<MonoTime>(std::min(spent, kMost)), .stored = true};
}

void ChangeBudget::Start(MonoTime now) {
  for (auto& [cluster, spent] : state_) std::ranges::fill(spent.times, now);
}

int64_t ChangeBudget::InWindow(const std::string& cluster, StepContext& ctx) {
  const auto known = state_.find(cluster);
  if (known == state_.end()) return 0;
  std::deque<MonoTime>& times = known->second.times;
  while (!times.empty() && ctx.now.mono - times.front() >= config_.reclaim_window) times.pop_front();
  if (times.empty() && std::exchange(known->second.stored, false)) ctx.Write(kChangeRows.Erase(cluster));
  return static_cast<int64_t>(times.size());
}

// Machines that the cluster gave up within the window count as still its own, so that the share is that of the cluster
// as it was.
int64_t ChangeBudget::Allowed(const std::string& cluster, int64_t configured, StepContext& ctx) {
  const int64_t spent = InWindow(cluster, ctx);
  const int64_t cap = ShareOf(config_.reclaim_cap, configured);
  const int64_t budget = ShareOf(config_.reclaim_budget, configured + spent) - spent;
  if (MUTANT("shard.no_reclaim_budget")) return cap;
  return std::clamp<int64_t>(budget, 0, cap);
}

void ChangeBudget::Spend(const std::string& cluster, StepContext& ctx) {
  Spent& spent = state_[cluster];
  spent.times.push_back(ctx.now.mono);
  spent.stored = true;
  if (MUTANT("shard.budget_forgotten")) return;
  ctx.Write(kChangeRows.Put(cluster, spent.times.size()));
}

int64_t ChangeBudget::SpentBy(const std::string& cluster) const {
  const auto known = state_.find(cluster);
  return known == state_.end() ? 0 : static_cast<int64_t>(known->second.times.size());
}

// --- the quarantine of roll-ups

std::string RollupQuarantine::Hold(const std::string& cluster, const Baseline& size, MonoTime now) {
  Watched& watched = state_[cluster];
  std::erase_if(watched.earlier, [&](const PastDemand& past) { return now - past.until >= kRemembered; });
  std::string suspicion = Suspicion(watched, size);
  if (suspicion.empty()) return "";
  if (watched.held++ == 0) watched.held_since = now;
  const bool late_enough = now - watched.held_since >= kConfirmedAfter || MUTANT("shard.held_for_a_moment");
  if (watched.held >= kConfirmed && late_enough) {
    watched.earlier.clear();  // the cluster means it
    watched.baseline.reset();
    return "";
  }
  watched.held = std::min(watched.held, 1'000'000);
  return suspicion;
}

void RollupQuarantine::Accept(const std::string& cluster, Baseline size, StepContext& ctx) {
  Watched& watched = state_[cluster];
  watched.held = 0;
  if (watched.baseline == size) return;
  if (watched.baseline && !MUTANT("shard.shrinks_in_steps")) {
    watched.earlier.push_back({.size = *std::move(watched.baseline), .until = ctx.now.mono});
    // One that is no larger than a later one tells nothing; so the list stays short.
    const Baseline& last = watched.earlier.back().size;
    std::erase_if(watched.earlier,
                  [&](const PastDemand& past) { return &past.size != &last && IsWithin(past.size, last); });
    while (watched.earlier.size() > kMostPast) {  // one that shrinks all the time: the oldest two become one
      Enlarge(watched.earlier[1].size, watched.earlier[0].size);
      watched.earlier.erase(watched.earlier.begin());
    }
  }
  watched.baseline = std::move(size);
  ctx.Write(kBaselineRows.Put(cluster, *Largest(watched)));
}

void RollupQuarantine::Forget(const std::string& cluster, StepContext& ctx) {
  state_.erase(cluster);
  ctx.Write(kBaselineRows.Erase(cluster));
}

std::optional<Baseline> RollupQuarantine::Largest(const Watched& watched) {
  std::optional<Baseline> largest = watched.baseline;
  if (!largest) return std::nullopt;
  for (const PastDemand& past : watched.earlier) Enlarge(*largest, past.size);
  return largest;
}

int32_t RollupQuarantine::held(const std::string& cluster) const {
  const auto known = state_.find(cluster);
  return known == state_.end() ? 0 : known->second.held;
}

// Why the roll-up may be a mistake; empty if it looks normal.
std::string RollupQuarantine::Suspicion(const Watched& watched, const Baseline& size) const {
  const std::optional<Baseline> largest = Largest(watched);
  if (!config_.empty_rollup_guard || !largest || MUTANT("shard.no_quarantine")) return "";
  const Baseline& accepted = *largest;
  if (accepted.rows >= kGuardedRows && size.rows * kSuspicious < accepted.rows) {
    return fmt::format("held: {} rows after {}; {}", size.rows, accepted.rows, kWhenAccepted);
  }
  for (const auto& [name, total] : accepted.totals) {
    const auto now = size.totals.find(name);
    const int64_t amount = now == size.totals.end() ? 0 : now->second;
    if (amount >= total / kSuspicious + (total % kSuspicious != 0 ? 1 : 0)) continue;
    return fmt::format("held: {} of {} after {}; {}", model::FormatQuantityFor(name, amount), name,
                       model::FormatQuantityFor(name, total), kWhenAccepted);
  }
  return "";
}

// --- all of them

Rails::Rails(const Config& config, Clusters& clusters, ActionLog& log, State state)
    : config_(config),
      clusters_(clusters),
      log_(log),
      modes_(std::move(state.modes)),
      budget_(config, std::move(state.budget)),
      quarantine_(config, std::move(state.quarantine)),
      holds_(config, std::move(state.holds)),
      ceilings_(std::move(state.ceilings)),
      suppressed_(std::move(state.suppressed)),
      tried_(std::move(state.tried)) {}

Rails::State Rails::state() const {
  return {.modes = modes_.state(),
          .budget = budget_.state(),
          .quarantine = quarantine_.state(),
          .suppressed = suppressed_,
          .tried = tried_,
          .holds = holds_.state(),
          .ceilings = ceilings_.state()};
}

void Rails::RegisterRows(contract::RowReader& reader) {
  reader.On(kModeRows, [this](const std::string& cluster, ActuationMode mode) {
    if (!cluster.empty()) clusters_.Add(cluster);
    modes_.Restore(cluster, mode);
  });
  reader.On(kChangeRows, [this](const std::string& cluster, uint64_t spent) {
    clusters_.Add(cluster);
    budget_.Restore(cluster, spent);
  });
  reader.On(kBaselineRows, [this](const std::string& cluster, Baseline baseline) {
    clusters_.Add(cluster);
    quarantine_.Restore(cluster, std::move(baseline));
  });
  holds_.RegisterRows(reader);
}

void Rails::Start(StepContext& ctx) {
  budget_.Start(ctx.now.mono);
  holds_.Start(ctx);
  if (config_.mode != ActuationMode::kUnspecified) SetMode("", config_.mode, ctx);
}

void Rails::SetMode(const std::string& cluster, ActuationMode mode, StepContext& ctx) {
  if (!cluster.empty()) clusters_.Add(cluster);
  modes_.Set(cluster, mode, ctx);
  tried_.clear();  // a later trial says again what it would do
}

// The baseline of a demand that is empty tells nothing. One of a demand that is not is that of a cluster that has not
// been heard of since the start.
void Rails::AddClusters(Clusters::Names& used) const {
  for (const auto& [cluster, mode] : modes_.state().clusters) {
    if (mode != ActuationMode::kActive) used.insert(cluster);
  }
  for (const auto& [cluster, spent] : budget_.state()) {
    if (!spent.times.empty() || spent.stored) used.insert(cluster);
  }
  for (const auto& [cluster, watched] : quarantine_.state()) {
    if (watched.baseline && watched.baseline->rows > 0) used.insert(cluster);
  }
  holds_.AddClusters(used);
  ceilings_.AddClusters(used);
}

void Rails::Forget(const std::string& cluster, StepContext& ctx) {
  modes_.Forget(cluster);
  budget_.Forget(cluster);
  if (quarantine_.state().contains(cluster)) quarantine_.Forget(cluster, ctx);
  ceilings_.Forget(cluster);
}

engine::ClusterState Rails::ClusterInput(const std::string& cluster, bool session, bool gate_open, int64_t configured,
                                         StepContext& ctx) {
  const bool carried_out = modes_.shard() == ActuationMode::kActive;
  const int64_t allowed = budget_.Allowed(cluster, configured, ctx);
  const bool limited = carried_out || MUTANT("shard.budget_binds_trials");
  const bool gone = clusters_.IsDecommissioned(cluster) && !MUTANT("shard.decommissioned_kept");
  return {.session = session || gone || MUTANT("shard.session_not_needed"),
          .gate_open = gate_open || gone || MUTANT("shard.gate_always_open"),
          .reclaims_allowed = limited ? allowed : std::numeric_limits<int64_t>::max(),
          .paused = modes_.IsKeptBack(cluster) && !MUTANT("shard.cluster_pause_ignored"),
          .on_hold = holds_.IsClusterHeld(cluster, ctx.now.mono) || ceilings_.Bars(cluster)};
}

bool Rails::HeldOpensGate(bool accepted) { return accepted || MUTANT("shard.held_rollup_opens_gate"); }

void Rails::BeginCycle() {
  suppressed_before_ = std::exchange(suppressed_, {});
  started_ = 0;
  put_off_.clear();
}

bool Rails::Admit(const engine::Action& action, Readiness readiness, const QueueLoad& load, model::Money price,
                  StepContext& ctx) {
  const ActuationMode mode = modes_.For(action.cluster, action.need);
  if (mode != ActuationMode::kActive) {
    Suppress(action, mode, suppressed_before_, suppressed_, ctx);
    const bool ignored = mode == ActuationMode::kDryRun && MUTANT("shard.dry_run_carried_out");
    if (!ignored && !MUTANT("shard.pause_ignored")) return false;
  }
  if (readiness == Readiness::kBusy) {
    ++ctx.counters.deduped;
    return false;
  }
  if (readiness != Readiness::kReady) {
    PROBE("shard.put_off");
    PutOff& put_off = put_off_[BeneficiaryOf(action)];
    ++(readiness == Readiness::kGrows ? put_off.growth : put_off.trial);
    return false;
  }
  const ClusterCeilings::Verdict verdict = ceilings_.Admit(action, price, ctx.now.mono);
  if (verdict == ClusterCeilings::Verdict::kNotYet) {
    ++put_off_[action.need->cluster].loss;
    return false;
  }
  if (verdict != ClusterCeilings::Verdict::kWithin) {
    RefuseAboveCeiling(action, verdict == ClusterCeilings::Verdict::kAbove, ctx);
    return false;
  }
  const bool limited = action.kind != engine::ActionKind::kPreempt || MUTANT("shard.preempt_limited");
  if (limited && config_.max_actions_per_cycle > 0 && started_ >= config_.max_actions_per_cycle) {
    PROBE("shard.action_deferred");
    ++ctx.counters.deferred;
    ctx.cycle.Request();
    return false;
  }
  if (limited && IsQueueFull(action, load)) {
    PROBE("shard.queue_full");
    ++ctx.counters.dropped;
    ctx.cycle.RequestWhenQueueIsEmpty();
    return false;
  }
  started_ += limited ? 1 : 0;
  // What goes instead of a machine that serves somebody is beyond the budget, and outside it.
  const bool counts = action.reason != model::Reason::kReclaimInstead || MUTANT("shard.instead_spends");
  if (action.kind == engine::ActionKind::kReclaim && counts) budget_.Spend(action.cluster, ctx);
  return true;
}

void Rails::RefuseAboveCeiling(const engine::Action& action, bool is_news, StepContext& ctx) {
  ++ctx.counters.above_ceiling[action.need->cluster];
  if (!is_news) return;
  contract::ActionView view = ViewOf(action, ctx.cycle.number(), ctx.now.wall, Outcome::kCeiling);
  view.error = fmt::format("cluster {}: {}", action.need->cluster, ceilings_.Sentence(action.need->cluster));
  log_.Add(view, ctx);
}

bool Rails::MayBootstrap(int64_t configured, int64_t configuring) const {
  const int64_t first = config_.first_bootstraps;
  if (first == 0 || (configured == 0 && MUTANT("shard.all_at_first"))) return true;
  if (configured > 0 && MUTANT("shard.one_vouches_for_all")) return true;
  return configuring < std::max(first, configured);
}

bool Rails::MayTake(const std::string& cluster, bool gang, int64_t configured, int64_t configuring,
                    MonoTime now) const {
  const bool trial = configured == 0 || holds_.HasFailedLast(cluster) || MUTANT("shard.proven_is_limited");
  if (!trial || MUTANT("shard.takes_what_it_cannot_configure")) return true;
  const ClusterCeilings::Awaited awaited = ceilings_.AwaitedBy(cluster);
  if (holds_.BarsTaking(cluster, gang ? 0 : awaited.draining + awaited.idle, now)) return false;
  const int64_t first = config_.first_bootstraps;
  const int64_t most = std::max(first, configured + (gang ? awaited.idle : 0));
  return first == 0 || configuring + awaited.draining < most;
}

bool Rails::MayRepair(const std::string& cluster) const {
  return modes_.For(cluster, std::nullopt) == ActuationMode::kActive || MUTANT("shard.pause_ignored");
}

bool Rails::AdmitRepair(size_t operations) {
  if (config_.max_actions_per_cycle > 0 && started_ >= config_.max_actions_per_cycle) return false;
  if (operations >= static_cast<size_t>(config_.execute_queue)) return false;
  ++started_;
  return true;
}

// A cluster may have as many operations as places are free: one that never answers leaves half of the queue to the
// others, and n of them leave one part in n + 1.
bool Rails::IsQueueFull(const engine::Action& action, const QueueLoad& load) const {
  const auto places = static_cast<size_t>(config_.execute_queue);
  if (load.all >= places) return true;
  return !BeneficiaryOf(action).empty() && load.of_cluster >= places - load.all && !MUTANT("shard.no_share");
}

void Rails::LogTrial(const std::vector<engine::Action>& actions, StepContext& ctx) {
  const Suppressed before = std::exchange(tried_, {});
  for (const engine::Action& action : actions) {
    const bool touches = modes_.IsKeptBack(action.cluster) || (action.need && modes_.IsKeptBack(action.need->cluster));
    if (touches) Suppress(action, modes_.For(action.cluster, action.need), before, tried_, ctx);
  }
}

void Rails::Suppress(const engine::Action& action, ActuationMode mode, const Suppressed& before, Suppressed& now,
                     StepContext& ctx) {
  const bool paused = mode == ActuationMode::kPaused;
  const std::pair which(action.machine, action.kind);
  ++(paused ? ctx.counters.suppressed : ctx.counters.dry_run)[std::string(engine::ActionKindName(action.kind))];
  if (!before.contains(which)) {
    PROBE("shard.suppressed");
    log_.Add(ViewOf(action, ctx.cycle.number(), ctx.now.wall, paused ? Outcome::kSuppressed : Outcome::kDryRun), ctx);
  }
  now.insert(which);
}

std::optional<Outcome> Rails::Obstacle(const Operation& operation, bool session) const {
  if (modes_.halted()) return Outcome::kSuppressed;
  // Dry run leaves alone what has begun.
  const ActuationMode mode = modes_.For(operation.cluster, operation.need);
  const bool by_hand = operation.reason == model::Reason::kRepairByHand;
  if (mode == ActuationMode::kPaused && !by_hand && !MUTANT("shard.pause_ignored")) return Outcome::kSuppressed;
  const bool needs_session = operation.kind == OperationKind::kBootstrap || IsWithdrawal(operation.kind);
  const bool gone = clusters_.IsDecommissioned(operation.cluster) && IsWithdrawal(operation.kind);
  if (needs_session && !session && !gone && !MUTANT("shard.session_not_needed")) return Outcome::kNoSession;
  return std::nullopt;
}

}  // namespace muster::shard
