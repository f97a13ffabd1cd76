#include "rpc/shared_texts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/hash.h"

namespace muster::rpc {
namespace {

constexpr size_t kKeptAnyway = 1024;

// The same for the same entries in any order: a protobuf map has none of its own.
uint64_t DigestOf(const WireMap& wire) {
  uint64_t sum = wire.size();
  for (const auto& [name, value] : wire) {
    Hasher hasher;
    hasher.Add(name);
    hasher.Add(value);
    sum += hasher.value();
  }
  return sum;
}

bool Same(const model::TextMap& map, const WireMap& wire) {
  return map.size() == wire.size() && std::ranges::all_of(wire, [&](const auto& entry) {
           const auto found = map.find(entry.first);
           return found != map.end() && found->second == entry.second;
         });
}

}  // namespace

model::TextMap SharedTexts::Map(const WireMap& wire) {
  if (wire.empty()) return {};
  const std::lock_guard lock(mu_);
  return Find(wire).map;
}

Result<model::Resources> SharedTexts::Resources(const WireMap& wire, std::string_view path, std::string_view field) {
  if (wire.empty()) return model::Resources();
  const std::lock_guard lock(mu_);
  Known& known = Find(wire);
  if (!known.resources) {
    MUSTER_ASSIGN_OR_RETURN(known.resources, ResourcesFromWire(wire, path, field));
  }
  return *known.resources;
}

size_t SharedTexts::size() const {
  const std::lock_guard lock(mu_);
  return known_.size();
}

SharedTexts::Known& SharedTexts::Find(const WireMap& wire) {
  const uint64_t digest = DigestOf(wire);
  const auto [first, last] = known_.equal_range(digest);
  const auto found = std::find_if(first, last, [&](const auto& entry) { return Same(entry.second.map, wire); });
  if (found != last) return found->second;
  if (known_.size() >= drop_at_) DropUnwanted();
  return known_.emplace(digest, Known{.map = model::TextMap::Map(wire.begin(), wire.end()), .resources = {}})->second;
}

void SharedTexts::DropUnwanted() {
  std::erase_if(known_, [](const auto& entry) { return !entry.second.wanted(); });
  drop_at_ = std::max(kKeptAnyway, 2 * known_.size());
}

}  // namespace muster::rpc
