#include "rpc/object_id.h"

#include <fmt/format.h>

#include "model/names.h"
#include "model/workload.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {

Status CheckObjectId(const std::string& id, std::string_view field, std::string_view hint) {
  if (id.empty()) return Refuse("", field, fmt::format("missing; {}", hint)).error();
  if (model::IsWorkloadId(id)) return {};
  return Refuse("", field,
                fmt::format("{} is no id; begin with a letter or digit, then letters, digits, '.', '_' and '-', 253 "
                            "at most",
                            model::Quoted(id)))
      .error();
}

}  // namespace muster::rpc
