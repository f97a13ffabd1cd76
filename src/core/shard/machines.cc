#include "core/shard/machines.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/shard/engine_view.h"
#include "engine/bind_stamp.h"

namespace muster::shard {
namespace {

using model::MachineState;

MachineKind KindOf(const model::Machine& machine) {
  const auto interruption =
      machine.shard_metadata.empty() ? model::PenaltyBucket::kZero : engine::BoundInterruption(machine.shard_metadata);
  return {machine.state, machine.capacity_type, interruption};
}

// How the engine is shown a machine that is set aside. Bound and Configuring: credited, and nobody's victim. Creating:
// counted for the need it is pledged to, and for no other. Deleting: not to be had. A fenced one will not come to whom
// it is pledged to. One that failed with many others is bound, and counts as if it served.
MachineState WhileSetAside(MachineState state, SetAside why) {
  if (why == SetAside::kFailing) return MachineState::kConfiguring;
  switch (state) {
    case MachineState::kConfigured: return MachineState::kConfiguring;
    case MachineState::kIdle: return why == SetAside::kMissing ? MachineState::kCreating : MachineState::kDeleting;
    case MachineState::kSpeculative: return MachineState::kDeleting;
    default: return state;
  }
}

bool Stays(MachineState state_for_engine) {
  using enum MachineState;
  return state_for_engine == kIdle || state_for_engine == kConfiguring || state_for_engine == kConfigured ||
         state_for_engine == kDraining;
}

}  // namespace

Machines::Machines(EngineView& engine, Clusters& clusters, State state)
    : engine_(engine), clusters_(clusters), state_(std::move(state)) {}

void Machines::Rebuild(std::map<std::string, InProgress, std::less<>> in_progress) {
  in_progress_ = std::move(in_progress);
  for (const auto& [id, tracked] : state_.tracked) {
    Count(id, tracked, 1);
    PublishToEngine(id, tracked);
  }
}

Tracked* Machines::Find(const std::string& id) {
  const auto found = state_.tracked.find(id);
  return found == state_.tracked.end() ? nullptr : &found->second;
}

const Tracked* Machines::Find(const std::string& id) const {
  const auto found = state_.tracked.find(id);
  return found == state_.tracked.end() ? nullptr : &found->second;
}

void Machines::Add(Tracked tracked) {
  const std::string id = tracked.record->id;
  const auto added = state_.tracked.emplace(id, std::move(tracked)).first;
  if (state_.fenced.contains(id)) state_.set_aside.emplace(id, SetAside::kFenced);
  Count(id, added->second, 1);
  PublishToEngine(id, added->second);
}

void Machines::SetRecord(const std::string& id, Tracked& tracked, contract::MachineRecord record) {
  Count(id, tracked, -1);
  tracked.record = std::move(record);
  Count(id, tracked, 1);
}

void Machines::Remove(const std::string& id) {
  const auto found = state_.tracked.find(id);
  Count(id, found->second, -1);
  state_.tracked.erase(found);
  state_.set_aside.erase(id);
  engine_.engine().Remove(id);
}

void Machines::Put(const std::string& id, SetAside why) {
  const Tracked& tracked = state_.tracked.find(id)->second;
  if (why == SetAside::kNo && state_.fenced.contains(id)) why = SetAside::kFenced;
  Count(id, tracked, -1);
  if (why == SetAside::kNo) {
    state_.set_aside.erase(id);
  } else {
    state_.set_aside.insert_or_assign(id, why);
  }
  Count(id, tracked, 1);
  PublishToEngine(id, tracked);
}

void Machines::Fence(const std::string& id) {
  state_.fenced.insert(id);
  if (state_.tracked.contains(id) && AsideOf(id) == SetAside::kNo) Put(id, SetAside::kFenced);
}

void Machines::Unfence() {
  for (const std::string& id : std::exchange(state_.fenced, {})) {
    if (AsideOf(id) == SetAside::kFenced) Put(id, SetAside::kNo);
  }
}

SetAside Machines::AsideOf(const std::string& id) const {
  if (state_.set_aside.empty()) return SetAside::kNo;
  const auto found = state_.set_aside.find(id);
  return found == state_.set_aside.end() ? SetAside::kNo : found->second;
}

void Machines::SetInProgress(const std::string& id, InProgress in_progress) {
  const Tracked& tracked = state_.tracked.find(id)->second;
  Count(id, tracked, -1);
  in_progress_.insert_or_assign(id, std::move(in_progress));
  Count(id, tracked, 1);
  PublishToEngine(id, tracked);
}

void Machines::SetCalling(const std::string& id) { in_progress_.find(id)->second.calling = true; }

void Machines::ClearInProgress(const std::string& id) {
  const Tracked& tracked = state_.tracked.find(id)->second;
  Count(id, tracked, -1);
  in_progress_.erase(id);
  Count(id, tracked, 1);
  PublishToEngine(id, tracked);
}

bool Machines::IsCalling(const std::string& id) const {
  const auto found = in_progress_.find(id);
  return found != in_progress_.end() && found->second.calling;
}

const InProgress* Machines::UnderWay(const std::string& id, const Tracked& tracked) const {
  const auto found = in_progress_.find(id);
  return found == in_progress_.end() || tracked.record->state != found->second.from ? nullptr : &found->second;
}

MachineState Machines::StateForEngine(const std::string& id, const Tracked& tracked) const {
  if (const InProgress* under_way = UnderWay(id, tracked)) return under_way->to;
  const MachineState state = tracked.record->state;
  const SetAside why = AsideOf(id);
  return why == SetAside::kNo ? state : WhileSetAside(state, why);
}

model::Machine Machines::MachineForEngine(const std::string& id, const Tracked& tracked) const {
  model::Machine machine = *tracked.record;
  machine.state = StateForEngine(id, tracked);
  const InProgress* under_way = UnderWay(id, tracked);
  if (under_way != nullptr && under_way->to == MachineState::kConfiguring) {
    machine.cluster = under_way->cluster;
    machine.shard_metadata = under_way->metadata;
  }
  return machine;
}

void Machines::PublishToEngine(const std::string& id, const Tracked& tracked) {
  if (StateForEngine(id, tracked) == tracked.record->state) {
    return engine_.engine().Upsert(*tracked.record, tracked.record.digest());
  }
  engine_.engine().Upsert(MachineForEngine(id, tracked));
}

const Machines::Bound& Machines::BoundTo(const std::string& cluster) const {
  static const Bound none;
  const auto found = bound_.find(cluster);
  return found == bound_.end() ? none : found->second;
}

int64_t Machines::Costly() const {
  int64_t costly = 0;
  for (const auto& [kind, count] : counts_) {
    const bool free = kind.state == MachineState::kSpeculative || kind.state == MachineState::kDeleting;
    costly += free ? 0 : static_cast<int64_t>(count);
  }
  return costly;
}

void Machines::Count(const std::string& id, const Tracked& tracked, int64_t by) {
  const model::Machine& machine = *tracked.record;
  counts_[KindOf(machine)] += static_cast<uint64_t>(by);
  by_instance_type_[machine.instance_type] += by;
  by_zone_[machine.zone] += by;
  if (Stays(StateForEngine(id, tracked))) staying_ += by;
  if (const std::string cluster = ConfiguringFor(id, tracked); !cluster.empty()) {
    std::set<std::string>& configuring = BoundOf(cluster).configuring;
    if (by > 0) {
      configuring.insert(id);
    } else {
      configuring.erase(id);
    }
  }
  if (machine.cluster.empty()) return;
  Bound& bound = BoundOf(machine.cluster);
  if (by > 0) {
    bound.machines.insert(id);
  } else {
    bound.machines.erase(id);
  }
  const MachineState state = StateForEngine(id, tracked);
  if (state == MachineState::kConfigured) bound.configured += by;
  if (state == MachineState::kFailed) bound.failed += by;
}

Machines::Bound& Machines::BoundOf(const std::string& cluster) {
  const auto [bound, is_new] = bound_.try_emplace(cluster);
  if (is_new) clusters_.Add(cluster);
  return bound->second;
}

int64_t Machines::ConfiguringSince(const std::string& cluster, MonoTime since, MonoTime adopted) const {
  return std::ranges::count_if(BoundTo(cluster).configuring, [&](const std::string& id) {
    const Tracked& tracked = state_.tracked.find(id)->second;
    const bool begun = tracked.record->state == MachineState::kConfiguring;  // else it is about to be
    return begun && (tracked.moving_since == MonoTime{} ? adopted : tracked.moving_since) <= since;
  });
}

void Machines::AddClusters(Clusters::Names& used) const {
  for (const auto& [cluster, bound] : bound_) {
    if (!bound.machines.empty() || bound.configured != 0 || !bound.configuring.empty()) used.insert(cluster);
  }
  for (const auto& [id, in_progress] : in_progress_) used.insert(in_progress.cluster);
}

std::string Machines::ConfiguringFor(const std::string& id, const Tracked& tracked) const {
  if (StateForEngine(id, tracked) != MachineState::kConfiguring || AsideOf(id) != SetAside::kNo) return "";
  const InProgress* under_way = UnderWay(id, tracked);
  return under_way == nullptr ? tracked.record->cluster : under_way->cluster;
}

// After every step of the simulator: one pass, in which each cluster's machines are met in the order of its sets.
void Machines::CheckInvariants() const {
  struct Seen {
    const Bound& known;
    std::set<std::string>::const_iterator bound = known.machines.begin();  // the next
    std::set<std::string>::const_iterator configuring = known.configuring.begin();
    int64_t configured = 0;
    int64_t failed = 0;
  };
  std::map<std::string_view, Seen> clusters;
  for (const auto& [name, known] : bound_) clusters.emplace(name, Seen{known});
  std::map<MachineKind, uint64_t> counts;
  int64_t staying = 0;
  for (const auto& [id, tracked] : state_.tracked) {
    const model::Machine& machine = *tracked.record;
    MUSTER_CHECK(machine.id == id);
    ++counts[KindOf(machine)];
    const MachineState state = StateForEngine(id, tracked);
    staying += Stays(state) ? 1 : 0;
    if (state == MachineState::kConfiguring) {
      if (const std::string cluster = ConfiguringFor(id, tracked); !cluster.empty()) {
        Seen& seen = clusters.at(cluster);
        MUSTER_CHECK(seen.configuring != seen.known.configuring.end() && *seen.configuring++ == id,
                     "{} is not known to be configured for {}", id, cluster);
      }
    }
    if (machine.cluster.empty()) continue;
    Seen& seen = clusters.at(machine.cluster);
    MUSTER_CHECK(seen.bound != seen.known.machines.end() && *seen.bound++ == id, "{} is not known to be bound", id);
    seen.configured += state == MachineState::kConfigured ? 1 : 0;
    seen.failed += state == MachineState::kFailed ? 1 : 0;
  }
  for (const auto& [kind, count] : counts_) MUSTER_CHECK(counts[kind] == count);
  for (const auto& [name, seen] : clusters) {
    MUSTER_CHECK(seen.bound == seen.known.machines.end(), "{} is bound to {} no longer", *seen.bound, name);
    MUSTER_CHECK(seen.configuring == seen.known.configuring.end(), "{} is configured for {} no longer",
                 *seen.configuring, name);
    MUSTER_CHECK(seen.known.configured == seen.configured, "cluster {} has {} Configured machines, not {}", name,
                 seen.configured, seen.known.configured);
    MUSTER_CHECK(seen.known.failed == seen.failed, "cluster {} has {} Failed machines, not {}", name, seen.failed,
                 seen.known.failed);
  }
  MUSTER_CHECK(staying == staying_);
  for (const auto& [id, why] : state_.set_aside) MUSTER_CHECK(state_.tracked.contains(id), "{} is not tracked", id);
  for (const std::string& id : state_.fenced) {
    MUSTER_CHECK(!state_.tracked.contains(id) || AsideOf(id) != SetAside::kNo, "{} was fenced, and is not set aside",
                 id);
  }
  for (const auto& [id, in_progress] : in_progress_) {
    MUSTER_CHECK(state_.tracked.contains(id), "an operation on {}, which is not tracked", id);
  }
}

}  // namespace muster::shard
