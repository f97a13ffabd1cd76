// The whole reason chain of one thing, across both halves:
//
//   workload -> which classes of nodes take it -> the need it is counted in -> what the shard does about that need ->
//   the machine, why it was bought and which cheaper ones were not -> the node -> running
//
// and from any of these backwards. Every figure is one that a scheduler or a shard gave; what is computed here is only
// which of them belong together (operators::UnitOf, engine::Obstacle, engine::EffectiveCost: the functions that
// decide).
//
// Thread-safety: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/document.h"
#include "cli/halves.h"
#include "contract/cluster_views.h"

namespace muster::cli {

// One link: a thing, what is said of it by name, and the sentences.
struct ExplainedLink {
  std::string kind;     // workload, placement, need, machine, node, shard
  std::string name;     // of the thing; of placement and shard empty
  std::string verdict;  // by a stable name: a phase, "fits", a filter's name, "satisfied", a reason's name, a state
  std::string head;     // the sentence that stands alone
  std::vector<std::string> lines;
};

struct ExplainedChain {
  std::vector<ExplainedLink> links;
  std::optional<contract::Explanation> workload;  // of a workload: all that the scheduler says of it
};

struct ChainOptions {
  std::string cluster;  // as the shard names it; empty: the one that is found
  bool every_node = false;
};

// NOT_FOUND for a thing that is not there. A half that does not answer ends the chain with a link that says so, unless
// it is the one that has the thing.
Result<ExplainedChain> ExplainWorkload(Halves& halves, const std::string& name, const ChainOptions& options);
Result<ExplainedChain> ExplainNode(Halves& halves, const std::string& name, const ChainOptions& options);
Result<ExplainedChain> ExplainMachine(Halves& halves, const std::string& id, const ChainOptions& options);
// By fingerprint, or by a workload that it counts ("workload/web-3").
Result<ExplainedChain> ExplainNeed(Halves& halves, const std::string& id, const std::string& group,
                                   const ChainOptions& options);

std::string ChainText(const ExplainedChain& chain);
Document ChainDocument(const ExplainedChain& chain);  // a list of links

}  // namespace muster::cli
