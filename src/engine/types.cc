#include "engine/types.h"

#include "base/codec.h"

namespace muster::engine {

NeedKey KeyOf(const model::Need& need) {
  return {.cluster = need.cluster, .fingerprint = need.profile.fingerprint(), .group = need.group};
}

StockClass StockClassOf(const model::Machine& machine) {
  return {.instance_type = machine.instance_type, .zone = machine.zone, .capacity_type = machine.capacity_type};
}

std::string_view ActionKindName(ActionKind kind) {
  switch (kind) {
    case ActionKind::kBootstrap: return "Bootstrap";
    case ActionKind::kProvision: return "Provision";
    case ActionKind::kPreempt: return "Preempt";
    case ActionKind::kReclaim: return "Reclaim";
    case ActionKind::kDelete: return "Delete";
  }
  return "?";
}

std::string_view ClaimKindName(ClaimKind kind) {
  switch (kind) {
    case ClaimKind::kCredit: return "credit";
    case ClaimKind::kCreating: return "creating";
    case ClaimKind::kBootstrap: return "bootstrap";
    case ClaimKind::kProvision: return "provision";
  }
  return "?";
}

uint64_t Digest(const Decision& decision) {
  Hasher hasher;
  for (const Claim& claim : decision.claims) {
    hasher.Add(codec::ToBytes(claim));
    hasher.Add(codec::ToBytes(KeyOf(decision.needs[claim.need].need)));
  }
  for (const Action& action : decision.actions) hasher.Add(codec::ToBytes(action));
  return hasher.value();
}

}  // namespace muster::engine
