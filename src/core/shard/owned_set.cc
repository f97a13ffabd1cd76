#include "core/shard/owned_set.h"

#include <algorithm>

#include "base/probe.h"

namespace muster::shard {

void OwnedSet::RegisterRows(contract::RowReader& reader) {
  reader.On(kManagedRow, [this](bool managed) { state_.managed = managed; });
  reader.On(kDomainRows, [this](contract::Domain domain) { state_.domains.insert(std::move(domain)); });
}

bool OwnedSet::Owns(const model::Machine& machine) const {
  if (config_.own.empty() && !state_.managed) return true;
  if (MUTANT("shard.owns_everything")) return true;
  const auto has = [&](const contract::Domain& domain) { return machine.Attribute(domain.key) == domain.value; };
  return state_.managed ? std::ranges::any_of(state_.domains, has) : std::ranges::any_of(config_.own, has);
}

void OwnedSet::Assign(const contract::Domain& domain, StepContext& ctx) {
  SetManaged(ctx);
  state_.domains.insert(domain);
  ctx.Write(kDomainRows.Put(domain));
}

// Of a domain that was never assigned it changes nothing: a shard that is told so once must not own nothing for good.
void OwnedSet::Unassign(const contract::Domain& domain, StepContext& ctx) {
  if (!state_.domains.contains(domain)) return;
  SetManaged(ctx);
  state_.domains.erase(domain);
  ctx.Write(kDomainRows.Erase(domain));
}

void OwnedSet::SetManaged(StepContext& ctx) {
  state_.managed = true;
  ctx.Write(kManagedRow.Put(true));
}

}  // namespace muster::shard
