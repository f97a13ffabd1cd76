// Money in whole micro-dollars, and probabilities in whole millionths: decisions never compare doubles.
//
// Prices arrive as doubles (wire) or text (files) and are rounded to the nearest micro-dollar once, at the border.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "base/status.h"

namespace muster::model {

struct Money {
  int64_t micros = 0;

  constexpr auto operator<=>(const Money&) const = default;
  MUSTER_FIELDS(Money, micros)
};

// "12", "0.51", "$1.25". At most six decimals and 9,000,000,000,000 dollars; negative, NaN or anything else is refused.
Result<Money> ParseMoney(std::string_view text);
// Refuses NaN, infinities, negatives and what does not fit.
Result<Money> MoneyFromDollars(double dollars);
double ToDollars(Money money);
// "$0.510000" trimmed to at least two decimals: "$0.51", "$12.00", "$0.000001".
std::string FormatMoney(Money money);

// A probability in [0, 1], in millionths.
struct Probability {
  int32_t millionths = 0;

  constexpr auto operator<=>(const Probability&) const = default;
  MUSTER_FIELDS(Probability, millionths)
};

// Refuses NaN and everything outside [0, 1].
Result<Probability> ProbabilityFromDouble(double value);
Result<Probability> ParseProbability(std::string_view text);

}  // namespace muster::model
