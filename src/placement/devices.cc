#include "placement/devices.h"

#include <algorithm>
#include <array>
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

DeviceMix::DeviceMix(std::span<const DeviceShape> shapes) {
  for (const DeviceShape& shape : shapes) {
    const DeviceRequest& devices = shape.devices;
    if (devices.empty()) continue;
    const auto it = std::ranges::find(sizes_, devices);
    const auto size = static_cast<size_t>(it - sizes_.begin());
    if (it == sizes_.end()) sizes_.push_back(devices);
    shapes_.push_back({.cpu = shape.request.Get("cpu"),
                       .memory = shape.request.Get("memory"),
                       .milli = devices.milli > 0 ? devices.milli : devices.whole * int64_t{1000},
                       .weight = shape.weight,
                       .size = size});
  }
}

int64_t DeviceMix::Value(const DeviceRoom& room) const {
  const int64_t all = std::accumulate(room.free.begin(), room.free.end(), int64_t{0});
  if (all == 0) return 0;
  struct Use {
    int64_t times = 0;    // so many requests fit the devices
    int64_t useless = 0;  // thousandths on devices that hold none
  };
  std::array<Use, 64> few;
  std::vector<Use> many(sizes_.size() > few.size() ? sizes_.size() : 0);
  const std::span<Use> uses = many.empty() ? std::span<Use>(few) : std::span<Use>(many);
  for (size_t i = 0; i < sizes_.size(); ++i) {
    Use use;
    for (size_t device = 0; device < room.free.size(); ++device) {
      const int32_t free = room.free[device];
      const int64_t times = sizes_[i].milli > 0 ? free / sizes_[i].milli : WhollyFree(room.free, room.size, device);
      use.times += times;
      if (times == 0) use.useless += free;
    }
    if (sizes_[i].whole > 1) use.times /= sizes_[i].whole;
    uses[i] = use;
  }
  int64_t value = 0;
  for (const Shape& shape : shapes_) {
    int64_t times = uses[shape.size].times;
    // Divisions are the cost of this loop, and most nodes have cpu and memory enough.
    if (shape.cpu > 0 && times * shape.cpu > room.cpu) times = room.cpu / shape.cpu;
    if (shape.memory > 0 && times * shape.memory > room.memory) times = room.memory / shape.memory;
    const int64_t useless = times <= 0 ? all : uses[shape.size].useless;
    value += shape.weight * (std::max<int64_t>(times, 0) * shape.milli - useless);
  }
  return value;
}

int64_t DeviceCost(const Kind& kind, const DeviceRoom& room, const DeviceMix& mix) {
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
  return mix.Value(room) - mix.Value(after);
}

}  // namespace muster::placement
