#include "model/text_scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>

#include "model/names.h"

namespace muster::model {
namespace {

struct Unit {
  std::string_view name;
  int64_t nanos;
};
// From large to small, as they are written.
constexpr std::array<Unit, 7> kUnits = {{{"d", 86'400'000'000'000},
                                         {"h", 3'600'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"s", 1'000'000'000},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }

// Takes the run of characters at the start of `text` that `is` accepts.
template <class Predicate>
std::string_view TakeWhile(std::string_view& text, Predicate is) {
  const auto end = std::ranges::find_if_not(text, is);
  const std::string_view run = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(run.size());
  return run;
}

std::optional<int64_t> ToInteger(std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Of so few digits that they fit.
int64_t ValueOf(std::string_view digits) {
  int64_t value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

// Exactly `count` digits at the start of `text`, taken.
std::optional<int> TakeDigits(std::string_view& text, size_t count) {
  if (text.size() < count || !std::ranges::all_of(text.substr(0, count), IsDigit)) return std::nullopt;
  const int64_t value = ValueOf(text.substr(0, count));
  text.remove_prefix(count);
  return static_cast<int>(value);
}

bool TakeChar(std::string_view& text, std::string_view any_of) {
  if (text.empty() || !any_of.contains(text.front())) return false;
  text.remove_prefix(1);
  return true;
}

// Nanoseconds of ".25"; nothing for more than nine digits or none.
std::optional<int64_t> TakeFraction(std::string_view& text) {
  if (!TakeChar(text, ".")) return 0;
  const std::string_view digits = TakeWhile(text, IsDigit);
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  int64_t nanos = ValueOf(digits);
  for (size_t i = digits.size(); i < 9; ++i) nanos *= 10;
  return nanos;
}

// Seconds east of UTC: "Z", "+02:00", "-05:30".
std::optional<int> TakeOffset(std::string_view& text) {
  if (TakeChar(text, "Zz")) return 0;
  const int sign = text.starts_with('-') ? -1 : 1;
  if (!TakeChar(text, "+-")) return std::nullopt;
  const auto hours = TakeDigits(text, 2);
  if (!hours || *hours > 23 || !TakeChar(text, ":")) return std::nullopt;
  const auto minutes = TakeDigits(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

// Days since 1970 of "2026-01-31".
std::optional<int64_t> TakeDate(std::string_view& text) {
  const auto year = TakeDigits(text, 4);
  if (!year || !TakeChar(text, "-")) return std::nullopt;
  const auto month = TakeDigits(text, 2);
  if (!month || !TakeChar(text, "-")) return std::nullopt;
  const auto day = TakeDigits(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// Seconds since midnight of "08:00:00". A leap second is not a time of ours.
std::optional<int64_t> TakeClock(std::string_view& text) {
  const auto hour = TakeDigits(text, 2);
  if (!hour || *hour > 23 || !TakeChar(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || *minute > 59 || !TakeChar(text, ":")) return std::nullopt;
  const auto second = TakeDigits(text, 2);
  if (!second || *second > 59) return std::nullopt;
  return *hour * 3600 + *minute * 60 + *second;
}

// Letters that must change to make one word of the other; a swap of neighbours counts once.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replace, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 64;  // nothing longer is a misspelt name, and the search is quadratic
  if (word.size() > kLongestName) return "";
  const size_t worst = word.size() / 3;
  size_t best = kLongestName;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const bool begun = word.size() >= 2 && candidate.starts_with(word);
    const size_t distance = begun ? 1 : Distance(word, candidate);
    if (distance >= best || (distance > worst && !begun)) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

Result<Duration> ParseDuration(std::string_view text) {
  const auto fail = [&](std::string_view why) {
    return InvalidArgument(fmt::format("duration {}: {}", Quoted(text), why));
  };
  std::string_view rest = text;
  size_t next_unit = 0;  // units before it may not follow any more
  int64_t total = 0;
  do {
    const std::string_view digits = TakeWhile(rest, IsDigit);
    if (digits.empty()) return fail("write whole numbers with units, as in 90s, 10m or 1h30m");
    const std::string_view name = TakeWhile(rest, IsLetter);
    if (name.empty() && !rest.empty()) return fail("write whole numbers with units, as in 90s, 10m or 1h30m");
    if (name.empty()) return fail(fmt::format("the unit is missing; did you mean {}s?", text));
    const auto unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == kUnits.end()) return fail(fmt::format("{} is not one of d, h, m, s, ms, us, ns", Quoted(name)));
    const auto index = static_cast<size_t>(unit - kUnits.begin());
    if (index < next_unit) return fail("units go from large to small, each once");
    next_unit = index + 1;
    const std::optional<int64_t> count = ToInteger(digits);
    int64_t nanos = 0;
    if (!count || __builtin_mul_overflow(*count, unit->nanos, &nanos) || __builtin_add_overflow(total, nanos, &total)) {
      return fail("it is longer than 292 years");
    }
  } while (!rest.empty());
  return Duration(total);
}

std::string FormatDuration(Duration duration) {
  // Unsigned, because the most negative value has no positive counterpart.
  const bool negative = duration < Duration::zero();
  auto rest = static_cast<uint64_t>(duration.count());
  if (negative) rest = 0 - rest;
  if (rest == 0) return "0s";
  std::string out = negative ? "-" : "";
  for (size_t i = 1; i < kUnits.size(); ++i) {  // days are for people who write; hours do not depend on a calendar
    const auto nanos = static_cast<uint64_t>(kUnits[i].nanos);
    if (rest >= nanos) out += fmt::format("{}{}", rest / nanos, kUnits[i].name);
    rest %= nanos;
  }
  return out;
}

Result<WallTime> ParseWallTime(std::string_view text) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kLastSecond = std::numeric_limits<int64_t>::max() / kSecond - 1;
  const auto fail = [&](std::string_view why) {
    return InvalidArgument(fmt::format("time {}: {}", Quoted(text), why));
  };
  int64_t seconds = 0;
  int64_t nanos = 0;
  if (!text.empty() && std::ranges::all_of(text, IsDigit)) {
    seconds = ToInteger(text).value_or(std::numeric_limits<int64_t>::max());
  } else {
    constexpr std::string_view kHow = "write it as 2026-01-31T08:00:00Z or as whole seconds since 1970";
    std::string_view rest = text;
    const auto days = TakeDate(rest);
    if (!days || !TakeChar(rest, "Tt ")) return fail(kHow);
    const auto clock = TakeClock(rest);
    if (!clock) return fail(kHow);
    const auto fraction = TakeFraction(rest);
    if (!fraction) return fail("a fraction of a second has one to nine digits");
    const auto offset = TakeOffset(rest);
    if (!offset) return fail("end it with Z or an offset such as +02:00");
    if (!rest.empty()) return fail(kHow);
    seconds = *days * 86'400 + *clock - *offset;
    nanos = *fraction;
  }
  if (seconds < 0 || seconds > kLastSecond) return fail("it must lie between 1970 and 2261");
  return WallTime(Duration(seconds * kSecond + nanos));
}

std::string FormatWallTime(WallTime time) {
  const std::chrono::sys_time<Duration> instant(time.time_since_epoch());
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(instant - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

}  // namespace muster::model
