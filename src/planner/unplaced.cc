#include "planner/unplaced.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "model/quantity.h"
#include "placement/match.h"

namespace muster::planner {
namespace {

using placement::Reason;

// What one candidate lacks for a unit, in words.
struct Lack {
  Reason reason = Reason::kNone;  // the first in the order of the filters
  std::string needs;
};

// The same counted: things, and the largest shortage as a share of the request.
using Shortage = std::pair<int64_t, double>;

Reason ReasonFor(const std::string& resource) {
  if (resource == "cpu") return Reason::kCpu;
  if (resource == "memory") return Reason::kMemory;
  return resource == "ephemeral-storage" ? Reason::kDisk : Reason::kResource;
}

void Add(Lack& lack, Reason reason, std::string needs) {
  if (lack.reason == Reason::kNone) lack.reason = reason;
  lack.needs += fmt::format("{}{}", lack.needs.empty() ? "" : "; ", needs);
}

int64_t MissingDevices(const placement::Kind& kind, const Candidate& candidate) {
  const int64_t whole = std::ranges::count_if(candidate.devices, [](int32_t milli) { return milli >= 1000; });
  return kind.devices.whole + (kind.devices.milli > 0 ? 1 : 0) - whole;
}

// Labels and taints, which all candidates of a node class share.
int64_t ClosedDoors(const placement::Kind& kind, const Candidate& candidate) {
  const placement::Node node{.labels = candidate.labels, .taints = candidate.taints};
  return (placement::MatchesLabels(kind, node) ? 0 : 1) + (placement::UntoleratedTaint(kind, node) == nullptr ? 0 : 1);
}

Shortage ShortageOf(const placement::Kind& kind, const Candidate& candidate) {
  Shortage shortage(MissingDevices(kind, candidate) > 0 ? 1 : 0, 0);
  for (const auto& [name, amount] : kind.request.entries()) {
    const int64_t has = candidate.allocatable.Get(name);
    if (amount <= has) continue;
    ++shortage.first;
    shortage.second = std::max(shortage.second, static_cast<double>(amount - has) / static_cast<double>(amount));
  }
  return shortage;
}

Lack LackOf(const placement::Kind& kind, const Candidate& candidate) {
  const placement::Node node{.labels = candidate.labels, .taints = candidate.taints};
  Lack lack;
  if (!placement::MatchesLabels(kind, node)) Add(lack, Reason::kLabels, "labels that the unit asks for");
  for (const auto& [name, amount] : kind.request.entries()) {
    const int64_t has = candidate.allocatable.Get(name);
    if (amount <= has) continue;
    Add(lack, ReasonFor(name), fmt::format("{} more {}", model::FormatQuantityFor(name, amount - has), name));
  }
  if (const int64_t more = MissingDevices(kind, candidate); more > 0) {
    Add(lack, Reason::kDevice, fmt::format("{} more devices", more));
  }
  if (const placement::Taint* taint = placement::UntoleratedTaint(kind, node); taint != nullptr) {
    Add(lack, Reason::kTaint, fmt::format("a toleration of the taint {}", taint->key));
  }
  return lack;
}

// What of a kind decides what it lacks.
std::string Signature(const placement::Kind& kind, Reason refused) {
  std::string bytes;
  codec::Writer writer(bytes);
  writer.Bytes(codec::ToBytes(kind.requirements));
  writer.Bytes(codec::ToBytes(kind.node_terms));
  writer.Bytes(codec::ToBytes(kind.tolerations));
  writer.Bytes(codec::ToBytes(kind.request));
  writer.Bytes(codec::ToBytes(kind.devices));
  writer.Varint(static_cast<uint64_t>(refused));
  return bytes;
}

}  // namespace

Unplaced UnplacedExplainer::Explain(const placement::Unit& unit, Reason refused) {
  const placement::Kind& kind = request_.world.kinds[unit.kind.value()];
  const auto [at, is_new] = known_.try_emplace(Signature(kind, refused));
  if (is_new) at->second = ExplainKind(kind, refused);
  Unplaced unplaced = at->second;
  unplaced.unit = unit.id;
  return unplaced;
}

// Choices are enough: what they dominate is no nearer. nullptr: there is nothing to buy.
const Candidate* UnplacedExplainer::NearestOf(const placement::Kind& kind) const {
  std::map<uint32_t, int64_t> doors;  // by node class
  std::optional<std::tuple<int64_t, double, model::Money, uint32_t>> least;
  for (const Choice& choice : problem_.choices) {
    const Candidate& candidate = request_.candidates[choice.candidate];
    const auto [closed, is_new] = doors.try_emplace(choice.node_class, 0);
    if (is_new) closed->second = ClosedDoors(kind, candidate);
    const Shortage shortage = ShortageOf(kind, candidate);
    const std::tuple rank(shortage.first + closed->second, shortage.second, candidate.price, choice.candidate);
    if (!least || rank < *least) least = rank;
  }
  return least ? &request_.candidates[std::get<3>(*least)] : nullptr;
}

Unplaced UnplacedExplainer::ExplainKind(const placement::Kind& kind, Reason refused) const {
  Unplaced unplaced{.reason = refused};
  if (refused == Reason::kNone) unplaced.reason = Reason::kNoNodeFits;
  const Candidate* nearest = NearestOf(kind);
  if (nearest == nullptr) {
    unplaced.detail = "the catalogue has no machine types";
    return unplaced;
  }
  const Lack lack = LackOf(kind, *nearest);
  unplaced.nearest_type = nearest->type;
  unplaced.nearest_needs = lack.needs;
  if (lack.reason != Reason::kNone) {
    unplaced.reason = lack.reason;
    unplaced.detail = fmt::format("{} comes nearest and would need {}", nearest->type, lack.needs);
    return unplaced;
  }
  unplaced.detail = fmt::format("{} would take it, but a rule about other units forbids it", nearest->type);
  return unplaced;
}

}  // namespace muster::planner
