// Values of single fields, between the wire and the contract: the conversions by type, and the rules, that the rows of
// a table (wire_table.h) have.
//
// A pair of types that is not here does not compile: add it to ReadValue, and to FieldOf (fields with a setter) or
// FillField (maps, repeated fields and messages).
//
// Thread-safety: functions without state.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/reason.h"
#include "model/requirement.h"
#include "model/resources.h"
#include "model/text_map.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {

using WireTexts = google::protobuf::RepeatedPtrField<std::string>;
using WireNumbers = google::protobuf::RepeatedField<int>;  // of an enum
using CountMap = std::map<std::string, int32_t>;

// --- rules: whether a field may have the value; if not, `error` says why, by the field's name

struct AnyValue {};

// A text that must be given.
struct Required {
  const char* hint;  // "name the machine"
  bool Allows(const std::string& text, std::string_view field, Status& error) const;
};

// A count or a duration.
struct Count {
  bool Allows(int64_t number, std::string_view field, Status& error) const;
};

// The numbers of an enum, which every row of one has: a newer or careless peer may send a number that is none of ours.
struct Numbers {
  int least;
  int most;
  const char* what;  // "a mode; use 1 (active), ..."
  bool Allows(int number, std::string_view field, Status& error) const;
  bool Allows(const WireNumbers& numbers, std::string_view field, Status& error) const;
};

// A text from outside that may be any bytes: written as UTF-8.
struct AnyBytes {};

// --- conversions

// Puts the path of the part before the field that the error names: "needs[2]", or "needs" and 2.
void AddPath(std::string_view part, Status& error);
void AddPath(std::string_view part, size_t index, Status& error);

template <class Value, class Into>
bool ReadResult(Result<Value> value, Into& into, Status& error) {
  if (value) {
    into = *std::move(value);
  } else {
    error = std::move(value).error();
  }
  return error.ok();
}

inline model::TextMap::Map CopyOrTakeMap(const WireMap& from) { return {from.begin(), from.end()}; }
inline model::TextMap::Map CopyOrTakeMap(WireMap& from) { return TakeMap(from); }

template <class T>
inline constexpr bool IsEnumList = false;
template <class E>
inline constexpr bool IsEnumList<std::vector<E>> = std::is_enum_v<E>;

// Takes the value out of the field unless that is const. False: the value is not valid, and `error` names the field.
template <class From, class Into>
bool ReadValue(From& from, Into& into, std::string_view field, Status& error) {
  using Field = std::remove_const_t<From>;
  if constexpr (std::is_same_v<Field, Into>) {
    into = std::move(from);
  } else if constexpr (std::is_enum_v<Field> && std::is_enum_v<Into>) {
    into = static_cast<Into>(from);
  } else if constexpr (std::is_same_v<Into, WallTime>) {
    into = TimeFromWire(from);
  } else if constexpr (std::is_same_v<Into, std::optional<WallTime>>) {
    into = from == 0 ? std::nullopt : std::optional(TimeFromWire(from));
  } else if constexpr (std::is_same_v<Into, std::chrono::seconds> || std::is_same_v<Into, Duration>) {
    into = Into(from);
  } else if constexpr (std::is_same_v<Into, model::Reason>) {
    into = ReasonFromWire(from);
  } else if constexpr (std::is_same_v<Into, model::Money>) {
    return ReadResult(MoneyFromWire(from, "", field), into, error);
  } else if constexpr (std::is_same_v<Into, model::Resources>) {
    return ReadResult(ResourcesFromWire(from.resources(), "", field), into, error);
  } else if constexpr (std::is_same_v<Into, std::vector<model::Requirement>>) {
    return ReadResult(RequirementsFromWire(from, ""), into, error);
  } else if constexpr (std::is_same_v<Into, std::vector<model::MachineState>>) {
    return ReadResult(StatesFromWire(from), into, error);
  } else if constexpr (IsEnumList<Into>) {
    for (const int number : from) into.push_back(static_cast<typename Into::value_type>(number));
  } else if constexpr (std::is_same_v<Into, std::vector<std::string>>) {
    into.assign(std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  } else if constexpr (std::is_same_v<Into, model::TextMap>) {
    into = TakeMap(from);
  } else if constexpr (std::is_same_v<Into, model::TextMap::Map>) {
    into = CopyOrTakeMap(from);
  } else {
    static_assert(std::is_same_v<Into, CountMap>, "ReadValue does not convert these types");
    into = CountMap(from.begin(), from.end());
  }
  return true;
}

// The value that a field with a setter is set to.
template <class Field, class Value>
decltype(auto) FieldOf(const Value& from) {
  if constexpr (std::is_same_v<Field, Value>) {
    return (from);
  } else if constexpr (std::is_enum_v<Field> && std::is_enum_v<Value>) {
    return static_cast<Field>(from);
  } else if constexpr (std::is_same_v<Value, WallTime>) {
    return TimeToWire(from);
  } else if constexpr (std::is_same_v<Value, std::optional<WallTime>>) {
    return from ? TimeToWire(*from) : 0;
  } else if constexpr (std::is_same_v<Value, std::chrono::seconds> || std::is_same_v<Value, Duration>) {
    return from.count();
  } else if constexpr (std::is_same_v<Value, model::Money>) {
    return model::ToDollars(from);
  } else {
    static_assert(std::is_same_v<Value, model::Reason>, "FieldOf does not convert these types");
    return std::string(model::ReasonName(from));
  }
}

// Fills an empty map, repeated field or message.
template <class Value, class Field>
void FillField(const Value& from, Field& into) {
  if constexpr (std::is_same_v<Value, model::Resources>) {
    WriteResources(from, into);
  } else if constexpr (std::is_same_v<Value, std::vector<model::Requirement>>) {
    WriteRequirements(from, into);
  } else if constexpr (std::is_same_v<Value, std::vector<model::MachineState>>) {
    for (const model::MachineState state : from) into.Add(static_cast<int>(state));
  } else if constexpr (IsEnumList<Value>) {
    for (const auto value : from) into.Add(static_cast<int>(value));
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    into.Add(from.begin(), from.end());
  } else {
    static_assert(std::is_same_v<Value, model::TextMap> || std::is_same_v<Value, model::TextMap::Map> ||
                      std::is_same_v<Value, CountMap>,
                  "FillField does not convert these types");
    for (const auto& [key, value] : from) into[key] = value;
  }
}

}  // namespace muster::rpc
