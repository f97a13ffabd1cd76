#include "placement/arithmetic.h"

#include <tuple>

namespace muster::placement {

model::Resources QuotaUse(const Kind& kind) {
  model::Resources use = kind.request;
  const auto add = [&](std::string_view name, int64_t milli) { use.Set(name, AddSaturating(use.Get(name), milli)); };
  if (!kind.devices.empty()) add("gpu", kind.devices.whole * int64_t{1000} + kind.devices.milli);
  add(kUnitsQuota, 1000);
  return use;
}

Reason FitReason(std::string_view resource) {
  if (resource == "cpu") return Reason::kCpu;
  if (resource == "memory") return Reason::kMemory;
  if (resource == "disk" || resource == "storage" || resource == "ephemeral-storage") return Reason::kDisk;
  return Reason::kResource;
}

std::vector<model::Resources::Entry> InFitOrder(const model::Resources& request) {
  std::vector<model::Resources::Entry> entries = request.entries();
  std::ranges::stable_sort(entries, {}, [](const auto& entry) { return FitReason(entry.first); });
  return entries;
}

bool ServedBefore(const Kind& a_kind, const Unit& a, const Kind& b_kind, const Unit& b) {
  return std::tie(b_kind.priority, a.order, a.id) < std::tie(a_kind.priority, b.order, b.id);
}

bool EvictedBefore(const Kind& a_kind, const Unit& a, const Kind& b_kind, const Unit& b) {
  return std::tie(a_kind.priority, b.order, b.id) < std::tie(b_kind.priority, a.order, a.id);
}

}  // namespace muster::placement
