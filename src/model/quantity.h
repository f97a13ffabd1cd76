// Quantities: Kubernetes' notation for amounts, parsed once at the border into whole milli-units.
//
// Grammar: sign? digits with at most one point, then at most one of: n u m | k M G T P E | Ki Mi Gi Ti Pi Ei |
// e or E with a signed decimal exponent. "1.5Gi", "250m", ".5", "2.", "1e3", "12E" (exa) and "12E2" (exponent) are all
// legal. The result is exact or there is none: finer than a milli-unit, outside int64, or not in the grammar is an
// error that quotes the text and says why. Nothing ever becomes zero or the maximum in silence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::model {

// Milli-units: "1" is 1000. May be negative; what an amount may be is its owner's rule (Resources refuses negatives).
Result<int64_t> ParseQuantity(std::string_view text);

// The canonical decimal form, which parses back to `milli`: whole units where it is whole ("2", "-3"), else "1500m".
std::string FormatQuantity(int64_t milli);

// For people: binary suffixes for amounts of bytes (memory, storage, ephemeral-storage, hugepages-*), otherwise as
// FormatQuantity. "1536Mi". Parses back to `milli` too.
std::string FormatQuantityFor(std::string_view dimension, int64_t milli);

}  // namespace muster::model
