// Dump: what a Kubernetes cluster was at one moment, as far as placement and planning need it.
//
// Filled by DumpReader from `kubectl get nodes,pods,pdb,daemonsets,pvc,pv,csinodes,priorityclasses,namespaces -A -o
// json`. Plain values, in the order of their names, so that the order of the files has no influence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine.h"
#include "placement/types.h"

namespace muster::kube {

struct DumpNode {
  placement::Node node;  // labels and taints as they are, and kCapacityTypeLabel
  std::string type;      // empty: the node has no such label
  std::string zone;
  std::string arch;
  std::string os;
  model::CapacityType capacity = model::CapacityType::kOnDemand;
  bool control_plane = false;
  bool do_not_disrupt = false;  // an annotation of the node says so
};

struct DumpPod {
  placement::Unit unit;      // "namespace/name", its kind in Dump::kinds, the age
  std::string node;          // empty: pending
  std::string missing_node;  // the node it is bound to, if the dump does not have it; `node` is empty then
  std::string owner;         // "ReplicaSet/web-7f"; empty: a bare pod
  bool terminating = false;
  bool daemon = false;            // of a DaemonSet
  bool is_static = false;         // a mirror of a static pod
  bool do_not_disrupt = false;    // an annotation says so
  bool local_volume = false;      // uses a volume that exists on its node alone
  bool without_requests = false;  // neither cpu nor memory
  std::vector<std::string> budgets;
};

struct DumpDaemonSet {
  std::string id;  // "namespace/name"
  placement::Kind kind;
};

struct Dump {
  std::vector<placement::Kind> kinds;
  std::vector<DumpNode> nodes;
  std::vector<DumpPod> pods;  // without those that have ended
  std::vector<DumpDaemonSet> daemon_sets;
  std::vector<placement::Budget> budgets;
  std::map<std::string, model::TextMap> namespaces;

  int64_t ended_pods = 0;
  int64_t on_unknown_nodes = 0;                   // pods whose node the dump does not have: taken as pending
  int64_t unknown_volumes = 0;                    // claims without a known volume: pinned to their node's zone
  std::map<std::string, int64_t> not_understood;  // by name, with how many pods have it
  std::map<std::string, int64_t> other_objects;   // of kinds that are not used
};

// The label that every node of a dump and every candidate carries: "on-demand", "spot", ...
inline constexpr std::string_view kCapacityTypeLabel = "muster.io/capacity-type";
inline constexpr std::string_view kArchLabel = "kubernetes.io/arch";
inline constexpr std::string_view kOsLabel = "kubernetes.io/os";
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

// Labels in which clouds and autoscalers say on which terms a node was bought.
inline constexpr std::string_view kCapacityTypeLabels[] = {
    "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-spot",
    "cloud.google.com/gke-preemptible", "kubernetes.azure.com/scalesetpriority"};

}  // namespace muster::kube
