#include "core/shard/losses.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/rails.h"

namespace muster::shard {
namespace {

using model::Reason;

constexpr int64_t kStoredAnew = 100;         // a change of more than one part in so many
constexpr uint64_t kMostRestored = 100'000;  // losses of a row: more is damage, and as good as so many

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
  return count - failed_aside_;
}

void Losses::RestoreMissing(const std::string& machine) {
  missing_[ClusterOf(machine)].insert(machine);
  failed_aside_ += machines_.AsideOf(machine) == SetAside::kFailing ? 1 : 0;
}

void Losses::RestoreFailing(const std::string& machine) {
  const auto found = missing_.find(ClusterOf(machine));
  MUSTER_CHECK(found != missing_.end() && found->second.contains(machine), "machine {} was not set aside", machine);
  ++failed_aside_;
}

void Losses::Uncount(const std::string& machine) {
  failed_aside_ -= machines_.AsideOf(machine) == SetAside::kFailing ? 1 : 0;
}

void Losses::AddClusters(Clusters::Names& used) const {
  for (const LossWindow* window : {&failed_, &vanished_, &replaced_}) {
    for (const auto& [cluster, count] : window->by_cluster()) used.insert(cluster);
  }
  for (const Names* names : {&failing_, &vanishing_}) used.insert(names->begin(), names->end());
  for (const auto& [cluster, lack] : lacking_) used.insert(cluster);
  for (const auto& [cluster, machines] : missing_) used.insert(cluster);
  for (const auto& [cluster, machines] : sizes_) used.insert(cluster);
}

void Losses::RegisterRows(contract::RowReader& reader) {
  reader.On(kLossRows, [this](const std::string& cluster, const LossRow& row) {
    if (!cluster.empty()) clusters_.Add(cluster);
    const auto restore = [&](LossWindow& window, uint64_t count) {
      for (uint64_t i = 0; i < std::min(count, kMostRestored); ++i) window.Add({.cluster = cluster});
    };
    restore(failed_, row.failed);
    restore(vanished_, row.vanished);
    restore(replaced_, row.replaced);
    if (row.failing) failing_.insert(cluster);
    if (row.vanishing) vanishing_.insert(cluster);
  });
  reader.On(kSizeRows, [this](const std::string& cluster, int64_t machines) {
    if (!cluster.empty()) clusters_.Add(cluster);
    sizes_.insert_or_assign(cluster, machines);
  });
  reader.On(kLackRows, [this](const std::string& cluster, int64_t machines) {
    clusters_.Add(cluster);
    lacking_.insert_or_assign(cluster, machines);
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

std::vector<std::string> Losses::OnFirstSweep(ChangeBudget& budget, StepContext& ctx) {
  FindLacking(ctx);
  UncountWhatNeverServed(ctx);
  // Only now is it known of how many machines they are.
  const LossWindow::Counts failed = failed_.by_cluster();
  for (const auto& [cluster, lost] : failed) {
    AreTooMany(failed_, cluster, failing_, "turned Failed", ctx);
    Keep(cluster, ctx);
  }
  return PutFailing(failed_.state(), budget, ctx);
}

// What another cluster has, what was given back, and what failed is still in the fleet; but not what failed and does
// not say whose it was.
void Losses::FindLacking(StepContext& ctx) {
  const int64_t of_nobody = MUTANT("shard.failed_of_nobody_is_there") ? 0 : failed_.Of("");
  const bool in_fleet = StoredSizeOf("") - SizeOf("") + of_nobody < config_.losses.fewest;
  if ((in_fleet && !MUTANT("shard.drained_is_lost")) || MUTANT("shard.lost_while_down")) return EndLacking("", ctx);
  for (const auto& [cluster, stored] : sizes_) {
    const int64_t absent = stored - SizeOf(cluster);
    if (!cluster.empty() && absent > 0 && (lacking_.contains(cluster) || IsLacking(cluster))) {
      // What an earlier life has given up within the window, and not got, need not be given up again.
      const auto earlier = lacking_.find(cluster);
      const bool known = earlier != lacking_.end() && !MUTANT("shard.given_up_is_forgotten");
      SetLacking(cluster, absent - (known ? GivenUpAndAbsent(cluster, earlier->second) : 0), ctx);
    }
    if (!IsFarBelow(cluster) && !lacking_.contains(cluster)) continue;
    PROBE("shard.lacking_since_start");
    vanishing_.insert(cluster);
    Keep(cluster, ctx);
    ctx.Note(Reason::kLosses, cluster.empty() ? config_.id : cluster,
             fmt::format("{} of {} machines are not there any more since the shard was last up, and are bought again a "
                         "share at a time until they are back or `muster fleet accept` says that they are lost indeed",
                         stored - SizeOf(cluster), stored));
  }
}

// A Create or a Configure may have ended in Failed meanwhile, and no row says which machines were on their way. How
// many served is stored: no more of them have failed than serve no longer.
void Losses::UncountWhatNeverServed(StepContext& ctx) {
  LossWindow::Counts found;  // what earlier lives have counted has no name
  int64_t bound = 0;
  for (const Loss& loss : failed_.state()) {
    if (loss.machine.empty()) continue;
    ++found[loss.cluster];
    bound += loss.cluster.empty() ? 0 : 1;
  }
  // What was being configured stays too, so all that was bound may be among those that the fleet has fewer.
  for (auto& [cluster, machines] : found) {
    const int64_t stored = StoredSizeOf(cluster);
    const int64_t fewer = stored - (cluster.empty() ? machines_.staying() + bound : ServingOf(cluster));
    machines -= std::clamp<int64_t>(fewer + stored / kStoredAnew, 0, machines);
  }
  if (MUTANT("shard.never_served_is_lost")) return;
  for (const Loss& loss : failed_.state()) {
    const auto uncounted = found.find(loss.cluster);
    if (loss.machine.empty() || uncounted == found.end() || uncounted->second == 0) continue;
    PROBE("shard.failed_before_it_served");
    --uncounted->second;
    failed_.Remove(loss.machine);
    Keep(loss.cluster, ctx);
  }
}

int64_t Losses::ServingOf(const std::string& cluster) const {
  const auto missing = missing_.find(cluster);
  return machines_.BoundTo(cluster).configured + (missing == missing_.end() ? 0 : std::ssize(missing->second));
}

void Losses::Recount(StepContext& ctx) {
  // Those that are back, or others in their place, do not lack.
  const Counts before = lacking_;
  for (const auto& [cluster, machines] : before) {
    SetLacking(cluster, std::min(machines, StoredSizeOf(cluster) - SizeOf(cluster)), ctx);
  }
  for (const std::string& cluster : clusters_.names()) {
    if (lacking_.contains(cluster)) continue;
    StoreSize(cluster, MUTANT("shard.drained_is_lost") ? SizeOf(cluster) : ServingOf(cluster), ctx);
  }
  int64_t lacking = 0;
  for (const auto& [cluster, machines] : lacking_) lacking += machines;
  StoreSize("", machines_.staying() + lacking, ctx);
}

Losses::Counts Losses::MostOf() const {
  Counts most;
  for (const auto& [cluster, lacking] : lacking_) most.emplace(cluster, StoredSizeOf(cluster) - lacking);
  return most;
}

int64_t Losses::GivenUpAndAbsent(const std::string& cluster, int64_t lacking) const {
  const int64_t absent = StoredSizeOf(cluster) - SizeOf(cluster) - lacking;
  return std::clamp<int64_t>(absent, 0, replaced_.Of(cluster));
}

void Losses::SetLacking(const std::string& cluster, int64_t machines, StepContext& ctx) {
  const auto known = lacking_.find(cluster);
  if (machines <= 0) {
    if (known == lacking_.end()) return;
    lacking_.erase(known);
    ctx.Write(kLackRows.Erase(cluster));
  } else if (known == lacking_.end() || known->second != machines) {
    lacking_.insert_or_assign(cluster, machines);
    ctx.Write(kLackRows.Put(cluster, machines));
  }
}

void Losses::EndLacking(const std::string& cluster, StepContext& ctx) {
  const Counts before = lacking_;
  for (const auto& [name, machines] : before) {
    if (cluster.empty() || name == cluster) SetLacking(name, 0, ctx);
  }
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

std::vector<std::string> Losses::OnFailed(const std::string& machine, const std::string& cluster, ChangeBudget& budget,
                                          StepContext& ctx) {
  Expire(ctx);
  const size_t alerts = failing_.size();
  const Loss loss{.at = ctx.now.mono, .machine = machine, .cluster = cluster};
  failed_.Add(loss);
  AreTooMany(failed_, cluster, failing_, "turned Failed", ctx);
  Keep(cluster, ctx);
  if (failing_.empty()) return {};
  return PutFailing(failing_.size() > alerts ? failed_.state() : LossWindow::State{loss}, budget, ctx);
}

void Losses::OnFoundFailed(const std::string& machine, const std::string& cluster, StepContext& ctx) {
  if (sizes_.empty() || MUTANT("shard.failed_while_down")) return;
  PROBE("shard.failed_since_start");
  failed_.Add({.at = ctx.now.mono, .machine = machine, .cluster = cluster});
}

std::vector<std::string> Losses::PutFailing(const LossWindow::State& failed, ChangeBudget& budget, StepContext& ctx) {
  std::vector<std::string> aside;
  if (MUTANT("shard.failed_believed")) return aside;
  for (const Loss& loss : failed) {
    const Tracked* tracked = machines_.Find(loss.machine);
    if (tracked == nullptr || !IsFailing(loss.cluster) || machines_.AsideOf(loss.machine) != SetAside::kNo) continue;
    // What is not bound to a cluster, and was not, cannot count for it.
    const model::Machine& machine = *tracked->record;
    if (machine.state != model::MachineState::kFailed || machine.cluster.empty()) continue;
    if (loss.at >= ctx.cycle.last()) {
      missing_[machine.cluster].insert(machine.id);
      ++failed_aside_;
      aside.push_back(machine.id);
      continue;
    }
    const bool counted = replaced_.Contains(machine.id) && !MUTANT("shard.given_up_is_charged_twice");
    if (!counted && ctx.now.mono - loss.at < config_.losses.replace_window) {
      CountReplaced(machine.id, machine.cluster, budget, ctx);
    }
  }
  return aside;
}

bool Losses::OnVanished(const model::Machine& machine, ChangeBudget& budget, StepContext& ctx) {
  using enum model::MachineState;
  if (machine.state == kSpeculative || machine.state == kDeleting) return true;
  const SetAside aside = machines_.AsideOf(machine.id);
  if (aside == SetAside::kMissing || aside == SetAside::kFailing) return false;
  // It serves nobody, and was counted as lost when it failed.
  if (machine.state == kFailed && !MUTANT("shard.given_up_is_charged_twice")) return true;
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
  Uncount(machine);
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
  for (auto& [cluster, lacking] : lacking_) {
    if (!modes.IsKeptBack(cluster) || !heeds_pauses) GiveUpLacking(cluster, lacking, budget, ctx);
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
    Uncount(*machines.begin());
    taken.push_back(*machines.begin());
    machines.erase(machines.begin());
  }
}

void Losses::GiveUpLacking(const std::string& cluster, int64_t& lacking, ChangeBudget& budget, StepContext& ctx) {
  const int64_t before = lacking;
  while (lacking > 0 && MayReplace(cluster, budget, ctx)) {
    PROBE("shard.lacking_replaced");
    CountReplaced("", cluster, budget, ctx);
    --lacking;
  }
  if (lacking < before) ctx.Write(kLackRows.Put(cluster, lacking));
}

std::vector<std::string> Losses::Accept(const std::string& cluster, StepContext& ctx) {
  Names changed{cluster};
  std::vector<std::string> given_up;
  std::erase_if(missing_, [&](const auto& row) {
    if (!cluster.empty() && row.first != cluster) return false;
    given_up.insert(given_up.end(), row.second.begin(), row.second.end());
    for (const std::string& machine : row.second) Uncount(machine);
    return true;
  });
  for (LossWindow* window : {&failed_, &vanished_, &replaced_}) {
    for (const auto& [name, lost] : window->by_cluster()) {
      if (cluster.empty() || name == cluster) changed.insert(name);
    }
    window->Clear(cluster);
  }
  EndLacking(cluster, ctx);
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
  return !IsFailing(cluster);
}

int64_t Losses::SizeOf(const std::string& cluster) const {
  return cluster.empty() ? machines_.Costly() : static_cast<int64_t>(machines_.BoundTo(cluster).machines.size());
}

int64_t Losses::CountingFor(const std::string& cluster) const {
  int64_t counting = SizeOf(cluster) - machines_.BoundTo(cluster).failed;
  for (const auto& [name, lacking] : lacking_) {
    if (cluster.empty() || name == cluster) counting += lacking + GivenUpAndAbsent(name, lacking);
  }
  return counting;
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
  if (replaced_.total() >= std::max<int64_t>(1, ShareOf(config_.losses.replaced, CountingFor("")))) return false;
  return cluster.empty() || HasRoom(cluster, 1, budget, ctx);
}

bool Losses::MayMakeGood(const std::string& cluster, ChangeBudget& budget, StepContext& ctx) const {
  return cluster.empty() || HasRoom(cluster, config_.losses.fewest - 1, budget, ctx);
}

bool Losses::HasRoom(const std::string& cluster, int64_t least, ChangeBudget& budget, StepContext& ctx) const {
  const int64_t most = std::max(least, ShareOf(config_.losses.replaced, CountingFor(cluster)));
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
      const SetAside why = machines_.AsideOf(id);
      MUSTER_CHECK(why == SetAside::kMissing || why == SetAside::kFailing, "machine {} is missing and not set aside",
                   id);
      MUSTER_CHECK(ClusterOf(id) == cluster, "machine {} is missing of another cluster than its own", id);
    }
  }
  const auto aside = [&](SetAside why) {
    return static_cast<size_t>(
        std::ranges::count(machines_.set_aside(), why, [](const auto& row) { return row.second; }));
  };
  MUSTER_CHECK(aside(SetAside::kMissing) == missing());
  MUSTER_CHECK(aside(SetAside::kFailing) == failed_aside_);
}

}  // namespace muster::shard
