#include "model/need.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "base/hash.h"
#include "model/names.h"

namespace muster::model {
namespace {

WallTime EarliestKnown(WallTime a, WallTime b) {
  if (a == WallTime()) return b;
  return b == WallTime() ? a : std::min(a, b);
}

}  // namespace

uint64_t RowDigest(const Need& need) {
  Hasher hasher;
  hasher.Add(need.profile.fingerprint());
  hasher.Add(need.group);
  for (const auto* resources : {&need.aggregate, &need.min_unit}) {
    hasher.Add(resources->entries().size());
    for (const auto& [name, amount] : resources->entries()) {
      hasher.Add(name);
      hasher.Add(static_cast<uint64_t>(amount));
    }
  }
  hasher.Add(static_cast<uint64_t>(need.arrival.time_since_epoch().count()));
  return hasher.value();
}

size_t TextsOf(const Profile& profile) {
  constexpr size_t kNumber = 8;  // a length, an operator, or a skew
  size_t bytes = 0;
  for (const Requirement& requirement : profile.requirements()) {
    bytes += requirement.key.size() + 3 * kNumber;
    for (const std::string& value : requirement.values) bytes += value.size() + kNumber;
  }
  for (const Spread& spread : profile.spread()) bytes += spread.topology_key.size() + 3 * kNumber;
  return bytes;
}

Result<std::vector<Need>> Aggregate(const std::vector<Need>& needs) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, Need> sums;
  for (const Need& need : needs) {
    const auto [it, first] = sums.try_emplace({need.cluster, need.profile.fingerprint(), need.group}, need);
    if (first) continue;
    Need& sum = it->second;
    auto aggregate = Add(sum.aggregate, need.aggregate);
    if (!aggregate) {
      return Error(aggregate.error().code(),
                   fmt::format("needs of cluster {} with profile {}: {}", Quoted(need.cluster),
                               Quoted(need.profile.fingerprint()), aggregate.error().message()));
    }
    sum.aggregate = *std::move(aggregate);
    sum.min_unit = Max(sum.min_unit, need.min_unit);
    sum.arrival = EarliestKnown(sum.arrival, need.arrival);
  }
  std::vector<Need> result;
  result.reserve(sums.size());
  for (auto& [key, need] : sums) result.push_back(std::move(need));
  return result;
}

}  // namespace muster::model
