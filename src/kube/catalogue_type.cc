#include "kube/catalogue_type.h"

#include <fmt/format.h>

#include <charconv>

#include "kube/gpus.h"

namespace muster::kube {
namespace {

constexpr int64_t kMostSlots = 1'000'000;

}  // namespace

Status SetSlots(std::string_view text, planner::MachineType& type) {
  int64_t slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc() || end != text.data() + text.size() || slots < 1 || slots > kMostSlots) {
    return {Code::kInvalidArgument, fmt::format("expected a whole number from 1 to {}", kMostSlots)};
  }
  type.capacity.Set(planner::kPodsResource, slots * 1000);
  return {};
}

Status SetAllocatable(std::string_view resource, int64_t milli, planner::MachineType& type) {
  const int64_t all = type.capacity.Get(resource);
  if (milli > all) {
    return {Code::kInvalidArgument, fmt::format("more {} is allocatable than there is", resource)};
  }
  type.reserved.Set(resource, all - milli);
  return {};
}

void SetDevices(planner::MachineType& type) { type.devices = DevicesOf(type.capacity); }

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace muster::kube
