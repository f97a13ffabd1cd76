#include "model/volume_name.h"

#include <algorithm>

namespace muster::model {

bool IsVolumeName(std::string_view name) {
  constexpr size_t kLongest = 200;  // an engine makes a directory of it, with the tenant before it
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  const auto inside = [&](char c) { return plain(c) || c == '_' || c == '.' || c == '-'; };
  return !name.empty() && name.size() <= kLongest && plain(name.front()) && std::ranges::all_of(name, inside);
}

VolumeSource SplitVolumeSource(std::string_view source) {
  const size_t mark = source.find('?');
  if (mark == std::string_view::npos) return {.name = source, .options = {}};
  return {.name = source.substr(0, mark), .options = source.substr(mark + 1)};
}

}  // namespace muster::model
