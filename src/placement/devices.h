// Devices: which of a node's devices a unit gets, and what that costs the units still to come.
//
// A device has thousandths that units share; a request for whole devices takes wholly free ones. Placement keeps
// devices unfragmented: a part goes to the fullest device that holds it, and a node is the better the less of its free
// device capacity becomes useless to the requests that are expected (Policy::device_mix).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/types.h"

namespace muster::placement {

// [D.choice] Positions of the devices for the request, ascending: of a part, the fullest device that holds it; of whole
// ones, the first that are wholly free. Ties go to the lower position. Nothing if they do not fit. `free` and `size`
// are thousandths by device.
std::optional<std::vector<int32_t>> ChooseDevices(std::span<const int32_t> free, std::span<const int32_t> size,
                                                  const DeviceRequest& request);

// The device of a placed unit for which none was free.
inline constexpr int32_t kNoDevice = -1;

// Whether ChooseDevices gives an answer.
bool DevicesFit(std::span<const int32_t> free, std::span<const int32_t> size, const DeviceRequest& request);

// Takes the devices from `free`, or gives them back with sign -1.
void TakeDevices(std::span<int32_t> free, std::span<const int32_t> size, const DeviceRequest& request,
                 std::span<const int32_t> devices, int sign);

// What is free on a node, as the device score reads it.
struct DeviceRoom {
  int64_t cpu = 0;
  int64_t memory = 0;
  std::vector<int32_t> free;
  std::span<const int32_t> size;
};

// What a node's free devices are worth to the requests that are expected. Thread-safety: of a constant value.
class DeviceMix {
 public:
  // Shapes without devices say nothing and are left out.
  explicit DeviceMix(std::span<const DeviceShape> shapes);
  bool empty() const { return shapes_.empty(); }

  // [D.value] Over all shapes, weighted: the thousandths that the node would give if it were filled with that shape
  // alone, less those of its free ones that the shape cannot use.
  int64_t Value(const DeviceRoom& room) const;

 private:
  struct Shape {
    int64_t cpu = 0;
    int64_t memory = 0;
    int64_t milli = 0;  // of one unit, all its devices together
    int64_t weight = 0;
    size_t size = 0;  // into sizes_
  };
  std::vector<Shape> shapes_;
  std::vector<DeviceRequest> sizes_;  // distinct device requests
};

// [D.cost] What placing the unit costs others; lower is better. With a mix: how much value the node loses. Without one:
// for a unit without devices, 1 on nodes that have some; for a part, what its device has left; for whole ones, the
// wholly free devices left on the node. The devices must fit (checked).
int64_t DeviceCost(const Kind& kind, const DeviceRoom& room, const DeviceMix& mix);

}  // namespace muster::placement
