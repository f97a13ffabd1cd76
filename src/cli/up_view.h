// The live view of `muster up`: machines by state, needs, shortfalls, $/h and the last decisions with their reasons.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/shard.h"
#include "host/children.h"

namespace muster::cli {

struct UpPicture {
  std::vector<host::ChildView> children;
  // Of the shard; nothing while it does not answer.
  std::optional<contract::MachinesListed> machines;
  std::optional<contract::NeedsInspected> needs;
  std::optional<contract::ClustersListed> clusters;
  std::optional<contract::ActionsListed> actions;
};

// A screen of text, at most so wide; `colour` marks what is short or broken.
std::string Screen(const UpPicture& picture, size_t width, size_t height, bool colour);
// The same in one line.
std::string OneLine(const UpPicture& picture);

}  // namespace muster::cli
