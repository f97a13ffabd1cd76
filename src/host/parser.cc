#include "host/parser.h"

#include <cmath>

#include "model/quantity.h"
#include "model/text_scalars.h"

namespace muster::host {
namespace {

std::expected<Duration, std::string> ReadDuration(std::string_view text) {
  const auto duration = model::ParseDuration(text);
  if (!duration) return std::unexpected(duration.error().message());
  return *duration;
}

}  // namespace

Parser<double> Number(double least, double most) {
  return {.rule = fmt::format("a number from {} to {}", least, most),
          .read = [least, most](std::string_view text) -> std::expected<double, std::string> {
            double value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = error == std::errc() && end == text.data() + text.size();
            if (!whole || !(value >= least && value <= most)) return AgainstRule();
            return value;
          }};
}

Parser<model::Probability> Fraction() {
  const Parser<double> number = Number(0, 1);
  return {.rule = number.rule,
          .read = [number](std::string_view text) -> std::expected<model::Probability, std::string> {
            const auto value = number.read(text);
            if (!value) return std::unexpected(value.error());
            return model::Probability{static_cast<int32_t>(std::lround(*value * 1e6))};
          }};
}

Parser<Duration> AnyDuration() { return {.rule = "a duration, such as 90s", .read = ReadDuration}; }

Parser<Duration> PositiveDuration() {
  return {.rule = "a duration greater than zero, such as 90s",
          .read = [](std::string_view text) -> std::expected<Duration, std::string> {
            auto duration = ReadDuration(text);
            if (duration && *duration <= Duration::zero()) return AgainstRule();
            return duration;
          }};
}

Parser<uint64_t> ByteSize(uint64_t least) {
  return {.rule = fmt::format("a size of {}B or more, such as 64MiB",
                              model::FormatQuantityFor("memory", static_cast<int64_t>(least) * 1000)),
          .read = [least](std::string_view text) -> std::expected<uint64_t, std::string> {
            const auto milli = model::ParseQuantity(text.ends_with('B') ? text.substr(0, text.size() - 1) : text);
            if (!milli || *milli < 0 || static_cast<uint64_t>(*milli / 1000) < least) return AgainstRule();
            return static_cast<uint64_t>(*milli / 1000);
          }};
}

Parser<std::string> Name(std::string letters, std::string_view described) {
  return {.rule = fmt::format("1 to 64 {}", described),
          .read = [letters = std::move(letters)](std::string_view text) -> std::expected<std::string, std::string> {
            if (text.empty() || text.size() > 64 || text.find_first_not_of(letters) != std::string_view::npos) {
              return AgainstRule();
            }
            return std::string(text);
          }};
}

Parser<std::string> Text(std::string described) {
  return {.rule = std::move(described),
          .read = [](std::string_view text) -> std::expected<std::string, std::string> { return std::string(text); }};
}

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace muster::host
