// The source of a mount that is no path of the node: the name of a volume, and what a managed volume of the persys
// protocols says besides (rpc/persys_spec.h), as in "data?driver=nfs&size_gb=10".
#pragma once

#include <string_view>

namespace muster::model {

// Letters, digits, '_', '.' and '-', a letter or digit first, at most 200 bytes. Engines take a source that begins with
// a dot for a path.
bool IsVolumeName(std::string_view name);

struct VolumeSource {
  std::string_view name;
  std::string_view options;  // KEY=VALUE, with '&' between them; empty: none
};
// Of any text; whether the name is one is for IsVolumeName. The parts live as long as `source`.
VolumeSource SplitVolumeSource(std::string_view source);

}  // namespace muster::model
