#include "placement/devices.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace muster::placement {
namespace {

bool WhollyFree(std::span<const int32_t> free, std::span<const int32_t> size, size_t device) {
  return size[device] > 0 && free[device] == size[device];
}

int64_t CountWhole(std::span<const int32_t> free, std::span<const int32_t> size) {
  int64_t count = 0;
  for (size_t i = 0; i < free.size(); ++i) count += WhollyFree(free, size, i);
  return count;
}

}  // namespace

std::optional<std::vector<int32_t>> ChooseDevices(std::span<const int32_t> free, std::span<const int32_t> size,
                                                  const DeviceRequest& request) {
  std::vector<int32_t> chosen;
  if (request.milli > 0) {
    size_t best = free.size();
    for (size_t i = 0; i < free.size(); ++i) {
      if (free[i] >= request.milli && (best == free.size() || free[i] < free[best])) best = i;
    }
    if (best == free.size()) return std::nullopt;
    chosen.push_back(static_cast<int32_t>(best));
    return chosen;
  }
  for (size_t i = 0; i < free.size() && std::cmp_less(chosen.size(), request.whole); ++i) {
    if (WhollyFree(free, size, i)) chosen.push_back(static_cast<int32_t>(i));
  }
  if (std::cmp_less(chosen.size(), request.whole)) return std::nullopt;
  return chosen;
}

bool DevicesFit(std::span<const int32_t> free, std::span<const int32_t> size, const DeviceRequest& request) {
  if (request.milli > 0) {
    return std::ranges::any_of(free, [&](int32_t left) { return left >= request.milli; });
  }
  return request.whole == 0 || CountWhole(free, size) >= request.whole;
}

void TakeDevices(std::span<int32_t> free, std::span<const int32_t> size, const DeviceRequest& request,
                 std::span<const int32_t> devices, int sign) {
  for (const int32_t device : devices) {
    if (device < 0 || std::cmp_greater_equal(device, free.size())) continue;  // the node has lost it since
    const auto i = static_cast<size_t>(device);
    free[i] -= sign * (request.milli > 0 ? request.milli : size[i]);
  }
}

int64_t UselessCapacity(const DeviceRoom& room, std::span<const DeviceShape> mix) {
  const int64_t all = std::accumulate(room.free.begin(), room.free.end(), int64_t{0});
  if (all == 0) return 0;
  int64_t sum = 0;
  for (const DeviceShape& shape : mix) {
    const bool fits = shape.request.Get("cpu") <= room.cpu && shape.request.Get("memory") <= room.memory &&
                      DevicesFit(room.free, room.size, shape.devices);
    int64_t useless = 0;
    if (!fits || shape.devices.empty()) {
      useless = all;
    } else {
      for (size_t i = 0; i < room.free.size(); ++i) {
        const bool usable =
            shape.devices.milli > 0 ? room.free[i] >= shape.devices.milli : WhollyFree(room.free, room.size, i);
        if (!usable) useless += room.free[i];
      }
    }
    sum += shape.weight * useless;
  }
  return sum;
}

int64_t DeviceCost(const Kind& kind, const DeviceRoom& room, std::span<const DeviceShape> mix) {
  const DeviceRequest& request = kind.devices;
  if (room.size.empty()) return 0;
  if (mix.empty() && request.empty()) return 1;
  const auto devices = ChooseDevices(room.free, room.size, request);
  MUSTER_CHECK(devices.has_value(), "the cost of devices that do not fit");
  if (mix.empty()) {
    return request.milli > 0 ? room.free[static_cast<size_t>(devices->front())] - request.milli
                             : CountWhole(room.free, room.size) - request.whole;
  }
  DeviceRoom after = room;
  after.cpu -= kind.request.Get("cpu");
  after.memory -= kind.request.Get("memory");
  TakeDevices(after.free, after.size, request, *devices, 1);
  return UselessCapacity(after, mix) - UselessCapacity(room, mix);
}

}  // namespace muster::placement
