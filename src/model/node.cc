#include "model/node.h"

#include <fmt/format.h>

#include "model/names.h"

namespace muster::model {
namespace {

constexpr auto kStatuses = std::to_array<NameRow<NodeStatus>>({{NodeStatus::kReady, "Ready"},
                                                               {NodeStatus::kReady, "Active"},
                                                               {NodeStatus::kNotReady, "NotReady"},
                                                               {NodeStatus::kDraining, "Draining"},
                                                               {NodeStatus::kUnknown, "Unknown"}});

constexpr auto kTypes = std::to_array<NameRow<WorkloadType>>({{WorkloadType::kProcess, "process"},
                                                              {WorkloadType::kContainer, "container"},
                                                              {WorkloadType::kCompose, "compose"},
                                                              {WorkloadType::kVm, "vm"}});

std::string FirstProblem(const Node& node) {
  if (node.id.empty()) return "id: missing";
  if (node.agent_endpoint.empty()) return "agent_endpoint: missing; the agent must say host:port where it is reached";
  for (const std::string_view name : {"cpu", "memory"}) {
    if (node.total.Get(name) == 0) return fmt::format("total.{}: missing; a node must have some", name);
  }
  return "";
}

}  // namespace

std::string_view NodeStatusName(NodeStatus status) { return NameOf(kStatuses, status); }

Result<NodeStatus> ParseNodeStatus(std::string_view name) {
  return ParseName(kStatuses, "node status", name, LetterCase::kAny);
}

std::string_view WorkloadTypeName(WorkloadType type) {
  return type == WorkloadType::kUnspecified ? "unspecified" : NameOf(kTypes, type);
}

Result<WorkloadType> ParseWorkloadType(std::string_view name) { return ParseName(kTypes, "workload type", name); }

Status CheckStructure(const Node& node) {
  const std::string problem = FirstProblem(node);
  if (problem.empty()) return {};
  return {Code::kInvalidArgument, fmt::format("node {}: {}", Quoted(node.id), problem)};
}

}  // namespace muster::model
