#include "bench/cycle_digest.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "engine/fast/internals.h"

namespace muster::bench {
namespace {

using engine::ClaimKind;
using model::MachineState;
namespace fast = engine::fast;

uint64_t HashOf(const engine::NeedKey& key) {
  Hasher hasher;
  hasher.Add(key.cluster);
  hasher.Add(key.fingerprint);
  hasher.Add(key.group);
  return hasher.value();
}

void AddClaim(Hasher& hasher, std::string_view machine, uint64_t need, ClaimKind kind) {
  hasher.Add(machine);
  hasher.Add(need);
  hasher.Add(static_cast<uint64_t>(kind));
}

void AddAction(Hasher& hasher, engine::ActionKind kind, std::string_view machine, uint64_t need, model::Reason reason,
               int64_t grace_seconds) {
  hasher.Add(static_cast<uint64_t>(kind));
  hasher.Add(machine);
  hasher.Add(need);
  hasher.Add(static_cast<uint64_t>(reason));
  hasher.Add(static_cast<uint64_t>(grace_seconds));
}

// By machine: the need that claimed it.
fast::Rows<fast::MachineId, fast::NeedId> Claimers(const fast::Internals& engine) {
  const fast::Inventory& inventory = engine.inventory;
  std::vector<fast::ClaimRow> claims;
  engine.cycle.ForEachClaim([&](const fast::ClaimRow& claim) { claims.push_back(claim); });
  std::ranges::sort(claims, {}, [](const fast::ClaimRow& c) { return std::tuple(c.group, c.first); });
  fast::Rows<fast::MachineId, fast::NeedId> claimers;
  claimers.resize(inventory.rows());
  fast::GroupId group = fast::kNoId;
  fast::IdSet::Cursor cursor;
  uint32_t at = 0;
  for (const fast::ClaimRow& claim : claims) {
    if (claim.group != group) {
      group = claim.group;
      cursor = inventory.group(group).members.Begin();
      at = 0;
    }
    for (; at < claim.first; ++at) inventory.Next(group, cursor);
    for (; at < claim.first + claim.count; ++at) claimers[inventory.Next(group, cursor)] = claim.need;
  }
  return claimers;
}

}  // namespace

uint64_t CycleDigest(const fast::Engine& engine) {
  const fast::Internals internals(engine);
  const fast::Inventory& inventory = internals.inventory;
  fast::Rows<fast::NeedId, uint64_t> needs;
  for (const fast::NeedRow* need : internals.demand.order()) needs.Add(HashOf(inventory.NameOf(need->key)));
  const fast::Rows<fast::MachineId, fast::NeedId> claimers = Claimers(internals);
  Hasher hasher;
  for (const fast::MachineId m : inventory.by_id()) {
    if (claimers[m] == fast::kNoId) continue;
    const MachineState state = inventory.group(inventory.group_of(m)).state;
    AddClaim(hasher, inventory.id(m), needs[claimers[m]], fast::KindOfClaim(state));
  }
  for (const fast::FastAction& action : internals.cycle.actions()) {
    AddAction(hasher, action.kind, inventory.id(action.machine), action.need == fast::kNoId ? 0 : needs[action.need],
              action.reason, action.grace_seconds);
  }
  return hasher.value();
}

uint64_t CycleDigest(const engine::Decision& decision) {
  std::vector<const engine::Claim*> claims;
  for (const engine::Claim& claim : decision.claims) claims.push_back(&claim);
  std::ranges::sort(claims, {}, [](const engine::Claim* c) -> const std::string& { return c->machine; });
  Hasher hasher;
  for (const engine::Claim* claim : claims) {
    AddClaim(hasher, claim->machine, HashOf(engine::KeyOf(decision.needs[claim->need].need)), claim->kind);
  }
  for (const engine::Action& action : decision.actions) {
    AddAction(hasher, action.kind, action.machine, action.need ? HashOf(*action.need) : 0, action.reason,
              action.grace.count());
  }
  return hasher.value();
}

}  // namespace muster::bench
