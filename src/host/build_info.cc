#include "host/build_info.h"

#include "host/json_object.h"

namespace muster::host {

std::string BuildInfo::ToJson() const {
  return JsonObject()
      .Add("version", version)
      .Add("commit", commit)
      .Add("compiler", compiler)
      .Add("build_type", build_type)
      .Add("faults", faults)
      .Take();
}

}  // namespace muster::host
