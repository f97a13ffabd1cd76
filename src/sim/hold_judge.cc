#include "sim/hold_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/probe.h"
#include "core/shard/machines.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr size_t kEnough = 3;

bool IsOutage(const contract::ActionView& action) {
  return action.error.starts_with("UNAVAILABLE") || action.error.starts_with("DEADLINE_EXCEEDED");
}

// Each kind of hold must see a restart.
void CountRestart(shard::HoldKind kind) {
  switch (kind) {
    case shard::HoldKind::kMachine: PROBE("sim.restart_in_hold_of_machine"); break;
    case shard::HoldKind::kClass: PROBE("sim.restart_in_hold_of_class"); break;
    case shard::HoldKind::kPair: PROBE("sim.restart_in_hold_of_pair"); break;
    case shard::HoldKind::kCluster: PROBE("sim.restart_in_hold_of_cluster"); break;
    case shard::HoldKind::kRest: PROBE("sim.restart_in_rest"); break;
  }
}

bool IsRepair(const std::string& kind) { return kind == "Repair" || kind == "Recreate"; }

// Ends of operations that begin or lengthen a hold.
bool IsFailure(const contract::ActionView& action) {
  const bool acquires = action.kind == "Provision" || action.kind == "Recreate" || action.kind == "Bootstrap";
  return (action.outcome == "provider_error" && !IsOutage(action)) || action.outcome == "blob_error" ||
         action.outcome == "blob_timeout" || (action.outcome == "failed" && acquires);
}

}  // namespace

std::string HoldJudge::ClassOf(const model::Machine& machine) {
  return fmt::format("{} {} in {}", model::CapacityTypeName(machine.capacity_type), machine.instance_type,
                     machine.zone);
}

HoldJudge::Keys HoldJudge::KeysOf(const std::string& kind, const model::Machine& machine, const std::string& cluster) {
  using enum shard::HoldKind;
  if (kind == "Provision" || kind == "Recreate") return {"Create of " + machine.id, ClassOf(machine), kMachine, kClass};
  if (kind == "Bootstrap") {
    return {fmt::format("Configure of {} for {}", machine.id, cluster), cluster, kPair, kCluster};
  }
  return {.one = "Drain or Delete of " + machine.id, .kind_of_one = kRest};
}

// --- what the shard knows

void HoldJudge::Stepped(const shard::Core& core, MonoTime now, std::span<const shard::Core::Effect> effects) {
  const auto machine_of = [&](const std::string& id) {
    const auto tracked = core.machines().tracked().find(id);
    return tracked == core.machines().tracked().end() ? nullptr : &*tracked->second.record;
  };
  // A step hears of failures and successes before anything begins: first of those that a list tells, which come in the
  // order of the machines, then of calls and of blobs.
  std::map<std::string, const contract::ActionView*> ended;
  for (const shard::Core::Effect& effect : effects) {
    const auto* audit = std::get_if<shard::Audit>(&effect);
    if (audit != nullptr && audit->action.outcome == "failed") ended[audit->action.machine_id] = &audit->action;
  }
  FollowMachines(core, ended, now);
  for (const shard::Core::Effect& effect : effects) {
    const auto* audit = std::get_if<shard::Audit>(&effect);
    if (audit == nullptr || audit->action.outcome == "failed" || !IsFailure(audit->action)) continue;
    if (const model::Machine* machine = machine_of(audit->action.machine_id)) Fail(audit->action, *machine, now);
  }
  for (const shard::Core::Effect& effect : effects) {
    if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      const contract::ActionView& action = audit->action;
      const model::Machine* machine = machine_of(action.machine_id);
      const bool begins = action.outcome == "pending" && !IsRepair(action.kind) && machine != nullptr;
      if (begins) Judge({.kind = action.kind, .cluster = action.cluster_id, .begins = true}, *machine, now);
      if (action.outcome != "pending" && action.outcome != "success") EndProbes(action.machine_id);
    } else if (const auto* call = std::get_if<shard::Core::Call>(&effect)) {
      std::visit(
          [&](const auto& request) {
            if constexpr (requires { request.fence; }) {
              if (const model::Machine* machine = machine_of(request.machine_id)) JudgeCall(request, *machine, now);
            }
          },
          call->request);
    }
  }
}

void HoldJudge::FollowMachines(const shard::Core& core,
                               const std::map<std::string, const contract::ActionView*>& failed, MonoTime now) {
  for (const auto& [id, tracked] : core.machines().tracked()) {
    const model::Machine& machine = *tracked.record;
    const auto [known, first] = seen_.try_emplace(id, machine.state);
    const MachineState before = std::exchange(known->second, machine.state);
    if (before != machine.state) ones_.erase(KeysOf("Drain", machine, "").one);
    if (const auto line = failed.find(id); line != failed.end()) {
      if (IsFailure(*line->second)) Fail(*line->second, machine, now);
      continue;
    }
    if (before == machine.state || !model::IsStable(machine.state)) continue;
    const bool created = before == MachineState::kCreating || before == MachineState::kSpeculative;
    if (created && machine.state != MachineState::kSpeculative) Succeed(KeysOf("Provision", machine, ""), id, now);
    if (machine.state == MachineState::kConfigured) Succeed(KeysOf("Bootstrap", machine, machine.cluster), id, now);
  }
}

void HoldJudge::Succeed(const Keys& keys, const std::string& machine, MonoTime now) {
  ones_.erase(keys.one);
  const auto group = groups_.find(keys.group);
  if (group == groups_.end()) return;
  // What began before a hold says nothing about it, and after it only the probe does.
  const Hold& hold = group->second;
  const bool counts = hold.times == 0 || (now >= hold.until && (hold.probe.empty() || hold.probe == machine));
  if (counts) groups_.erase(group);
}

void HoldJudge::Fail(const contract::ActionView& action, const model::Machine& machine, MonoTime now) {
  const Keys keys = KeysOf(action.kind, machine, action.cluster_id);
  FailOne(keys.one, machine.id, now);
  ones_[keys.one].kind = keys.kind_of_one;
  const bool out_of_stock = action.kind != "Bootstrap" && action.error.contains("RESOURCE_EXHAUSTED");
  if (keys.group.empty()) return;
  FailGroup(keys.group, machine.id, out_of_stock, now);
  groups_[keys.group].kind = keys.kind_of_group;
}

void HoldJudge::Begin(Hold& hold, const std::string& machine, Duration first, Duration longest, MonoTime now) {
  hold.times = std::min(hold.times + 1, 20);
  hold.until = now + std::min<Duration>(first * (int64_t{1} << (hold.times - 1)), longest);
  hold.recent.clear();
  hold.probe.clear();
  hold.not_durable = machine;
  hold.inherited = false;
}

void HoldJudge::FailOne(const std::string& key, const std::string& machine, MonoTime now) {
  if (!IsHeld(ones_, key, now)) ones_.erase(key);
  Begin(ones_[key], machine, config_.retry_first, config_.retry_longest, now);
}

void HoldJudge::FailGroup(const std::string& key, const std::string& machine, bool at_once, MonoTime now) {
  if (groups_.contains(key) && groups_[key].times > 0 && !IsHeld(groups_, key, now)) groups_.erase(key);
  Hold& hold = groups_[key];
  if (hold.times > 0) {
    // What began before the hold tells nothing new.
    if (now < hold.until || (!hold.probe.empty() && hold.probe != machine)) return;
    return Begin(hold, machine, config_.hold_first, config_.hold_longest, now);
  }
  while (!hold.recent.empty() && now - hold.recent.front() >= config_.hold_window) hold.recent.pop_front();
  hold.recent.push_back(now);
  hold.not_durable = machine;
  if (at_once || hold.recent.size() >= kEnough) Begin(hold, machine, config_.hold_first, config_.hold_longest, now);
}

void HoldJudge::EndProbes(const std::string& machine) {
  for (auto& [key, hold] : groups_) {
    if (hold.probe == machine) hold.probe.clear();
  }
}

// --- from one life to the next

void HoldJudge::Audited(const contract::ActionView& action) {
  if (action.outcome == "pending" || action.outcome == "success") return;
  for (Holds* holds : {&ones_, &groups_}) {
    for (auto& [key, hold] : *holds) {
      if (hold.not_durable == action.machine_id) hold.not_durable.clear();
    }
  }
}

void HoldJudge::Crashed(MonoTime now) {
  seen_.clear();
  for (Holds* holds : {&ones_, &groups_}) {
    std::erase_if(*holds, [](const auto& row) { return !row.second.not_durable.empty(); });
    for (auto& [key, hold] : *holds) {
      if (hold.times > 0 && now < hold.until) CountRestart(hold.kind);
      hold.inherited = true;
      hold.probe.clear();
    }
  }
}

// --- judging

bool HoldJudge::IsHeld(const Holds& holds, const std::string& key, MonoTime now) const {
  const auto found = holds.find(key);
  const Duration longest = &holds == &groups_ ? config_.hold_longest : config_.retry_longest;
  return found != holds.end() && found->second.times > 0 && now < found->second.until + longest;
}

bool HoldJudge::IsCreateHeld(const model::Machine& machine, MonoTime now) const {
  const Keys keys = KeysOf("Provision", machine, "");
  return IsHeld(ones_, keys.one, now) || IsHeld(groups_, keys.group, now);
}

template <class Request>
void HoldJudge::JudgeCall(const Request& request, const model::Machine& machine, MonoTime now) {
  if constexpr (requires { request.cluster_id; }) {
    Judge({.kind = "Bootstrap", .cluster = request.cluster_id}, machine, now);
  } else if constexpr (std::is_same_v<Request, contract::CreateRequest>) {
    Judge({.kind = "Provision"}, machine, now);
  } else if (machine.state != MachineState::kFailed) {  // no repair
    Judge({.kind = "Drain"}, machine, now);
  }
}

void HoldJudge::Judge(const Operation& operation, const model::Machine& machine, MonoTime now) {
  const Keys keys = KeysOf(operation.kind, machine, operation.cluster);
  const auto one = ones_.find(keys.one);
  findings_.Check(one == ones_.end() || now >= one->second.until, [&] {
    return one->second.inherited ? fmt::format("{} again: an earlier life of the shard held it", keys.one)
                                 : fmt::format("{} again, though it has just failed", keys.one);
  });
  const auto found = groups_.find(keys.group);
  if (keys.group.empty() || found == groups_.end() || found->second.times == 0) return;
  Hold& group = found->second;
  const bool buys = operation.kind == "Provision";
  findings_.Check(now >= group.until, [&] {
    if (group.inherited) return fmt::format("{}: an earlier life of the shard held {}", keys.one, keys.group);
    return buys ? fmt::format("{} is bought while Creates of {} fail", machine.id, keys.group)
                : fmt::format("{} is bound to {}, whose Configures fail", machine.id, keys.group);
  });
  if (!IsHeld(groups_, keys.group, now)) return;
  const bool probed = !group.probe.empty() && now - group.probe_since < config_.hold_longest;
  findings_.Check(!probed || group.probe == machine.id, [&] {
    return fmt::format("{} goes ahead beside {}, the probe of {}", machine.id, group.probe, keys.group);
  });
  if (probed || !operation.begins) return;
  group.probe = machine.id;
  group.probe_since = now;
}

}  // namespace muster::sim
