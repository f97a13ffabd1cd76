// WorkloadTemplate: what runs, and what it asks of a node. The part of a workload file below `template`, shared by the
// members of a set.
//
// A value type without behaviour; docs/workloads.md lists the keys. Selectors are requirements on the labels of other
// workloads, all of which must hold.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "model/node.h"
#include "model/penalty.h"
#include "model/requirement.h"
#include "model/resources.h"

namespace muster::model {

enum class RestartPolicy : uint8_t { kAlways, kOnFailure, kNever };
std::string_view RestartPolicyName(RestartPolicy policy);  // "always", "on-failure", "never"
// "no" and "unless-stopped" are the container world's spellings of never and always.
Result<RestartPolicy> ParseRestartPolicy(std::string_view name);

enum class PortProtocol : uint8_t { kTcp, kUdp, kSctp };
std::string_view PortProtocolName(PortProtocol protocol);  // "TCP", "UDP", "SCTP"
Result<PortProtocol> ParsePortProtocol(std::string_view name);

struct Port {
  int32_t container = 0;  // 0: the same as `host`
  int32_t host = 0;       // 0: none is taken on the node
  PortProtocol protocol = PortProtocol::kTcp;
  std::string host_ip;  // empty: every address

  bool operator==(const Port&) const = default;
  MUSTER_FIELDS(Port, container, host, protocol, host_ip)
};

struct VolumeMount {
  std::string source;  // a path on the node, or the name of a volume
  std::string target;  // where the workload sees it
  bool read_only = false;

  bool operator==(const VolumeMount&) const = default;
  MUSTER_FIELDS(VolumeMount, source, target, read_only)
};

// Which taints of a node a workload accepts. An empty key stands for every key, an empty effect for every effect.
struct TolerationRule {
  std::string key;
  bool any_value = false;  // operator Exists
  std::string value;
  std::string effect;

  bool operator==(const TolerationRule&) const = default;
  MUSTER_FIELDS(TolerationRule, key, any_value, value, effect)
};

// How members of a selection are spread over the values of a node label.
struct SpreadRule {
  Spread spread;
  int32_t min_domains = 0;                           // 0: none asked for
  std::optional<std::vector<Requirement>> selector;  // absent: the members of the own set
  std::vector<std::string> match_label_keys;
  bool honor_requirements = true;  // nodes that the requirements exclude are no domains
  bool honor_taints = false;       // nor are nodes with taints that are not tolerated

  bool operator==(const SpreadRule&) const = default;
  MUSTER_FIELDS(SpreadRule, spread, min_domains, selector, match_label_keys, honor_requirements, honor_taints)
};

// Together with, or apart from, what the selector selects, within one value of the node label `topology_key`.
struct NeighbourRule {
  std::string topology_key;
  std::optional<std::vector<Requirement>> selector;  // absent: the members of the own set
  int32_t weight = 0;                                // 0: required; 1 to 100: preferred

  bool operator==(const NeighbourRule&) const = default;
  MUSTER_FIELDS(NeighbourRule, topology_key, selector, weight)
};

struct WorkloadTemplate {
  WorkloadType type = WorkloadType::kUnspecified;
  std::vector<std::string> command;
  std::string image;
  std::string compose;  // the text of a compose file
  std::map<std::string, std::string> env;
  std::vector<Port> ports;
  std::vector<VolumeMount> volumes;
  Resources resources;
  std::vector<std::vector<Requirement>> requirements;  // any of these lists must hold as a whole; none: every node
  std::vector<TolerationRule> tolerations;
  std::vector<SpreadRule> spread;
  std::vector<NeighbourRule> colocate;
  std::vector<NeighbourRule> exclude;
  int32_t priority = 0;
  PenaltyBucket interruption = PenaltyBucket::kZero;
  PenaltyBucket reclamation = PenaltyBucket::kZero;
  RestartPolicy restart = RestartPolicy::kAlways;
  Duration grace = std::chrono::seconds(30);
  // Variables whose values are secrets. Only files and shells have the values: a core gets sealed texts or handles.
  std::map<std::string, std::string> secret_env;

  bool operator==(const WorkloadTemplate&) const = default;
  MUSTER_FIELDS(WorkloadTemplate, type, command, image, compose, env, ports, volumes, resources, requirements,
                tolerations, spread, colocate, exclude, priority, interruption, reclamation, restart, grace, secret_env)
};

// The variables that a compose file or a process sees: `env` and `secret_env`.
std::map<std::string, std::string> WholeEnv(const WorkloadTemplate& spec);

// What is to run fits the type, ports are from 1 to 65535, requirements and spreads are valid. The message begins with
// the field as it is written in files: "ports[1].host: ...". Empty if all holds.
std::string TemplateProblem(const WorkloadTemplate& spec);

}  // namespace muster::model
