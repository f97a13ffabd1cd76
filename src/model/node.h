// Node: a Configured machine as its cluster sees it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "model/resources.h"

namespace muster::model {

enum class NodeStatus : uint8_t { kUnknown, kReady, kNotReady, kDraining };
std::string_view NodeStatusName(NodeStatus status);  // "Ready", ...
// Case-insensitive; "Active" is an older spelling of Ready.
Result<NodeStatus> ParseNodeStatus(std::string_view name);

enum class WorkloadType : uint8_t { kUnspecified, kProcess, kContainer, kCompose, kVm };
std::string_view WorkloadTypeName(WorkloadType type);  // "process", "container", "compose", "vm", "unspecified"
// Every name but "unspecified".
Result<WorkloadType> ParseWorkloadType(std::string_view name);

struct Taint {
  std::string key;
  std::string value;
  std::string effect;

  bool operator==(const Taint&) const = default;
  MUSTER_FIELDS(Taint, key, value, effect)
};

struct Node {
  std::string id;
  NodeStatus status = NodeStatus::kUnknown;
  std::string status_reason;
  std::string status_updated_by;  // register, heartbeat, monitor, reconciler
  WallTime status_updated_at;
  uint64_t epoch = 0;          // of the agent's session; older ones are refused
  std::string agent_endpoint;  // host:port
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool cordoned = false;
  Resources total;
  Resources used;  // as last observed; a tie-breaker, never capacity
  std::vector<WorkloadType> supported_types;
  std::vector<std::string> storage_drivers;

  bool operator==(const Node&) const = default;
};

// Id and endpoint given, cpu and memory above zero.
Status CheckStructure(const Node& node);

}  // namespace muster::model
