// Parser: how the text of a setting becomes a value, and what to tell an operator whose text does not. The standard
// parsers are here; a role adds its own beside its settings.
//
// Thread-safety: values; parsers may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/money.h"

namespace muster::host {

template <class T>
struct Parser {
  std::string rule;  // what a value must be, as in "must be ...": "a whole number from 1 to 256"
  // The value, or what is wrong with the text in more detail than the rule says; empty if the rule says it all.
  std::function<std::expected<T, std::string>(std::string_view)> read;
};

// The text does not follow the rule.
inline std::unexpected<std::string> AgainstRule() { return std::unexpected(std::string()); }

template <std::integral T>
Parser<T> WholeNumber(T least, T most = std::numeric_limits<T>::max()) {
  std::string rule = most == std::numeric_limits<T>::max() ? fmt::format("a whole number of {} or more", least)
                                                           : fmt::format("a whole number from {} to {}", least, most);
  return {.rule = std::move(rule), .read = [least, most](std::string_view text) -> std::expected<T, std::string> {
            T value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
              return AgainstRule();
            }
            return value;
          }};
}

// A decimal number within both bounds.
Parser<double> Number(double least, double most);
// A share of a whole.
Parser<model::Probability> Fraction();
// As model::ParseDuration; PositiveDuration refuses zero.
Parser<Duration> AnyDuration();
Parser<Duration> PositiveDuration();
// Bytes, "64MiB" or "64Mi".
Parser<uint64_t> ByteSize(uint64_t least);
// 1 to 64 of `letters`; `described` says which these are.
Parser<std::string> Name(std::string letters, std::string_view described);
// Any text, which is looked at where it is used; `described` says what it should be.
Parser<std::string> Text(std::string described);

// The parts of a text between separators: one part more than there are separators.
std::vector<std::string_view> SplitAt(std::string_view text, char separator);

}  // namespace muster::host
