#include "model/money.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/names.h"

namespace muster::model {
namespace {

constexpr int64_t kMicros = 1'000'000;
constexpr int64_t kMaxDollars = 9'000'000'000'000;  // times kMicros is just below the largest int64_t
constexpr size_t kPlaces = 6;

bool AllDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The value of `number` (digits, or digits.digits) in millionths. Errors quote `text`, which `number` is a part of.
Result<int64_t> ParseMillionths(std::string_view what, std::string_view text, std::string_view number,
                                int64_t largest) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument(fmt::format("{} {}: {}", what, Quoted(text), why));
  };
  if (number.starts_with('-')) return refuse("it must not be negative");
  const size_t point = number.find('.');
  const std::string_view whole = number.substr(0, point);
  const std::string_view decimals = point == std::string_view::npos ? "0" : number.substr(point + 1);
  if (!AllDigits(whole) || !AllDigits(decimals)) return refuse("it is not a plain decimal number such as 12 or 0.51");
  if (decimals.size() > kPlaces) return refuse("it has more than six decimals");
  int64_t units = 0;
  for (const char c : whole) units = std::min(units * 10 + (c - '0'), largest + 1);
  int64_t fraction = 0;
  for (size_t i = 0; i < kPlaces; ++i) fraction = fraction * 10 + (i < decimals.size() ? decimals[i] - '0' : 0);
  if (units > largest || (units == largest && fraction > 0)) return refuse(fmt::format("the most is {}", largest));
  return units * kMicros + fraction;
}

}  // namespace

Result<Money> ParseMoney(std::string_view text) {
  const std::string_view number = text.starts_with('$') ? text.substr(1) : text;
  MUSTER_ASSIGN_OR_RETURN(const int64_t micros, ParseMillionths("amount of dollars", text, number, kMaxDollars));
  return Money{micros};
}

Result<Money> MoneyFromDollars(double dollars) {
  // Written so that NaN, which compares false with everything, is refused.
  if (!(dollars >= 0 && dollars <= static_cast<double>(kMaxDollars))) {
    return InvalidArgument(fmt::format("amount of dollars {}: it must be from 0 to {}", dollars, kMaxDollars));
  }
  return Money{std::llround(dollars * kMicros)};
}

double ToDollars(Money money) { return static_cast<double>(money.micros) / kMicros; }

std::string FormatMoney(Money money) {
  const auto bits = static_cast<uint64_t>(money.micros);
  const uint64_t magnitude = money.micros < 0 ? 0 - bits : bits;
  std::string text = fmt::format("{}${}.{:06}", money.micros < 0 ? "-" : "", magnitude / kMicros, magnitude % kMicros);
  for (size_t i = 2; i < kPlaces && text.back() == '0'; ++i) text.pop_back();
  return text;
}

Result<Probability> ProbabilityFromDouble(double value) {
  if (!(value >= 0 && value <= 1)) {
    return InvalidArgument(fmt::format("probability {}: it must be from 0 to 1", value));
  }
  return Probability{static_cast<int32_t>(std::lround(value * kMicros))};
}

Result<Probability> ParseProbability(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t millionths, ParseMillionths("probability", text, text, 1));
  return Probability{static_cast<int32_t>(millionths)};
}

}  // namespace muster::model
