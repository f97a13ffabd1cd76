#include "planner/unplaced.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/quantity.h"
#include "placement/match.h"

namespace muster::planner {
namespace {

using placement::Reason;

// What one candidate lacks for a unit.
struct Lack {
  Reason reason = Reason::kNone;  // the first in the order of the filters
  int64_t things = 0;
  double share = 0;  // the largest shortage, as a share of the request
  std::string needs;
};

Reason ReasonFor(const std::string& resource) {
  if (resource == "cpu") return Reason::kCpu;
  if (resource == "memory") return Reason::kMemory;
  return resource == "ephemeral-storage" ? Reason::kDisk : Reason::kResource;
}

void Add(Lack& lack, Reason reason, std::string needs) {
  if (lack.reason == Reason::kNone) lack.reason = reason;
  ++lack.things;
  lack.needs += fmt::format("{}{}", lack.needs.empty() ? "" : "; ", needs);
}

Lack LackOf(const placement::Kind& kind, const Candidate& candidate) {
  const placement::Node node{.labels = candidate.labels, .taints = candidate.taints};
  Lack lack;
  if (!placement::MatchesLabels(kind, node)) Add(lack, Reason::kLabels, "labels that the unit asks for");
  for (const auto& [name, amount] : kind.request.entries()) {
    const int64_t has = candidate.allocatable.Get(name);
    if (amount <= has) continue;
    Add(lack, ReasonFor(name), fmt::format("{} more {}", model::FormatQuantityFor(name, amount - has), name));
    lack.share = std::max(lack.share, static_cast<double>(amount - has) / static_cast<double>(amount));
  }
  const int64_t whole = std::ranges::count_if(candidate.devices, [](int32_t milli) { return milli >= 1000; });
  const int64_t wanted = kind.devices.whole + (kind.devices.milli > 0 ? 1 : 0);
  if (wanted > whole) Add(lack, Reason::kDevice, fmt::format("{} more devices", wanted - whole));
  if (const placement::Taint* taint = placement::UntoleratedTaint(kind, node); taint != nullptr) {
    Add(lack, Reason::kTaint, fmt::format("a toleration of the taint {}", taint->key));
  }
  return lack;
}

}  // namespace

Unplaced ExplainUnplaced(const Request& request, const placement::Unit& unit, Reason refused) {
  const placement::Kind& kind = request.world.kinds[unit.kind.value()];
  Unplaced unplaced{.unit = unit.id, .reason = refused};
  std::optional<Lack> least;
  const Candidate* nearest = nullptr;
  for (const Candidate& candidate : request.candidates) {
    Lack lack = LackOf(kind, candidate);
    const auto rank = [](const Lack& l, const Candidate& c) { return std::tuple(l.things, l.share, c.price); };
    if (nearest != nullptr && rank(lack, candidate) >= rank(*least, *nearest)) continue;
    least = std::move(lack);
    nearest = &candidate;
  }
  if (nearest == nullptr) {
    if (refused == Reason::kNone) unplaced.reason = Reason::kNoNodeFits;
    unplaced.detail = "the catalogue has no machine types";
    return unplaced;
  }
  unplaced.nearest_type = nearest->type;
  unplaced.nearest_needs = least->needs;
  if (least->things > 0) {
    unplaced.reason = least->reason;
    unplaced.detail = fmt::format("{} comes nearest and would need {}", nearest->type, least->needs);
    return unplaced;
  }
  if (refused == Reason::kNone) unplaced.reason = Reason::kNoNodeFits;
  unplaced.detail = fmt::format("{} would take it, but a rule about other units forbids it", nearest->type);
  return unplaced;
}

}  // namespace muster::planner
