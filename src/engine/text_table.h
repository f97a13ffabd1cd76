// Rows of text in aligned columns, two spaces apart, the last column as it is. Width counts characters, not bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::engine {

// Each row on its own line after `indent`, without spaces at its end.
std::string AlignRows(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

// "m-0, m-1, m-2"; from a certain length on "m-0, m-1, m-2 and 97 more". 0: all of them.
std::string JoinNames(const std::vector<std::string>& names, size_t most = 0);

}  // namespace muster::engine
