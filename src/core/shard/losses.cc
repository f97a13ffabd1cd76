#include "core/shard/losses.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/rails.h"

namespace muster::shard {
namespace {

using model::Reason;

constexpr int64_t kStoredAnew = 100;  // a change of more than one part in so many

int64_t ShareOf(model::Probability share, int64_t machines) { return machines * share.millionths / 1'000'000; }

}  // namespace

Losses::Losses(const Config& config, Clusters& clusters, const Machines& machines, State state)
    : config_(config),
      clusters_(clusters),
      machines_(machines),
      failed_(std::move(state.failed)),
      vanished_(std::move(state.vanished)),
      replaced_(std::move(state.replaced)),
      failing_(std::move(state.failing)),
      vanishing_(std::move(state.vanishing)),
      sizes_(std::move(state.sizes)),
      lacking_(std::move(state.lacking)) {
  for (const std::string& machine : state.missing) RestoreMissing(machine);
}

Losses::State Losses::state() const {
  State state{.failed = failed_.state(),
              .vanished = vanished_.state(),
              .replaced = replaced_.state(),
              .missing = {},
              .failing = failing_,
              .vanishing = vanishing_,
              .sizes = sizes_,
              .lacking = lacking_};
  for (const auto& [cluster, machines] : missing_) state.missing.insert(machines.begin(), machines.end());
  return state;
}

size_t Losses::missing() const {
  size_t count = 0;
  for (const auto& [cluster, machines] : missing_) count += machines.size();
  return count;
}

void Losses::RegisterRows(contract::RowReader& reader) {
  reader.On(kLossRows, [this](const std::string& cluster, const LossRow& row) {
    if (!cluster.empty()) clusters_.Add(cluster);
    for (uint64_t i = 0; i < row.failed; ++i) failed_.Add({.cluster = cluster});
    for (uint64_t i = 0; i < row.vanished; ++i) vanished_.Add({.cluster = cluster});
    for (uint64_t i = 0; i < row.replaced; ++i) replaced_.Add({.cluster = cluster});
    if (row.failing) failing_.insert(cluster);
    if (row.vanishing) vanishing_.insert(cluster);
  });
  reader.On(kSizeRows, [this](const std::string& cluster, int64_t machines) {
    if (!cluster.empty()) clusters_.Add(cluster);
    sizes_.insert_or_assign(cluster, machines);
  });
}

void Losses::Start(MonoTime now) {
  failed_.SetTimes(now);
  vanished_.SetTimes(now);
  replaced_.SetTimes(now);
}

// --- what happened while the shard was down

int64_t Losses::StoredSizeOf(const std::string& cluster) const {
  const auto stored = sizes_.find(cluster);
  return stored == sizes_.end() ? 0 : stored->second;
}

bool Losses::IsFarBelow(const std::string& cluster) const {
  const int64_t stored = StoredSizeOf(cluster);
  const int64_t lost = stored - SizeOf(cluster);
  return lost >= config_.losses.fewest && lost > ShareOf(config_.losses.share, stored);
}

// A part of the fleet may be gone though no cluster has lost much of its own.
bool Losses::IsLacking(const std::string& cluster) const {
  return IsFarBelow(cluster) || (SizeOf(cluster) < StoredSizeOf(cluster) && IsFarBelow(""));
}

// What another cluster has, what was given back, and what failed is still in the fleet.
void Losses::OnFirstSweep(StepContext& ctx) {
  const bool in_fleet = StoredSizeOf("") - SizeOf("") < config_.losses.fewest;
  if ((in_fleet && !MUTANT("shard.drained_is_lost")) || MUTANT("shard.lost_while_down")) return;
  for (const auto& [cluster, stored] : sizes_) {
    if (!cluster.empty() && IsLacking(cluster)) lacking_.insert(cluster);
    if (!IsFarBelow(cluster) && !lacking_.contains(cluster)) continue;
    PROBE("shard.lacking_since_start");
    vanishing_.insert(cluster);
    Keep(cluster, ctx);
    ctx.Note(Reason::kLosses, cluster.empty() ? config_.id : cluster,
             fmt::format("{} of {} machines are not there any more since the shard was last up, and are not bought "
                         "again until they are back or `muster fleet accept` says that they are lost indeed",
                         stored - SizeOf(cluster), stored));
  }
}

void Losses::Recount(StepContext& ctx) {
  std::erase_if(lacking_, [&](const std::string& cluster) { return !IsLacking(cluster); });
  int64_t lacking = 0;
  for (const std::string& cluster : clusters_.names()) {
    if (lacking_.contains(cluster)) {
      lacking += StoredSizeOf(cluster) - SizeOf(cluster);
      continue;
    }
    const auto missing = missing_.find(cluster);
    const auto aside = missing == missing_.end() ? 0 : std::ssize(missing->second);
    const int64_t stays = machines_.BoundTo(cluster).configured + aside;
    StoreSize(cluster, MUTANT("shard.drained_is_lost") ? SizeOf(cluster) : stays, ctx);
  }
  StoreSize("", machines_.staying() + lacking, ctx);
}

void Losses::StoreSize(const std::string& cluster, int64_t size, StepContext& ctx) {
  const int64_t stored = StoredSizeOf(cluster);
  const int64_t change = size > stored ? size - stored : stored - size;
  if (change * kStoredAnew <= stored && (size > 0) == (stored > 0)) return;
  if (size == 0) {
    sizes_.erase(cluster);
    return ctx.Write(kSizeRows.Erase(cluster));
  }
  sizes_.insert_or_assign(cluster, size);
  ctx.Write(kSizeRows.Put(cluster, size));
}

// --- what happens to machines

void Losses::OnFailed(const std::string& machine, const std::string& cluster, StepContext& ctx) {
  Expire(ctx);
  failed_.Add({.at = ctx.now.mono, .machine = machine, .cluster = cluster});
  AreTooMany(failed_, cluster, failing_, "turned Failed", ctx);
  Keep(cluster, ctx);
}

bool Losses::OnVanished(const model::Machine& machine, ChangeBudget& budget, StepContext& ctx) {
  using enum model::MachineState;
  if (machine.state == kSpeculative || machine.state == kDeleting) return true;
  if (machines_.AsideOf(machine.id) == SetAside::kMissing) return false;
  Expire(ctx);
  vanished_.Add({.at = ctx.now.mono, .machine = machine.id, .cluster = machine.cluster});
  const bool too_many = AreTooMany(vanished_, machine.cluster, vanishing_, "vanished from the lists", ctx);
  const bool waits = too_many || !MayMakeGood(machine.cluster, budget, ctx);
  if (waits && !MUTANT("shard.lists_believed")) {
    PROBE("shard.machine_missing");
    missing_[machine.cluster].insert(machine.id);
    Keep(machine.cluster, ctx);
    return false;
  }
  CountReplaced(machine.id, machine.cluster, budget, ctx);
  return true;
}

void Losses::OnReturned(const std::string& machine, StepContext& ctx) {
  const std::string cluster = ClusterOf(machine);
  const auto found = missing_.find(cluster);
  if (found == missing_.end() || found->second.erase(machine) == 0) return;
  if (found->second.empty()) missing_.erase(found);
  vanished_.Remove(machine);
  Keep(cluster, ctx);
}

std::vector<std::string> Losses::TakeReplaced(const ActuationModes& modes, ChangeBudget& budget, StepContext& ctx) {
  Expire(ctx);
  std::vector<std::string> taken;
  const bool heeds_pauses = !MUTANT("shard.given_up_while_paused");
  const bool waits = modes.shard() != contract::ActuationMode::kActive && heeds_pauses;
  if (waits || MUTANT("shard.missing_for_ever")) return taken;
  for (auto it = missing_.upper_bound(""); it != missing_.end(); ++it) {
    if (modes.IsKeptBack(it->first) && heeds_pauses) continue;
    TakeReplaced(it->first, it->second, taken, budget, ctx);
  }
  if (const auto of_none = missing_.find(""); of_none != missing_.end()) {
    TakeReplaced("", of_none->second, taken, budget, ctx);
  }
  if (!taken.empty()) std::erase_if(missing_, [](const auto& row) { return row.second.empty(); });
  return taken;
}

void Losses::TakeReplaced(const std::string& cluster, Names& machines, std::vector<std::string>& taken,
                          ChangeBudget& budget, StepContext& ctx) {
  while (!machines.empty() && (MayReplace(cluster, budget, ctx) || MUTANT("shard.missing_all_replaced"))) {
    PROBE("shard.missing_replaced");
    CountReplaced(*machines.begin(), cluster, budget, ctx);
    taken.push_back(*machines.begin());
    machines.erase(machines.begin());
  }
}

std::vector<std::string> Losses::Accept(const std::string& cluster, StepContext& ctx) {
  Names changed{cluster};
  std::vector<std::string> given_up;
  std::erase_if(missing_, [&](const auto& row) {
    if (!cluster.empty() && row.first != cluster) return false;
    given_up.insert(given_up.end(), row.second.begin(), row.second.end());
    return true;
  });
  for (LossWindow* window : {&failed_, &vanished_, &replaced_}) {
    for (const auto& [name, lost] : window->by_cluster()) {
      if (cluster.empty() || name == cluster) changed.insert(name);
    }
    window->Clear(cluster);
  }
  std::erase_if(lacking_, [&](const std::string& name) { return cluster.empty() || name == cluster; });
  for (Names* alerts : {&failing_, &vanishing_}) {
    if (cluster.empty()) changed.insert(alerts->begin(), alerts->end());
    std::erase_if(*alerts, [&](const std::string& name) { return cluster.empty() || name == cluster; });
  }
  if (!cluster.empty()) EndFleetAlerts();
  changed.insert("");
  for (const std::string& name : changed) Keep(name, ctx);
  return given_up;
}

// What remains without the cluster's losses may be no more than chance explains.
void Losses::EndFleetAlerts() {
  for (const auto& [alerts, window] : {std::pair(&failing_, &failed_), std::pair(&vanishing_, &vanished_)}) {
    const int64_t lost = window->total();
    if (lost < config_.losses.fewest || lost <= ShareOf(config_.losses.share, SizeOf(""))) alerts->erase("");
  }
}

// --- shares

bool Losses::MayRepair(const std::string& cluster) const {
  if (MUTANT("shard.repairs_of_the_mass")) return true;
  return !failing_.contains("") && (cluster.empty() || !failing_.contains(cluster));
}

int64_t Losses::SizeOf(const std::string& cluster) const {
  return cluster.empty() ? machines_.Costly() : static_cast<int64_t>(machines_.BoundTo(cluster).machines.size());
}

bool Losses::AreTooMany(const LossWindow& window, const std::string& cluster, Names& alerts, std::string_view what,
                        StepContext& ctx) const {
  const LossLimits& limits = config_.losses;
  const auto check = [&](const std::string& name, int64_t lost) {
    const int64_t size = SizeOf(name);
    if (lost < limits.fewest || lost <= ShareOf(limits.share, size)) return false;
    if (alerts.insert(name).second) {
      PROBE("shard.loss_alert");
      ctx.Note(Reason::kLosses, name.empty() ? config_.id : name,
               fmt::format("{} of {} machines {} within {} min; `muster fleet accept` says that they are lost indeed",
                           lost, size, what, std::chrono::duration_cast<std::chrono::minutes>(limits.window).count()));
      Keep(name, ctx);
    }
    return true;
  };
  const bool fleet = check("", window.total());
  return (!cluster.empty() && check(cluster, window.Of(cluster))) || fleet;
}

bool Losses::MayReplace(const std::string& cluster, ChangeBudget& budget, StepContext& ctx) const {
  if (replaced_.total() >= std::max<int64_t>(1, ShareOf(config_.losses.replaced, SizeOf("")))) return false;
  return cluster.empty() || HasRoom(cluster, 1, budget, ctx);
}

bool Losses::MayMakeGood(const std::string& cluster, ChangeBudget& budget, StepContext& ctx) const {
  return cluster.empty() || HasRoom(cluster, config_.losses.fewest - 1, budget, ctx);
}

bool Losses::HasRoom(const std::string& cluster, int64_t least, ChangeBudget& budget, StepContext& ctx) const {
  const int64_t most = std::max(least, ShareOf(config_.losses.replaced, SizeOf(cluster)));
  return replaced_.Of(cluster) < most && (budget.InWindow(cluster, ctx) < most || MUTANT("shard.give_ups_apart"));
}

void Losses::CountReplaced(const std::string& machine, const std::string& cluster, ChangeBudget& budget,
                           StepContext& ctx) {
  replaced_.Add({.at = ctx.now.mono, .machine = machine, .cluster = cluster});
  if (!cluster.empty() && !MUTANT("shard.give_ups_apart")) budget.Spend(cluster, ctx);
  Keep(cluster, ctx);
}

// --- durable

void Losses::Expire(StepContext& ctx) {
  Names changed;
  const auto gone = [&](const std::string& cluster) { changed.insert(cluster); };
  failed_.Expire(ctx.now.mono, config_.losses.window, gone);
  vanished_.Expire(ctx.now.mono, config_.losses.window, gone);
  replaced_.Expire(ctx.now.mono, config_.losses.replace_window, gone);
  for (const std::string& cluster : changed) Keep(cluster, ctx);
}

void Losses::Keep(const std::string& cluster, StepContext& ctx) const {
  if (MUTANT("shard.losses_forgotten")) return;
  const LossRow row{.failed = static_cast<uint64_t>(failed_.Of(cluster)),
                    .vanished = static_cast<uint64_t>(vanished_.Of(cluster)),
                    .replaced = static_cast<uint64_t>(replaced_.Of(cluster)),
                    .failing = failing_.contains(cluster),
                    .vanishing = vanishing_.contains(cluster)};
  const bool empty = row.failed + row.vanished + row.replaced == 0 && !row.failing && !row.vanishing;
  ctx.Write(empty ? kLossRows.Erase(cluster) : kLossRows.Put(cluster, row));
}

std::string Losses::ClusterOf(const std::string& machine) const {
  const Tracked* tracked = machines_.Find(machine);
  return tracked == nullptr ? "" : tracked->record->cluster;
}

void Losses::CheckInvariants() const {
  for (const auto& [cluster, machines] : missing_) {
    MUSTER_CHECK(!machines.empty());
    for (const std::string& id : machines) {
      MUSTER_CHECK(machines_.AsideOf(id) == SetAside::kMissing, "machine {} is missing and not set aside", id);
      MUSTER_CHECK(ClusterOf(id) == cluster, "machine {} is missing of another cluster than its own", id);
    }
  }
  const auto aside =
      std::ranges::count(machines_.set_aside(), SetAside::kMissing, [](const auto& row) { return row.second; });
  MUSTER_CHECK(static_cast<size_t>(aside) == missing());
}

}  // namespace muster::shard
