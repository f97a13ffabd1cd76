#include "rpc/wire_values.h"

#include <fmt/format.h>

namespace muster::rpc {

bool Required::Allows(const std::string& text, std::string_view field, Status& error) const {
  if (text.empty()) error = Refuse("", field, fmt::format("missing; {}", hint)).error();
  return error.ok();
}

bool Count::Allows(int64_t number, std::string_view field, Status& error) const {
  if (const auto count = CountFromWire(number, "", field); !count) error = count.error();
  return error.ok();
}

bool Numbers::Allows(int number, std::string_view field, Status& error) const {
  if (number < least || number > most) error = Refuse("", field, fmt::format("{} is not {}", number, what)).error();
  return error.ok();
}

bool Numbers::Allows(const WireNumbers& numbers, std::string_view field, Status& error) const {
  for (int i = 0; i < numbers.size(); ++i) {
    if (!Allows(numbers.Get(i), fmt::format("{}[{}]", field, i), error)) return false;
  }
  return true;
}

void AddPath(std::string_view part, Status& error) {
  error = {error.code(), fmt::format("{}.{}", part, error.message())};
}

void AddPath(std::string_view part, size_t index, Status& error) {
  error = {error.code(), fmt::format("{}[{}].{}", part, index, error.message())};
}

}  // namespace muster::rpc
