// Fragmentation gradient descent on the GPU trace, for comparison. Shares no code with placement.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "bench/gpu_trace.h"

namespace muster::bench {
namespace {

struct Pod {
  int64_t cpu = 0;
  int64_t memory = 0;
  int32_t devices = 0;
  int32_t milli = 0;  // on each device
  int64_t weight = 0;
};

struct Room {
  int64_t cpu = 0;
  int64_t memory = 0;
  std::vector<int32_t> free;

  bool Holds(const Pod& pod) const {
    if (pod.cpu > cpu || pod.memory > memory) return false;
    return pod.devices == 0 || std::ranges::count_if(free, [&](int32_t f) { return f >= pod.milli; }) >= pod.devices;
  }
  void Take(const Pod& pod) {
    cpu -= pod.cpu;
    memory -= pod.memory;
    for (int32_t left = pod.devices; left > 0; --left) {
      auto best = free.end();
      for (auto device = free.begin(); device != free.end(); ++device) {
        if (*device >= pod.milli && (best == free.end() || *device < *best)) best = device;
      }
      *best -= pod.milli;
    }
  }
  int64_t Free() const { return std::accumulate(free.begin(), free.end(), int64_t{0}); }
};

// Expected thousandths that the next pod could not use.
int64_t Fragmentation(const Room& room, const std::vector<Pod>& pods) {
  const int64_t all = room.Free();
  int64_t sum = 0;
  for (const Pod& pod : pods) {
    int64_t useless = all;
    if (pod.devices > 0 && room.Holds(pod)) {
      useless = 0;
      for (const int32_t free : room.free) useless += free < pod.milli ? free : 0;
    }
    sum += pod.weight * useless;
  }
  return sum;
}

}  // namespace

double RunDescent(const GpuTrace& trace, const std::vector<placement::Unit>& arrivals) {
  std::vector<Pod> pods;
  for (size_t i = 0; i < trace.world.kinds.size(); ++i) {
    const placement::Kind& kind = trace.world.kinds[i];
    const bool part = kind.devices.milli > 0;
    pods.push_back({.cpu = kind.request.Get("cpu"),
                    .memory = kind.request.Get("memory"),
                    .devices = part ? 1 : kind.devices.whole,
                    .milli = part ? kind.devices.milli : 1000,
                    .weight = trace.policy.device_mix[i].weight});
  }
  std::vector<Room> rooms;
  for (const placement::Node& node : trace.world.nodes) {
    rooms.push_back({.cpu = node.total.Get("cpu"), .memory = node.total.Get("memory"), .free = node.devices});
  }
  std::vector<std::vector<std::optional<int64_t>>> growth(pods.size(),
                                                          std::vector<std::optional<int64_t>>(rooms.size()));
  int64_t taken = 0;
  for (const placement::Unit& unit : arrivals) {
    const size_t kind = unit.kind.value();
    const Pod& pod = pods[kind];
    std::optional<std::array<int64_t, 3>> best;
    for (size_t i = 0; i < rooms.size(); ++i) {
      if (!rooms[i].Holds(pod)) continue;
      if (!growth[kind][i]) {
        Room after = rooms[i];
        after.Take(pod);
        growth[kind][i] = Fragmentation(after, pods) - Fragmentation(rooms[i], pods);
      }
      const std::array<int64_t, 3> key = {*growth[kind][i], rooms[i].Free(), static_cast<int64_t>(i)};
      if (!best || key < *best) best = key;
    }
    if (!best) continue;
    const auto chosen = static_cast<size_t>((*best)[2]);
    rooms[chosen].Take(pod);
    for (auto& row : growth) row[chosen].reset();
    taken += pod.devices * int64_t{pod.milli};
  }
  return 100.0 * static_cast<double>(taken) / static_cast<double>(trace.capacity);
}

}  // namespace muster::bench
