#include "planner/catalogue.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "model/requirement.h"

namespace muster::planner {
namespace {

constexpr const char* kArchKey = "kubernetes.io/arch";
constexpr const char* kOsKey = "kubernetes.io/os";
constexpr const char* kCapacityTypeKey = "muster.io/capacity-type";

Status CheckType(const MachineType& type) {
  const auto bad = [&](std::string_view text) {
    return Status(Code::kInvalidArgument, fmt::format("machine type {}: {}", type.name, text));
  };
  const model::Resources allocatable = type.Allocatable();
  for (const char* name : {"cpu", "memory"}) {
    if (type.capacity.Get(name) == 0) return bad(fmt::format("it has no {}", name));
    if (allocatable.Get(name) == 0) return bad(fmt::format("{}: nothing is left after what is reserved", name));
  }
  if (type.offers.empty()) return bad("offers: at least one zone with a price is needed");
  std::set<std::pair<std::string, model::CapacityType>> seen;
  for (const Offer& offer : type.offers) {
    if (!seen.emplace(offer.zone, offer.capacity).second) {
      return bad(fmt::format("{} has two prices for {}", offer.zone.empty() ? "every zone" : "zone " + offer.zone,
                             model::CapacityTypeName(offer.capacity)));
    }
  }
  return {};
}

model::TextMap LabelsOf(const MachineType& type, const Offer& offer, const Pool& pool) {
  model::TextMap::Map labels = type.labels;
  labels[std::string(model::kInstanceTypeKey)] = type.name;
  labels[std::string(model::kZoneKey)] = offer.zone;
  labels[kArchKey] = type.arch;
  labels[kOsKey] = type.os;
  labels[kCapacityTypeKey] = model::CapacityTypeName(offer.capacity);
  for (const auto& [key, value] : pool.labels) labels[key] = value;
  return labels;
}

}  // namespace

Status CheckStructure(const Catalogue& catalogue) {
  std::set<std::string_view> names;
  for (const MachineType& type : catalogue.types) {
    if (type.name.empty()) return {Code::kInvalidArgument, "a machine type without a name: give it one"};
    if (!names.insert(type.name).second) {
      return {Code::kInvalidArgument, fmt::format("machine type {}: it is listed twice", type.name)};
    }
    MUSTER_RETURN_IF_ERROR(CheckType(type));
  }
  return {};
}

std::vector<Candidate> MakeCandidates(const Catalogue& catalogue, const std::vector<Pool>& pools) {
  std::vector<Candidate> candidates;
  for (const Pool& pool : pools) {
    for (const MachineType& type : catalogue.types) {
      for (const Offer& offer : type.offers) {
        candidates.push_back({.type = type.name,
                              .zone = offer.zone,
                              .pool = pool.name,
                              .capacity = offer.capacity,
                              .price = offer.price,
                              .interruption = offer.interruption,
                              .allocatable = type.Allocatable(),
                              .labels = LabelsOf(type, offer, pool),
                              .taints = pool.taints,
                              .devices = type.devices});
      }
    }
  }
  return candidates;
}

}  // namespace muster::planner
