// Any bytes as a Kubernetes dump: read or refused with one printable line, never more. What is read makes a world that
// placement accepts and a request for the planner.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "kube/catalogue_file.h"
#include "kube/dump_reader.h"
#include "kube/plan_request.h"

namespace {

void CheckRefusal(const muster::Status& status) {
  MUSTER_CHECK(status.code() == muster::Code::kInvalidArgument, "{}", status.ToString());
  MUSTER_CHECK(!status.message().empty());
  for (const char c : status.message()) MUSTER_CHECK(static_cast<unsigned char>(c) >= 0x20, "a control character");
}

const muster::planner::Catalogue& Types() {
  static const auto kTypes = muster::kube::ReadCatalogue(
      "types:\n- {name: a, resources: {cpu: 4, memory: 16Gi}, slots: 10, price: 1}\n", "types");
  return *kTypes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  muster::kube::DumpReader reader;
  const muster::Status status = reader.Read(
      [&](std::span<char> buffer) -> muster::Result<size_t> {
        // Small pieces, so that every token is cut somewhere.
        const size_t count = std::min({buffer.size(), rest.size(), size_t{97}});
        std::memcpy(buffer.data(), rest.data(), count);
        rest.remove_prefix(count);
        return count;
      },
      "fuzz");
  if (!status.ok()) {
    CheckRefusal(status);
    return 0;
  }
  const auto dump = reader.Finish();
  if (!dump) {
    CheckRefusal(dump.error());
    return 0;
  }
  for (const auto& pod : dump->pods) MUSTER_CHECK(pod.unit.kind.value() < dump->kinds.size());
  const auto place = muster::kube::MakePlaceInput(*dump);
  for (const auto keep : {muster::planner::Keep::kNone, muster::planner::Keep::kNodes}) {
    const auto input = muster::kube::MakePlanInput(*dump, {}, Types(), {.keep = keep});
    MUSTER_CHECK(input.has_value(), "{}", input.error().message());
    for (const auto& unit : input->request.pending) {
      MUSTER_CHECK(unit.kind.value() < input->request.world.kinds.size());
    }
  }
  return 0;
}
