#include "placement/reason.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace muster::placement {
namespace {

// A switch, so that the compiler refuses a reason without a row.
constexpr ReasonRow Row(Reason reason) {
  switch (reason) {
    case Reason::kNone: return {reason, "fits", "the node can take the unit"};
    case Reason::kNotReady: return {reason, "node.not-ready", "the node is not Ready"};
    case Reason::kStale: return {reason, "node.stale", "the node's last heartbeat is too old"};
    case Reason::kLabels: return {reason, "node.labels", "the node's labels do not match the unit's requirements"};
    case Reason::kType: return {reason, "node.type", "the node does not run workloads of this type"};
    case Reason::kCpu: return {reason, "fit.cpu", "the node has too little cpu left"};
    case Reason::kMemory: return {reason, "fit.memory", "the node has too little memory left"};
    case Reason::kDisk: return {reason, "fit.disk", "the node has too little disk left"};
    case Reason::kResource: return {reason, "fit.resource", "the node has too little of another resource left"};
    case Reason::kDevice: return {reason, "fit.device", "the node has no free device of the size asked for"};
    case Reason::kPort: return {reason, "port.taken", "a unit on the node holds the host port"};
    case Reason::kCordoned: return {reason, "node.cordoned", "the node is cordoned"};
    case Reason::kTaint: return {reason, "node.taint", "the node has a taint that the unit does not tolerate"};
    case Reason::kSpreadKey: return {reason, "spread.key", "the node lacks a label that the unit is spread over"};
    case Reason::kSpreadSkew: return {reason, "spread.skew", "the unit would make the spread more uneven than allowed"};
    case Reason::kColocateKey: return {reason, "colocate.key", "the node lacks the label of a co-location term"};
    case Reason::kColocateNone:
      return {reason, "colocate.none", "no unit that this one must be with is in the node's domain"};
    case Reason::kExcludes:
      return {reason, "exclude.own", "a unit in the node's domain is one that this unit must not be with"};
    case Reason::kExcluded: return {reason, "exclude.other", "a unit in the node's domain excludes this one"};
    case Reason::kQuota: return {reason, "quota", "the tenant's quota does not allow the unit"};
    case Reason::kPlaced: return {reason, "placed", "the best of the nodes that can take the unit"};
    case Reason::kPlacedByPreemption:
      return {reason, "placed.preempting", "the unit has a node once units of lower priority have left it"};
    case Reason::kNoNodeFits: return {reason, "no-node", "no node can take the unit"};
  }
  return {reason, "invalid", "not a reason"};
}

constexpr size_t kReasons = static_cast<size_t>(Reason::kNoNodeFits) + 1;

constexpr auto kTable = [] {
  std::array<ReasonRow, kReasons> rows{};
  for (size_t i = 0; i < kReasons; ++i) rows[i] = Row(static_cast<Reason>(i));
  return rows;
}();

}  // namespace

std::span<const ReasonRow> ReasonTable() { return kTable; }

std::string_view ReasonName(Reason reason) { return Row(reason).name; }

std::string_view ReasonSentence(Reason reason) { return Row(reason).sentence; }

std::optional<Reason> FindReason(std::string_view name) {
  const auto row = std::ranges::find(kTable, name, &ReasonRow::name);
  return row == kTable.end() ? std::nullopt : std::optional(row->reason);
}

}  // namespace muster::placement
