#include <fmt/format.h>

#include <utility>

#include "kube/plan_request.h"

namespace muster::kube {

PlaceInput MakePlaceInput(const Dump& dump) {
  PlaceInput input;
  input.world.kinds = dump.kinds;
  input.world.namespaces = dump.namespaces;
  input.world.budgets = dump.budgets;
  for (const DumpNode& node : dump.nodes) input.world.nodes.push_back(node.node);
  for (const DumpPod& pod : dump.pods) {
    if (pod.node.empty()) {
      if (pod.terminating) continue;
      input.pending.push_back(pod.unit);
      if (!pod.missing_node.empty()) input.missing_node.emplace(pod.unit.id, pod.missing_node);
      continue;
    }
    placement::PlacedUnit placed{.unit = pod.unit, .node = pod.node};
    placed.terminating = pod.terminating;
    placed.budgets = pod.budgets;
    placed.may_evict = !pod.daemon && !pod.is_static;
    input.world.placed.push_back(std::move(placed));
  }
  if (const int64_t count = PodsWithoutRequests(dump); count > 0) {
    input.notes.push_back(fmt::format("{} pod{} neither cpu nor memory, taken as needing nothing", count,
                                      count == 1 ? " requests" : "s request"));
  }
  for (std::string& note : NotesOf(dump)) input.notes.push_back(std::move(note));
  return input;
}

}  // namespace muster::kube
