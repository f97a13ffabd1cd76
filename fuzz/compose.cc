// Compose files of any content: what is read keeps its promises, whatever the file says.
#include "model/compose.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/check.h"
#include "refusal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = ReadCompose(text, {{"NAME", "value"}, {"EMPTY", ""}});
  if (!file) {
    CheckRefusal(file.error());
    return 0;
  }
  MUSTER_CHECK(!file->services.empty() && file->services.size() <= kMostComposeServices);
  std::map<std::string, int32_t> depths;  // of the services before
  for (const ComposeService& service : file->services) {
    MUSTER_CHECK(!service.image.empty());
    for (const std::string& below : service.depends_on) MUSTER_CHECK(depths.at(below) < service.depth);
    for (const Port& port : service.ports) MUSTER_CHECK(port.host >= 1 && port.host <= 65535 && port.container >= 1);
    for (const VolumeMount& mount : service.volumes) {
      MUSTER_CHECK(mount.target.starts_with('/') && !mount.target.contains(':') && !mount.source.contains(':'));
      MUSTER_CHECK(mount.source.starts_with('/') ||
                   std::ranges::find(file->volumes, mount.source) != file->volumes.end());
    }
    for (const auto& [name, value] : service.env) MUSTER_CHECK(!name.contains('=') && !value.contains('\0'));
    depths[service.name] = service.depth;
  }
  return 0;
}
