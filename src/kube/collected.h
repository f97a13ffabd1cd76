// Collected: the objects of a dump as they were read, before references between them are resolved.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/dump.h"
#include "model/workload.h"
#include "placement/types.h"

namespace muster::kube {

// Where an object stood.
struct Origin {
  size_t file = 0;  // of Collected::files
  int line = 0;
  int column = 0;

  auto operator<=>(const Origin&) const = default;
};

struct CollectedNode {
  DumpNode node;
  Origin origin;
};

struct CollectedPod {
  DumpPod pod;                      // its kind is one of Collected::kinds
  std::vector<std::string> claims;  // "namespace/name"
  std::string priority_class;       // to be looked up; empty: the kind has its priority
  Origin origin;
};

struct DisruptionBudget {
  std::string id;
  std::string name_space;
  placement::Selector selector;
  std::optional<int64_t> allowed;  // as the controller last said
  std::optional<model::MemberCount> min_available;
  std::optional<model::MemberCount> max_unavailable;
};

struct Volume {
  std::vector<placement::NodeTerm> terms;  // any of them; none: it can be anywhere
  std::string driver;                      // CSI; empty: another kind
  bool local = false;
};

struct Claim {
  std::string volume;  // empty: not bound
};

struct Collected {
  std::vector<std::string> files;  // by name, in the order read
  Origin origin;                   // of the object that is being read
  placement::KindTable kinds;
  std::vector<CollectedPod> pods;
  std::vector<CollectedNode> nodes;
  std::vector<DumpDaemonSet> daemon_sets;
  std::vector<DisruptionBudget> budgets;
  std::map<std::string, Volume> volumes;               // by name
  std::map<std::string, Claim> claims;                 // by "namespace/name"
  std::map<std::string, model::Resources> attachable;  // by node: CSI volumes of each driver
  std::map<std::string, int32_t> priority_classes;     // by name
  Dump rest;                                           // namespaces and counts
};

// The dump that these objects make.
Result<Dump> Resolve(Collected collected);

// The resource that limits how many volumes of a CSI driver a node can attach.
std::string AttachableResource(std::string_view driver);

}  // namespace muster::kube
