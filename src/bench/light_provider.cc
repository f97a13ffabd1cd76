#include "bench/light_provider.h"

#include "base/check.h"
#include "engine/bind_stamp.h"
#include "engine/fast/internals.h"

namespace muster::bench {
namespace {

using engine::ActionKind;
using model::MachineState;
namespace fast = engine::fast;

constexpr size_t kCreate = 30;
constexpr size_t kConfigure = 5;
constexpr size_t kDrain = 20;
constexpr size_t kDelete = 5;
constexpr size_t kRepair = 60;
constexpr int64_t kFailureParts = 60'000;  // 0.1 % a minute: one machine in so many a cycle

bool Exists(MachineState state) { return state != MachineState::kSpeculative && state != MachineState::kFailed; }

MachineState StartOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kBootstrap:
    case ActionKind::kDelete: return MachineState::kIdle;
    case ActionKind::kProvision: return MachineState::kSpeculative;
    default: return MachineState::kConfigured;
  }
}

}  // namespace

LightProvider::LightProvider(std::vector<model::Machine>& machines)
    : machines_(machines), is_changed_(machines.size(), false) {
  for (const model::Machine& machine : machines_) existing_ += Exists(machine.state) ? 1 : 0;
}

int64_t LightProvider::CostMicros(const std::vector<model::Machine>& machines) {
  int64_t micros = 0;
  for (const model::Machine& machine : machines) {
    if (Exists(machine.state)) micros += machine.price_per_hour.micros;
  }
  return micros;
}

void LightProvider::Enter(uint32_t m, MachineState state, size_t dwell) {
  model::Machine& machine = machines_[m];
  existing_ += (Exists(state) ? 1 : 0) - (Exists(machine.state) ? 1 : 0);
  machine.state = state;
  if (dwell > 0) due_[(hand_ + dwell) % kWheel].push_back(m);
  if (is_changed_[m]) return;
  is_changed_[m] = true;
  changed_.push_back(m);
}

void LightProvider::CarryOut(const fast::Engine& engine) {
  const fast::Internals internals(engine);
  const fast::Inventory& inventory = internals.inventory;
  for (const fast::FastAction& action : internals.cycle.actions()) {
    const uint32_t m = action.machine.value();
    model::Machine& machine = machines_[m];
    MUSTER_CHECK(machine.id == inventory.id(action.machine), "{} is not in row {}", machine.id, m);
    MUSTER_CHECK(machine.state == StartOf(action.kind), "{} of {}, which is {}", engine::ActionKindName(action.kind),
                 machine.id, model::StateName(machine.state));
    Binding binding;
    if (action.kind == ActionKind::kBootstrap || action.kind == ActionKind::kProvision) {
      const fast::NeedRow& need = *internals.demand.order()[action.need];
      const engine::NeedKey key = inventory.NameOf(need.key);
      const model::Profile& profile = internals.demand.info(need.profile).profile;
      binding.cluster = key.cluster;
      binding.metadata = engine::EncodeBindStamp({.fingerprint = key.fingerprint,
                                                  .group = key.group,
                                                  .priority = profile.priority(),
                                                  .interruption = model::UpperBound(profile.interruption()),
                                                  .reclamation = model::UpperBound(profile.reclamation())});
    }
    switch (action.kind) {
      case ActionKind::kBootstrap:
        machine.cluster = std::move(binding.cluster);
        machine.shard_metadata = std::move(binding.metadata);
        Enter(m, MachineState::kConfiguring, kConfigure);
        break;
      case ActionKind::kProvision:
        coming_[m] = std::move(binding);
        Enter(m, MachineState::kCreating, kCreate);
        break;
      case ActionKind::kPreempt:
      case ActionKind::kReclaim: Enter(m, MachineState::kDraining, kDrain); break;
      case ActionKind::kDelete: Enter(m, MachineState::kDeleting, kDelete); break;
    }
  }
}

void LightProvider::Finish(uint32_t m) {
  model::Machine& machine = machines_[m];
  const model::HostRef host{.provider = "shape", .ref = machine.id};
  switch (machine.state) {
    case MachineState::kCreating: {
      Binding binding = std::move(coming_.at(m));
      coming_.erase(m);
      machine.host = host;
      machine.cluster = std::move(binding.cluster);
      machine.shard_metadata = std::move(binding.metadata);
      return Enter(m, MachineState::kConfiguring, kConfigure);
    }
    case MachineState::kConfiguring: return Enter(m, MachineState::kConfigured, 0);
    case MachineState::kDraining:
      machine.cluster.clear();
      machine.shard_metadata.clear();
      return Enter(m, MachineState::kIdle, 0);
    case MachineState::kDeleting: machine.host = {}; return Enter(m, MachineState::kSpeculative, 0);
    case MachineState::kFailed: {
      // Owned hardware is repaired where it stands; rented hardware goes back.
      machine.last_error.clear();
      const bool owned = machine.capacity_type != model::CapacityType::kOnDemand &&
                         machine.capacity_type != model::CapacityType::kSpot;
      if (!owned) machine.host = {};
      return Enter(m, owned ? MachineState::kIdle : MachineState::kSpeculative, 0);
    }
    default: MUSTER_CHECK(false, "{} is in no transition", machine.id);
  }
}

// Of the machines that are Idle or Configured; a transition under way is left alone.
void LightProvider::Fail(Rng& rng) {
  constexpr int kTries = 64;
  for (int i = 0; i < kTries; ++i) {
    const auto m = static_cast<uint32_t>(rng.Below(machines_.size()));
    model::Machine& machine = machines_[m];
    if (machine.state != MachineState::kIdle && machine.state != MachineState::kConfigured) continue;
    machine.cluster.clear();
    machine.shard_metadata.clear();
    machine.last_error = "lost its power";
    return Enter(m, MachineState::kFailed, kRepair);
  }
}

void LightProvider::Tick(Rng& rng) {
  hand_ = (hand_ + 1) % kWheel;
  std::vector<uint32_t> due;
  due.swap(due_[hand_]);
  for (const uint32_t m : due) Finish(m);
  for (failing_ += existing_; failing_ >= kFailureParts; failing_ -= kFailureParts) Fail(rng);
}

void LightProvider::Forget() {
  for (const uint32_t m : changed_) is_changed_[m] = false;
  changed_.clear();
}

}  // namespace muster::bench
