// Catalogues of machine types from files: YAML or JSON, and CSV. docs/planning.md lists keys and columns.
//
// An offer without a zone holds in every zone that the plan knows of (candidates.h fills them in). Errors name file,
// line and path, or line and column of a CSV.
#pragma once

#include <string_view>

#include "base/status.h"
#include "planner/catalogue.h"

namespace muster::kube {

// By the first character that is not blank: a name of a column begins a CSV if the first line holds a comma and no
// colon.
Result<planner::Catalogue> ReadCatalogue(std::string_view text, std::string_view source);

Result<planner::Catalogue> ReadCatalogueYaml(std::string_view text, std::string_view source);
Result<planner::Catalogue> ReadCatalogueCsv(std::string_view text, std::string_view source);

}  // namespace muster::kube
