// Any bytes as a catalogue, in both forms: read or refused with one printable line. What is read keeps its structure.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/catalogue_file.h"

namespace {

void Check(const muster::Result<muster::planner::Catalogue>& catalogue) {
  if (catalogue) {
    MUSTER_CHECK(muster::planner::CheckStructure(*catalogue).ok());
    MUSTER_CHECK(!catalogue->types.empty());
    return;
  }
  MUSTER_CHECK(catalogue.error().code() == muster::Code::kInvalidArgument, "{}", catalogue.error().ToString());
  for (const char c : catalogue.error().message()) {
    MUSTER_CHECK(static_cast<unsigned char>(c) >= 0x20, "a control character");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(muster::kube::ReadCatalogueYaml(text, "fuzz"));
  Check(muster::kube::ReadCatalogueCsv(text, "fuzz"));
  Check(muster::kube::ReadCatalogue(text, "fuzz"));
  return 0;
}
