// What a plan is asked: units, nodes and candidates from dumps, workload files and a catalogue.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kube/dump.h"
#include "model/resources.h"
#include "model/workload_decode.h"
#include "planner/plan.h"

namespace muster::kube {

struct PlanOptions {
  planner::Keep keep = planner::Keep::kNone;
  std::vector<std::string> allow;    // architectures, systems and terms that units may move to: "arm64", "spot"
  model::Resources assume_requests;  // of pods that request neither cpu nor memory
};

// "cpu=100m,memory=128Mi"
Result<model::Resources> ParseAssumedRequests(std::string_view text);
// "arm64,spot". INVALID_ARGUMENT naming what is none of them.
Result<std::vector<std::string>> ParseAllowed(std::string_view text);

// Why nodes are part of the ideal fleet too.
enum class FixedReason : uint8_t { kControlPlane, kLocalVolume, kTiedPod };

// A node that every fleet has, with everything on it. What else fits may go there.
struct FixedNode {
  std::string id;
  FixedReason reason = FixedReason::kControlPlane;
  std::string because;  // a sentence with the pod
};

struct PlanInput {
  planner::Request request;
  std::vector<FixedNode> fixed;  // of keep none; their pods are no units of the plan
  std::map<std::string, std::string> unit_owner;
  int64_t nodes = 0;
  int64_t units = 0;
  int64_t pending = 0;
  int64_t daemon_pods = 0;
  int64_t terminating_pods = 0;
  int64_t without_requests = 0;
  std::vector<std::string> notes;  // sentences: what a reader of the plan should know first
};

// The units of the dump and of the workload files. Every running pod keeps the architecture, system and terms of its
// node unless `allow` names others. DaemonSets' and static pods are part of their nodes, not units: what they take is
// reserved, and rules between units see them on nodes that are kept.
Result<PlanInput> MakePlanInput(const Dump& dump, const std::vector<model::WorkloadFile>& files,
                                const planner::Catalogue& catalogue, const PlanOptions& options);

// Of pods that are neither of a DaemonSet nor static nor about to end: how many request neither cpu nor memory.
int64_t PodsWithoutRequests(const Dump& dump);
// What of a dump is taken otherwise than it says, or not at all: a sentence each, with how often.
std::vector<std::string> NotesOf(const Dump& dump);

// Why a node has to stay; empty: it may go. `pods` are those on it that are neither of a DaemonSet nor static.
std::string StaysBecause(const DumpNode& node, const std::vector<const DumpPod*>& pods, const Dump& dump);

// The cluster as it is, terminating pods included, and the pods that wait for a node: what a scheduler sees.
struct PlaceInput {
  placement::World world;
  std::vector<placement::Unit> pending;
  std::map<std::string, std::string> missing_node;  // by unit: what it is bound to, which the dump does not have
  std::vector<std::string> notes;                   // as PlanInput::notes
};
PlaceInput MakePlaceInput(const Dump& dump);

}  // namespace muster::kube
