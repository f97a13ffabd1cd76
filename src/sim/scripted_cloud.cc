#include "sim/scripted_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::sim {

void ScriptedCloud::Fail(const ScriptedFault& fault, MonoTime now) { failing_.push_back({fault, now + fault.lasts}); }

void ScriptedCloud::Lose(const std::string& machine, MonoTime now) {
  const auto host = hosts_.find(machine);
  if (host == hosts_.end()) return;
  happening_.emplace(now, contract::Observation(contract::MachineLost{
                              .machine_id = machine, .host_ref = host->second, .reason = "its hardware is gone"}));
  hosts_.erase(host);
}

void ScriptedCloud::Adopt(std::span<const contract::MachineRecord> machines, Now) {
  for (const contract::MachineRecord& machine : machines) {
    if (!machine->host.empty()) hosts_[machine->id] = machine->host.ref;
  }
}

void ScriptedCloud::Start(contract::CallId call, const contract::Operation& operation, Now now) {
  const std::string& id = operation.machine->id;
  provider::OperationEnded ended{
      .call = call, .operation_id = operation.id, .machine_id = id, .kind = operation.kind, .status = {}, .done = {}};
  for (const Failing& failing : failing_) {
    const bool hit = failing.fault.kind == operation.kind && now.mono < failing.until &&
                     std::ranges::find(failing.fault.machines, id) != failing.fault.machines.end();
    if (hit) ended.status = Status(Code::kUnavailable, failing.fault.error);
  }
  if (ended.status.ok() && operation.kind == contract::OperationKind::kCreate) {
    ended.done.host = {.provider = "script", .ref = fmt::format("host-{}", ++last_host_)};
    hosts_[id] = ended.done.host.ref;
  }
  if (ended.status.ok() && operation.kind == contract::OperationKind::kDelete) hosts_.erase(id);
  happening_.emplace(now.mono + dwell_[static_cast<size_t>(operation.kind)], std::move(ended));
}

std::optional<MonoTime> ScriptedCloud::NextPoll() const {
  return happening_.empty() ? std::nullopt : std::optional(happening_.begin()->first);
}

void ScriptedCloud::Poll(Now now, std::vector<provider::Report>& out) {
  while (!happening_.empty() && happening_.begin()->first <= now.mono) {
    out.push_back(std::move(happening_.begin()->second));
    happening_.erase(happening_.begin());
  }
}

}  // namespace muster::sim
