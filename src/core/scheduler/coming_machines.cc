#include "core/scheduler/coming_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/probe.h"
#include "core/scheduler/rooms.h"

namespace muster::scheduler {
namespace {

constexpr size_t kMostMachines = 1000;
constexpr Duration kLongestReport = 10min;
constexpr Duration kLongestWait = 10min;

}  // namespace

ComingMachines::ComingMachines(State state) : state_(std::move(state)) {}

Result<bool> ComingMachines::Report(const contract::ReportMachines& report, MonoTime now) {
  if (report.machines.size() > kMostMachines) {
    return InvalidArgument(fmt::format("machines: {} are too many; name {} at the most, and equal ones once",
                                       report.machines.size(), kMostMachines));
  }
  const bool held = now < state_.until;
  const bool gone = held && std::ranges::any_of(state_.machines, [&](const contract::ComingMachine& before) {
                      return std::ranges::find(report.machines, before) == report.machines.end();
                    });
  state_.machines = report.machines;
  state_.until = now + std::clamp<Duration>(report.valid_for, Duration::zero(), kLongestReport);
  return gone;
}

std::optional<MonoTime> ComingMachines::AwaitedUntil(const WorkloadRecord& record, MonoTime since, MonoTime now) const {
  const MonoTime expires = MUTANT("scheduler.report_stays") ? since + kLongestWait : state_.until;
  const MonoTime until = MUTANT("scheduler.waits_for_ever") ? expires : std::min(expires, since + kLongestWait);
  if (now >= until || MUTANT("scheduler.coming_ignored")) return std::nullopt;
  const bool awaited = std::ranges::any_of(
      state_.machines, [&](const contract::ComingMachine& machine) { return CouldTake(machine, record); });
  return awaited ? std::optional(until) : std::nullopt;
}

}  // namespace muster::scheduler
