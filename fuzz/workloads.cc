// Any bytes as a workload file: read or refused with one printable line. What is read is valid and becomes units.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "model/workload_decode.h"
#include "placement/workload_units.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = muster::model::ReadWorkloadFile(text, "fuzz");
  if (!file) {
    MUSTER_CHECK(file.error().code() == muster::Code::kInvalidArgument, "{}", file.error().ToString());
    for (const char c : file.error().message()) {
      MUSTER_CHECK(static_cast<unsigned char>(c) >= 0x20, "a control character");
    }
    return 0;
  }
  constexpr int32_t kMany = 1000;
  for (const auto& spec : file->workloads) {
    MUSTER_CHECK(muster::model::TemplateProblem(spec.spec).empty());
    if (spec.replicas > kMany) continue;
    muster::placement::KindTable kinds;
    std::vector<muster::placement::Unit> units;
    muster::placement::AppendUnits(spec, 1, kinds, units);
    MUSTER_CHECK(units.size() == static_cast<size_t>(spec.replicas));
  }
  return 0;
}
