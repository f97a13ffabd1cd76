#include "model/reason.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace muster::model {
namespace {

// A switch, so that the compiler refuses a reason without a row.
constexpr ReasonRow Row(Reason reason) {
  switch (reason) {
    case Reason::kNone: return {reason, "none", "nothing was decided"};
    case Reason::kAcquireIdle: return {reason, "phase1.bootstrap", "an idle machine is bound to cover a need"};
    case Reason::kAcquireSpeculative:
      return {reason, "phase1.provision", "a machine is bought to cover a need that no idle one can"};
    case Reason::kPreempt: return {reason, "phase2.inversion", "a need of higher priority takes this machine"};
    case Reason::kPreemptSurplus:
      return {reason, "phase2.surplus", "a need of higher priority takes this machine, which its cluster does not use"};
    case Reason::kReclaimForNeed:
      return {reason, "phase2.reclaim", "another need takes this machine, which its cluster does not use"};
    case Reason::kReclaimSurplus:
      return {reason, "phase3.reclaim", "no need of its cluster uses this machine any more"};
    case Reason::kReleaseIdle:
      return {reason, "phase3.release", "the machine stayed idle for longer than its capacity type is held"};
    case Reason::kReclaimInstead:
      return {reason, "phase2.instead",
              "a need of higher priority takes this unused machine instead of one that serves another need"};
    case Reason::kPriorityStarved:
      return {reason, "short.priority", "matching machines serve needs of the same or higher priority"};
    case Reason::kNoMatchingSupply:
      return {reason, "short.supply", "no machine of the shard matches the requirements and fits the smallest unit"};
    case Reason::kTopologyUnsatisfiable: return {reason, "short.topology", "no single domain can hold all of the need"};
    case Reason::kPreemptionExhausted:
      return {reason, "short.preemption", "even with every machine it may preempt the need is not covered"};
    case Reason::kDraining: return {reason, "short.draining", "covered once the machines taken for it have drained"};
    case Reason::kNoSession:
      return {reason, "short.session", "the cluster has no session, so nothing is acquired for it"};
    case Reason::kOutOfStock:
      return {reason, "short.stock", "machines that match are on hold, because creating or configuring them failed"};
    case Reason::kClusterPaused:
      return {reason, "short.paused", "the cluster is paused or in dry run, so nothing is acquired for it"};
    case Reason::kClusterOnHold:
      return {reason, "short.held",
              "nothing is acquired for the cluster for now: its machines fail to configure, it is at its ceiling, or "
              "machines of it went while the shard was down"};
    case Reason::kNoSuchResource:
      return {reason, "short.resource", "no machine of the shard offers a resource it asks for"};
    case Reason::kReclaimsSpent:
      return {reason, "short.budget",
              "covered once the reclaim budget lets it have machines that other clusters do not use"};
    case Reason::kClaimed: return {reason, "hold.claimed", "a need claims this machine"};
    case Reason::kTransitional:
      return {reason, "hold.transition", "the machine is between two states; its operation must end first"};
    case Reason::kFailed: return {reason, "hold.failed", "the machine failed; repair it or forget it"};
    case Reason::kSurplusHold: return {reason, "hold.surplus", "unclaimed, but not yet for as long as surplus is held"};
    case Reason::kGateShut:
      return {reason, "hold.gate", "unclaimed, but its cluster has not sent its needs since the shard started"};
    case Reason::kClusterWithoutSession: return {reason, "hold.session", "unclaimed, but its cluster has no session"};
    case Reason::kReclaimLimit:
      return {reason, "hold.limit", "unclaimed, but its cluster has given up all it may for the moment"};
    case Reason::kReleaseHold:
      return {reason, "hold.release", "idle, but not yet for as long as its capacity type is held"};
    case Reason::kNeverReleased:
      return {reason, "hold.permanent", "idle, and of a capacity type that is never released"};
    case Reason::kPledged: return {reason, "hold.pledge", "promised to the need it was taken for"};
    case Reason::kUnneeded: return {reason, "hold.unneeded", "could be bought, but no need asks for it"};
    case Reason::kOnHold:
      return {reason, "hold.stock", "left alone for now, because calls for it or for machines like it failed"};
    case Reason::kOfPausedCluster: return {reason, "hold.paused", "unclaimed, but its cluster is paused or in dry run"};
    case Reason::kKeptForGang:
      return {reason, "hold.gang", "stays with its gang until that is complete in another domain"};
    case Reason::kMissing:
      return {reason, "hold.missing", "the provider's lists no longer show it; it counts until it is given up"};
    case Reason::kFenced:
      return {reason, "hold.fenced", "the provider fenced a call for it; it is set aside until the shard is resumed"};
    case Reason::kRepairRefused:
      return {reason, "hold.refused", "the machine failed, and the provider refuses to delete it in that state"};
    case Reason::kRepair: return {reason, "repair.policy", "the machine failed and is given back, to be had again"};
    case Reason::kRepairByHand: return {reason, "repair.order", "an operator ordered the failed machine repaired"};
    case Reason::kAdopted: return {reason, "note.adopted", "the provider shows a machine that was not there before"};
    case Reason::kVanished: return {reason, "note.vanished", "the provider no longer has the machine"};
    case Reason::kNotOwned: return {reason, "note.not-owned", "the machine belongs to another shard"};
    case Reason::kForgotten: return {reason, "note.forgotten", "an operator had the failed machine forgotten"};
    case Reason::kOddEdge:
      return {reason, "note.edge", "the machine went from one state to another that does not follow it"};
    case Reason::kRecordRefused:
      return {reason, "note.record", "a record of the provider is no machine; the last good one stays"};
    case Reason::kProviderSilent: return {reason, "note.provider", "the provider did not list its machines"};
    case Reason::kRollupHeld:
      return {reason, "note.rollup-held", "the roll-up takes away most of the demand; it waits to be confirmed"};
    case Reason::kRollupRefused:
      return {reason, "note.rollup-refused", "the roll-up cannot be accepted; the last good one stays"};
    case Reason::kModeSet: return {reason, "note.mode", "an operator set whether decisions are carried out"};
    case Reason::kHeld: return {reason, "note.hold", "calls failed, so that it is left alone for a while"};
    case Reason::kReturned: return {reason, "note.returned", "the provider shows a machine again that was missing"};
    case Reason::kLosses:
      return {reason, "note.losses", "more machines vanished or failed at once than chance explains"};
    case Reason::kHalted:
      return {reason, "note.halted",
              "calls for two machines were fenced: nothing is carried out until an order to resume"};
    case Reason::kEpochFound:
      return {reason, "note.epoch", "the shard begins above the highest epoch that the machines show"};
  }
  return {reason, "", ""};
}

constexpr size_t kRows = [] {
  size_t rows = 0;
  while (!Row(static_cast<Reason>(rows)).name.empty()) ++rows;
  return rows;
}();

constexpr auto kTable = []<size_t... I>(std::index_sequence<I...>) {
  return std::array{Row(static_cast<Reason>(I))...};
}(std::make_index_sequence<kRows>());

}  // namespace

std::span<const ReasonRow> ReasonTable() { return kTable; }

std::string_view ReasonName(Reason reason) {
  const std::string_view name = Row(reason).name;
  return name.empty() ? "invalid" : name;
}

std::string_view ReasonSentence(Reason reason) {
  const std::string_view sentence = Row(reason).sentence;
  return sentence.empty() ? "not a reason this version knows" : sentence;
}

std::optional<Reason> FindReason(std::string_view name) {
  const auto row = std::ranges::find(kTable, name, &ReasonRow::name);
  return row == kTable.end() ? std::nullopt : std::optional(row->reason);
}

}  // namespace muster::model
