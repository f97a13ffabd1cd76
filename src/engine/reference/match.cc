#include <algorithm>

#include "engine/reference/cycle.h"

namespace muster::engine::reference {

// [M.match] [M.absent-key] [M.numbers] [M.same-values]
bool MatchesProfile(const model::Machine& machine, const model::Profile& profile) {
  return std::ranges::all_of(profile.requirements(), [&](const model::Requirement& requirement) {
    return model::Matches(requirement, machine.Attribute(requirement.key));
  });
}

// [M.serve] [SP.tuple]
bool CanServe(const Cycle& cycle, const NeedRow& need, MachineIndex machine) {
  const MachineRow& row = cycle.machines[machine];
  if (!Covers(row.allocatable, need.min_unit)) return false;
  if (!MatchesProfile(*row.machine, need.need.profile)) return false;
  return std::ranges::all_of(need.spread, [&](const model::Spread& spread) {
    return row.machine->Attribute(spread.topology_key).has_value();
  });
}

std::optional<Domain> DomainOf(const model::Machine& machine, const std::vector<std::string>& keys) {
  Domain domain;
  for (const std::string& key : keys) {
    const auto value = machine.Attribute(key);
    if (!value) return std::nullopt;
    domain.emplace_back(*value);
  }
  return domain;
}

bool IsOwn(const Cycle& cycle, const NeedRow& need, MachineIndex machine) {
  const MachineRow& row = cycle.machines[machine];
  if (row.machine->cluster != need.key.cluster || !row.attributed) return false;
  return row.keep.fingerprint == need.key.fingerprint && row.keep.group == need.key.group;
}

std::string DomainText(const Domain& domain) {
  std::string text;
  for (const std::string& value : domain) text += (text.empty() ? "" : "/") + value;
  return text;
}

}  // namespace muster::engine::reference
