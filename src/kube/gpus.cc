#include "kube/gpus.h"

#include <algorithm>
#include <limits>

namespace muster::kube {

std::vector<int32_t> DevicesOf(const model::Resources& amounts) {
  const int64_t devices = std::min(amounts.Get(kGpuResource) / 1000, kMostDevices);
  return std::vector<int32_t>(static_cast<size_t>(std::max<int64_t>(devices, 0)), 1000);
}

void DropGpus(model::Resources& amounts) { amounts.Set(kGpuResource, 0); }

void AskForDevices(placement::Kind& kind) {
  constexpr int64_t kMostWhole = std::numeric_limits<int32_t>::max();
  const int64_t milli = kind.request.Get(kGpuResource);
  if (milli <= 0 || kind.devices.milli > 0) return;
  const int64_t whole = milli / 1000 + (milli % 1000 > 0 ? 1 : 0);
  kind.devices.whole = static_cast<int32_t>(std::min(std::min(whole, kMostWhole) + kind.devices.whole, kMostWhole));
  DropGpus(kind.request);
}

}  // namespace muster::kube
