#include "model/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/names.h"
#include "model/requirement.h"

namespace muster::model {
namespace {

using enum MachineState;

constexpr auto kStates = std::to_array<NameRow<MachineState>>({{kSpeculative, "Speculative"},
                                                               {kCreating, "Creating"},
                                                               {kIdle, "Idle"},
                                                               {kConfiguring, "Configuring"},
                                                               {kConfigured, "Configured"},
                                                               {kDraining, "Draining"},
                                                               {kDeleting, "Deleting"},
                                                               {kFailed, "Failed"}});

constexpr auto kCapacityTypes = std::to_array<NameRow<CapacityType>>({{CapacityType::kUnspecified, "unspecified"},
                                                                      {CapacityType::kBareMetal, "bare-metal"},
                                                                      {CapacityType::kReserved, "reserved"},
                                                                      {CapacityType::kOnDemand, "on-demand"},
                                                                      {CapacityType::kSpot, "spot"}});

struct Edge {
  MachineState from;
  MachineState to;
};
constexpr auto kEdges = std::to_array<Edge>({{kSpeculative, kCreating},
                                             {kCreating, kIdle},
                                             {kCreating, kFailed},
                                             {kIdle, kConfiguring},
                                             {kIdle, kDeleting},
                                             {kConfiguring, kConfigured},
                                             {kConfiguring, kFailed},
                                             {kConfiguring, kIdle},
                                             {kConfigured, kDraining},
                                             {kDraining, kIdle},
                                             {kDraining, kFailed},
                                             {kDeleting, kSpeculative},
                                             {kDeleting, kFailed},
                                             {kFailed, kDeleting}});

enum class Presence : uint8_t { kEmpty, kSet, kAny };
struct StateRule {
  MachineState state;
  Presence host;
  Presence cluster;
};
constexpr auto kRules = std::to_array<StateRule>({{kSpeculative, Presence::kEmpty, Presence::kEmpty},
                                                  {kCreating, Presence::kEmpty, Presence::kEmpty},
                                                  {kIdle, Presence::kSet, Presence::kEmpty},
                                                  {kConfiguring, Presence::kSet, Presence::kAny},
                                                  {kConfigured, Presence::kSet, Presence::kSet},
                                                  {kDraining, Presence::kSet, Presence::kSet},
                                                  {kDeleting, Presence::kSet, Presence::kEmpty},
                                                  {kFailed, Presence::kAny, Presence::kAny}});

// "host: a machine that is Idle must have one", or nothing if the rule holds.
std::string CheckPresence(std::string_view field, Presence rule, bool empty, MachineState state) {
  if (rule == Presence::kSet && empty) {
    return fmt::format("{}: a machine that is {} must have one", field, StateName(state));
  }
  if (rule == Presence::kEmpty && !empty) {
    return fmt::format("{}: a machine that is {} must have none", field, StateName(state));
  }
  return "";
}

}  // namespace

std::string_view StateName(MachineState state) {
  return state == kUnspecified ? "Unspecified" : NameOf(kStates, state);
}

Result<MachineState> ParseState(std::string_view name) { return ParseName(kStates, "machine state", name); }

bool IsLegalEdge(MachineState from, MachineState to) {
  return std::ranges::any_of(kEdges, [&](const Edge& edge) { return edge.from == from && edge.to == to; });
}

bool IsStable(MachineState state) { return state == kSpeculative || state == kIdle || state == kConfigured; }

std::string_view CapacityTypeName(CapacityType type) { return NameOf(kCapacityTypes, type); }

Result<CapacityType> ParseCapacityType(std::string_view name) {
  return ParseName(kCapacityTypes, "capacity type", name);
}

std::optional<std::string_view> Machine::Attribute(std::string_view key) const {
  const auto given = [](const std::string& value) {
    return value.empty() ? std::nullopt : std::optional<std::string_view>(value);
  };
  if (key == kInstanceTypeKey) return given(instance_type);
  if (key == kZoneKey) return given(zone);
  const auto label = labels.find(std::string(key));
  if (label == labels.end()) return std::nullopt;
  return label->second;
}

std::string StructureProblem(const Machine& machine) {
  if (machine.id.empty()) return "id: missing";
  const auto rule = std::ranges::find(kRules, machine.state, &StateRule::state);
  if (rule == kRules.end()) {
    return fmt::format("state: {} is not a state; use 1 (Speculative) to 8 (Failed)", static_cast<int>(machine.state));
  }
  if (std::string problem = CheckPresence("host", rule->host, machine.host.empty(), machine.state); !problem.empty()) {
    return problem;
  }
  if (std::string problem = CheckPresence("cluster", rule->cluster, machine.cluster.empty(), machine.state);
      !problem.empty()) {
    return problem;
  }
  if (machine.host.empty() && !machine.cluster.empty()) return "cluster: a machine without a host must have none";
  if (machine.state == kFailed && machine.last_error.empty())
    return "last_error: a machine that is Failed must say why";
  if (machine.price_per_hour.micros < 0) {
    return fmt::format("price_per_hour: {} is negative", FormatMoney(machine.price_per_hour));
  }
  if (const int32_t millionths = machine.interruption_probability.millionths;
      millionths < 0 || millionths > 1'000'000) {
    return fmt::format("interruption_probability: {} millionths is not from 0 to 1000000", millionths);
  }
  return "";
}

Status CheckStructure(const Machine& machine) {
  const std::string problem = StructureProblem(machine);
  if (problem.empty()) return {};
  return {Code::kInvalidArgument, fmt::format("machine {}: {}", Quoted(machine.id), problem)};
}

}  // namespace muster::model
