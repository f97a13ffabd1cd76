// Names: how the enums of the model are written in files and shown to people, one table per enum.
//
//   constexpr auto kStates = std::to_array<NameRow<State>>({{State::kOn, "On"}, {State::kOff, "Off"}});
//   NameOf(kStates, state);  ParseName(kStates, "state", text);
//
// The first row of a value is its name; further rows are other spellings that are read but never written.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::model {

template <class E>
struct NameRow {
  E value;
  std::string_view name;
};

enum class LetterCase : uint8_t { kExact, kAny };

bool SameName(std::string_view a, std::string_view b, LetterCase letter_case);
// The text in quotes for a message: escaped where it is not printable, and cut short where it is long.
std::string Quoted(std::string_view text);

// "invalid" for a number that no row has, as undecodable bytes may hold.
template <class E, size_t N>
constexpr std::string_view NameOf(const std::array<NameRow<E>, N>& rows, E value) {
  for (const NameRow<E>& row : rows) {
    if (row.value == value) return row.name;
  }
  return "invalid";
}

// INVALID_ARGUMENT listing every name when there is no such one. `what` says what is named: "machine state".
template <class E, size_t N>
Result<E> ParseName(const std::array<NameRow<E>, N>& rows, std::string_view what, std::string_view name,
                    LetterCase letter_case = LetterCase::kExact) {
  std::string known;
  for (const NameRow<E>& row : rows) {
    if (SameName(row.name, name, letter_case)) return row.value;
    if (NameOf(rows, row.value) == row.name) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return InvalidArgument(fmt::format("unknown {} {}: use one of {}", what, Quoted(name), known));
}

}  // namespace muster::model
