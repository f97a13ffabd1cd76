// ObjectId: the rule of a field (wire_values.h) that names a workload, set, tenant or node.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::rpc {

// INVALID_ARGUMENT naming the field unless `id` is fit to be part of a key: "workload_id: missing; name the workload".
Status CheckObjectId(const std::string& id, std::string_view field, std::string_view hint);

struct ObjectId {
  const char* hint;  // "name the workload"
  bool Allows(const std::string& id, std::string_view field, Status& error) const {
    error = CheckObjectId(id, field, hint);
    return error.ok();
  }
};

}  // namespace muster::rpc
