#include "model/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "model/names.h"

namespace muster::model {
namespace {

constexpr int64_t kMilli = 1000;

// sign * digits * 10^ten * 2^two. The digits have no zeros at either end, so zero has none at all and `digits` is never
// a multiple of ten: what is left over after scaling decides exactness without arithmetic on huge numbers.
struct Number {
  bool negative = false;
  std::string digits;
  int64_t ten = 0;
  int two = 0;
};

struct Suffix {
  std::string_view text;
  int ten;
  int two;
};
constexpr auto kSuffixes = std::to_array<Suffix>({{"", 0, 0},
                                                  {"n", -9, 0},
                                                  {"u", -6, 0},
                                                  {"m", -3, 0},
                                                  {"k", 3, 0},
                                                  {"M", 6, 0},
                                                  {"G", 9, 0},
                                                  {"T", 12, 0},
                                                  {"P", 15, 0},
                                                  {"E", 18, 0},
                                                  {"Ki", 0, 10},
                                                  {"Mi", 0, 20},
                                                  {"Gi", 0, 30},
                                                  {"Ti", 0, 40},
                                                  {"Pi", 0, 50},
                                                  {"Ei", 0, 60}});

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSign(char c) { return c == '+' || c == '-'; }

// Moves digits and at most one point from `rest` into `number`. False if there was no digit.
bool TakeDigits(std::string_view& rest, Number& number) {
  bool point = false;
  size_t used = 0;
  for (; used < rest.size(); ++used) {
    const char c = rest[used];
    if (IsDigit(c)) {
      number.digits += c;
      number.ten -= point;
    } else if (c == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  rest.remove_prefix(used);
  if (number.digits.empty()) return false;
  while (!number.digits.empty() && number.digits.back() == '0') {
    number.digits.pop_back();
    ++number.ten;
  }
  number.digits.erase(0, std::min(number.digits.find_first_not_of('0'), number.digits.size()));
  return true;
}

// The exponent behind e or E, or nothing if it is not a whole number. Beyond any that could matter it is cut off: the
// text would have to hold as many digits to make up for it.
std::optional<int64_t> ParseExponent(std::string_view text) {
  static constexpr int64_t kFar = 1'000'000'000'000'000;
  const bool negative = text.starts_with('-');
  if (!text.empty() && IsSign(text.front())) text.remove_prefix(1);
  if (text.empty() || !std::ranges::all_of(text, IsDigit)) return std::nullopt;
  int64_t exponent = 0;
  for (const char c : text) exponent = std::min(exponent * 10 + (c - '0'), kFar);
  return negative ? -exponent : exponent;
}

// Applies what follows the digits. The reason if it is neither a suffix nor an exponent.
std::optional<std::string> TakeSuffix(std::string_view rest, Number& number) {
  for (const Suffix& suffix : kSuffixes) {
    if (rest != suffix.text) continue;
    number.ten += suffix.ten;
    number.two = suffix.two;
    return std::nullopt;
  }
  const bool has_exponent =
      (rest.front() == 'e' || rest.front() == 'E') && (rest.size() == 1 || IsDigit(rest[1]) || IsSign(rest[1]));
  if (!has_exponent) {
    return fmt::format("unknown suffix {}; use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or e and an exponent",
                       Quoted(rest));
  }
  const std::optional<int64_t> exponent = ParseExponent(rest.substr(1));
  if (!exponent) return fmt::format("the exponent {} is not a whole number", Quoted(rest.substr(1)));
  number.ten += *exponent;
  return std::nullopt;
}

// Long division in place. True if nothing was left over.
bool DivideByFive(std::string& digits) {
  int carried = 0;
  for (char& c : digits) {
    const int value = carried * 10 + (c - '0');
    c = static_cast<char>('0' + value / 5);
    carried = value % 5;
  }
  return carried == 0;
}

enum class Fit : uint8_t { kExact, kTooFine, kTooLarge };

// Turns digits * 10^ten * 2^two with a negative `ten` into one with ten = 0.
Fit DropFraction(Number& number) {
  // digits is no multiple of ten, so a division by 10^n is exact only as n divisions by 5 and n twos taken from 2^two.
  if (-number.ten > number.two) return Fit::kTooFine;
  // 2^63 * 5^60 has 61 digits: with more, and at most 60 divisions, the result exceeds 64 bits.
  if (number.digits.size() > 64) return Fit::kTooLarge;
  for (; number.ten < 0; ++number.ten, --number.two) {
    if (!DivideByFive(number.digits)) return Fit::kTooFine;
  }
  return Fit::kExact;
}

Fit ToMilli(Number number, int64_t& milli) {
  milli = 0;
  if (number.digits.empty()) return Fit::kExact;
  number.ten += 3;
  if (number.ten < 0) {
    if (const Fit fit = DropFraction(number); fit != Fit::kExact) return fit;
  }
  uint64_t magnitude = 0;
  const auto shift_in = [&magnitude](uint64_t digit) {
    return !__builtin_mul_overflow(magnitude, 10u, &magnitude) && !__builtin_add_overflow(magnitude, digit, &magnitude);
  };
  for (const char c : number.digits) {
    if (!shift_in(static_cast<uint64_t>(c - '0'))) return Fit::kTooLarge;
  }
  for (int64_t i = 0; i < number.ten; ++i) {
    if (!shift_in(0)) return Fit::kTooLarge;
  }
  const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (number.negative ? 1 : 0);
  if (magnitude > limit >> number.two) return Fit::kTooLarge;
  magnitude <<= number.two;
  milli = static_cast<int64_t>(number.negative ? 0 - magnitude : magnitude);
  return Fit::kExact;
}

std::unexpected<Status> Refuse(std::string_view text, std::string_view why) {
  return InvalidArgument(fmt::format("quantity {}: {}", Quoted(text), why));
}

bool CountsBytes(std::string_view dimension) {
  return dimension == "memory" || dimension == "ephemeral-storage" || dimension == "storage" ||
         dimension.starts_with("hugepages-");
}

}  // namespace

Result<int64_t> ParseQuantity(std::string_view text) {
  Number number;
  std::string_view rest = text;
  if (!rest.empty() && IsSign(rest.front())) {
    number.negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (!TakeDigits(rest, number)) {
    return Refuse(text, "it does not begin with a number; write one such as 2, 250m or 1.5Gi");
  }
  if (const auto why = TakeSuffix(rest, number)) return Refuse(text, *why);
  int64_t milli = 0;
  switch (ToMilli(std::move(number), milli)) {
    case Fit::kExact: return milli;
    case Fit::kTooFine:
      return Refuse(text, "finer than 1m, the smallest amount there is; round it to a whole number of milli-units");
    case Fit::kTooLarge: break;
  }
  return Refuse(text, "too large; the largest amount is 9223372036854775807m");
}

std::string FormatQuantity(int64_t milli) {
  return milli % kMilli == 0 ? fmt::format("{}", milli / kMilli) : fmt::format("{}m", milli);
}

std::string FormatQuantityFor(std::string_view dimension, int64_t milli) {
  if (!CountsBytes(dimension) || milli == 0 || milli % kMilli != 0) return FormatQuantity(milli);
  static constexpr std::array<std::string_view, 7> kBinary = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  int64_t amount = milli / kMilli;
  size_t step = 0;
  for (; step + 1 < kBinary.size() && amount % 1024 == 0; ++step) amount /= 1024;
  return fmt::format("{}{}", amount, kBinary[step]);
}

}  // namespace muster::model
