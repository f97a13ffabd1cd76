// Scalars of files that have no type of their own in the model: durations and times; and hints for misspelt names.
//
// Messages quote the text and say how to write it; the caller adds where it stood.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace muster::model {

// The candidate closest to `word`: at most a third of its letters wrong, missing, added or swapped, or the word is its
// beginning, which counts as one letter. Empty if none is; the first of equals. For "did you mean" hints.
std::string NearestName(std::string_view word, const std::vector<std::string>& candidates);

// Whole numbers with units from large to small, each at most once: "90s", "1h30m", "250ms". Units: d h m s ms us ns. A
// number without a unit, a fraction or a sign is refused.
Result<Duration> ParseDuration(std::string_view text);
// As ParseDuration reads it, hours the largest unit: "1h30m", "250ms", "0s". A minus before negative ones.
std::string FormatDuration(Duration duration);

// RFC 3339 ("2026-01-31T08:00:00Z", "...T08:00:00.25+02:00") or whole seconds since 1970; up to the year 2261.
Result<WallTime> ParseWallTime(std::string_view text);
// RFC 3339 in UTC, to the millisecond: "2026-01-31T08:00:00.250Z".
std::string FormatWallTime(WallTime time);

}  // namespace muster::model
