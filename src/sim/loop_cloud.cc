#include "sim/loop_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/probe.h"
#include "model/requirement.h"

namespace muster::sim {
namespace {

using contract::OperationKind;

constexpr Duration kBusyPoll = 50ms;
constexpr Duration kRestartPause = 1s;
constexpr std::string_view kClusterLine = "cluster: ";

// The cluster that the bootstrap data name; empty: none.
std::string ClusterIn(const std::string& blob) {
  const size_t at = blob.find(kClusterLine);
  if (at == std::string::npos) return {};
  const size_t begin = at + kClusterLine.size();
  return blob.substr(begin, blob.find('\n', begin) - begin);
}

}  // namespace

contract::NodeFacts FactsOf(const model::Machine& machine, const LoopSettings& settings) {
  contract::NodeFacts facts{.node = machine.id,
                            .agent_version = "sim",
                            .total = machine.EffectiveAllocatable(),
                            .supported_types = settings.runtimes};
  for (const auto& [key, value] : machine.labels) facts.labels[key] = value;
  if (!machine.instance_type.empty()) facts.labels[std::string(model::kInstanceTypeKey)] = machine.instance_type;
  if (!machine.zone.empty()) facts.labels[std::string(model::kZoneKey)] = machine.zone;
  facts.labels["kubernetes.io/hostname"] = machine.id;
  return facts;
}

void LoopCloud::Adopt(std::span<const contract::MachineRecord> machines, Now) {
  for (const contract::MachineRecord& machine : machines) {
    if (!machine->host.empty()) hosts_[machine->id] = machine->host.ref;
    if (machine->state != model::MachineState::kConfigured || !world_.has_scheduler(machine->cluster)) continue;
    LoopNode& node = world_.node(machine->id);
    if (!node.configured()) StartAgent(*machine, fmt::format("{}{}\n", kClusterLine, machine->cluster));
    node.Start();
    keeps_.insert(machine->id);
  }
}

void LoopCloud::StartAgent(const model::Machine& machine, const std::string& blob) {
  LoopNode& node = world_.node(machine.id);
  contract::NodeFacts facts = FactsOf(machine, settings_);
  facts.cluster = ClusterIn(blob);
  node.Configure(std::move(facts));
  node.Start();
}

void LoopCloud::Start(contract::CallId call, const contract::Operation& operation, Now now) {
  const std::string& machine = operation.machine->id;
  const auto at = running_.find(machine);
  if (at != running_.end() && at->second.operation.id == operation.id) {
    at->second.call = call;
  } else {
    Running running{.call = call,
                    .operation = operation,
                    .fails = world_.fails(operation),
                    .due = now.mono + settings_.dwell[static_cast<size_t>(operation.kind)] + world_.late(),
                    .deadline = now.mono + operation.grace};
    if (operation.kind == OperationKind::kCreate && !in_stock_(*operation.machine)) {
      running.fails = Status(Code::kResourceExhausted, "out of stock");
    }
    running_.insert_or_assign(machine, std::move(running));
  }
  keeps_.erase(machine);
  next_poll_ = now.mono;
}

void LoopCloud::Poll(Now now, std::vector<provider::Report>& out) {
  for (contract::Observation& observation : std::exchange(observed_, {})) out.emplace_back(std::move(observation));
  for (auto at = running_.begin(); at != running_.end();) {
    Running& running = at->second;
    if (!Advance(running, now)) {
      ++at;
      continue;
    }
    provider::OperationEnded ended{.call = running.call,
                                   .operation_id = running.operation.id,
                                   .machine_id = at->first,
                                   .kind = running.operation.kind,
                                   .status = running.fails,
                                   .done = {}};
    if (ended.status.ok() && ended.kind == OperationKind::kCreate) {
      ended.done.host = {.provider = "loop", .ref = hosts_.at(at->first)};
    }
    if (ended.status.ok() && ended.kind == OperationKind::kConfigure) keeps_.insert(at->first);
    out.emplace_back(std::move(ended));
    at = running_.erase(at);
  }
  next_poll_ = running_.empty() ? std::nullopt : std::optional(now.mono + kBusyPoll);
}

bool LoopCloud::Advance(Running& running, Now now) {
  const model::Machine& machine = *running.operation.machine;
  if (now.mono < running.due) return false;
  if (!running.fails.ok()) return true;
  LoopNode& node = world_.node(machine.id);
  switch (running.operation.kind) {
    case OperationKind::kCreate:
      if (!hosts_.contains(machine.id)) hosts_[machine.id] = fmt::format("host-{}", ++last_host_);
      return true;
    case OperationKind::kConfigure: {
      const std::string cluster = ClusterIn(running.operation.bootstrap_blob);
      if (cluster.empty()) {
        running.fails = Status(Code::kInvalidArgument, "the bootstrap data name no cluster");
        return true;
      }
      if (!world_.has_scheduler(cluster)) return true;
      if (!node.configured()) StartAgent(machine, running.operation.bootstrap_blob);
      if (!node.alive()) node.Start();
      return node.status_file() && node.status_file()->joined;
    }
    case OperationKind::kDrain: {
      const bool empty = !node.status_file() || node.status_file()->workloads == 0 || MUTANT("loop.drain_at_once");
      const bool in_time = now.mono < running.deadline;
      if (!empty && in_time) {
        node.Start();
        return false;
      }
      world_.empties(running.operation, in_time);
      if (!MUTANT("loop.drained_agent_stays")) node.Wipe();
      return true;
    }
    case OperationKind::kDelete: {
      world_.empties(running.operation, machine.last_error.empty());  // one that failed is given back as it is
      node.Wipe();
      hosts_.erase(machine.id);
      return true;
    }
  }
  return true;
}

void LoopCloud::Observe(const contract::Observation& observation, MonoTime now) {
  if (const auto* lost = std::get_if<contract::MachineLost>(&observation)) {
    const auto host = hosts_.find(lost->machine_id);
    if (host == hosts_.end() || host->second != lost->host_ref) return;
    hosts_.erase(host);
    lost_.emplace(lost->host_ref, *lost);
    keeps_.erase(lost->machine_id);
    running_.erase(lost->machine_id);
    world_.node(lost->machine_id).Wipe();
  }
  observed_.push_back(observation);
  next_poll_ = now;
}

void LoopCloud::LookForLost(MonoTime now) {
  for (const auto& [host, lost] : lost_) observed_.emplace_back(lost);
  next_poll_ = now;
}

void LoopCloud::AgentDied(const std::string& machine) {
  kernel_.After(kRestartPause, [this, machine] {
    if (keeps_.contains(machine)) world_.node(machine).Start();
  });
}

std::string LoopCloud::HostOf(const std::string& machine) const {
  const auto host = hosts_.find(machine);
  return host == hosts_.end() ? "" : host->second;
}

}  // namespace muster::sim
