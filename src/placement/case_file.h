// Cases: questions to placement, written down as YAML: nodes, what is placed on them, a batch of units, and what must
// become of it. docs/placement.md describes the file; regression cases are in tests/cases/placement.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/text_reader.h"
#include "placement/types.h"

namespace muster::placement {

struct Case {
  std::string about;
  std::vector<std::string> rules;  // ids of docs/placement.md that it shows
  Policy policy;
  World world;
  std::vector<Unit> units;
  std::optional<std::string> expect;  // what RunCase must give, if the file says
};

// INVALID_ARGUMENT naming source, line, column and path of the first thing wrong with `text`.
Result<Case> ReadCase(std::string_view text, std::string_view source);

// A kind as cases write it.
Kind ReadKind(model::TextReader reader);

// How a placer answers a case: outcomes of the batch, then verdicts on every node, by id, for one kind.
struct CasePlacer {
  std::function<std::vector<Outcome>(std::span<const Unit> units)> place;
  std::function<std::vector<NodeVerdict>(KindIndex kind)> feasible;
};

// What becomes of the units, one line each in the order of the file; below a unit without a node, why each node refuses
// it once the batch is placed.
std::string RunCase(const Case& input, const CasePlacer& placer);

}  // namespace muster::placement
