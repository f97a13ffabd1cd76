// Tables of fields: a message and a struct of the contract that say the same are paired once, member by field, and both
// directions of the conversion follow from it.
//
//   MUSTER_WIRE_PART(contract::Taint, pb::Taint, MUSTER_WIRE(key), MUSTER_WIRE(value), MUSTER_WIRE(effect));
//   MUSTER_WIRE_REQUEST(contract::ListActions, v1::ListActionsRequest, MUSTER_WIRE(cluster_id),
//                       MUSTER_WIRE(limit, Count()));
//
// A row is MUSTER_WIRE(name, rule) where member and field have one name, else MUSTER_WIRE_AS(member, field, rule); the
// member may be one of a member (need.cluster). Types decide how a value is converted (wire_values.h); messages within
// the message need tables of their own, before its table. The optional rule says which values are refused, or how a
// text is written. wire_oneof.h has the row of a oneof.
//
// 1. Reading goes row by row and ends at the first value that is refused: INVALID_ARGUMENT with the path of the field
//    ("clusters[1].mode: ..."). Texts are moved out of a message that is not const. Writing cannot fail.
// 2. A table that leaves out a member of the struct does not compile; MUSTER_WIRE_SOME is for structs that are
// converted
//    partly by hand. A field of the message that is left out is found by carried_fields_test.cc.
//
// Thread-safety: functions without state.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/fields.h"
#include "base/status.h"
#include "rpc/wire_values.h"

namespace muster::rpc {

// Specialised for each pair that has a table.
template <class Value, class Wire>
inline constexpr std::nullptr_t kWireTable = nullptr;

template <class Value, class Wire>
concept HasWireTable = !std::is_same_v<decltype(kWireTable<Value, Wire>), const std::nullptr_t>;
template <class Values, class Wires>
concept HasRowTable = HasWireTable<typename Values::value_type, typename Wires::value_type>;

template <class... Rows>
struct WireTable {
  constexpr explicit WireTable(bool every_member, Rows... all) : complete(every_member), rows(all...) {}
  bool complete;
  std::tuple<Rows...> rows;
};

// The error of a part, by its path in the whole.
inline Status Within(std::string_view part, Status status) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}.{}", part, status.message())};
}

template <class Value, class Wire>
constexpr bool NamesEveryMember() {
  constexpr const auto& table = kWireTable<Value, Wire>;
  const auto named = [](std::string_view name) {
    return std::apply([&](const auto&... row) { return (false || ... || (row.member_name == name)); }, table.rows);
  };
  return std::apply([&](const auto&... member) { return (true && ... && named(member.name)); }, Value::Fields());
}

template <class Wire, class Value>
Status ReadTable(Wire& wire, Value& into) {
  constexpr const auto& table = kWireTable<Value, std::remove_const_t<Wire>>;
  static_assert(!table.complete || NamesEveryMember<Value, std::remove_const_t<Wire>>(), "a table leaves out a member");
  Status status;
  const auto read = [&](const auto& row) { return (status = row.Read(wire, into)).ok(); };
  std::apply([&](const auto&... row) { (void)(true && ... && read(row)); }, table.rows);
  return status;
}

template <class Value, class Wire>
void WriteTable(const Value& from, Wire& wire) {
  std::apply([&](const auto&... row) { (row.Write(from, wire), ...); }, kWireTable<Value, Wire>.rows);
}

// The whole message; `path` is where it stands, or empty.
template <class Value, class Wire>
Result<Value> ReadByTable(Wire& wire, std::string_view path = "") {
  Value value;
  Status status = ReadTable(wire, value);
  if (!status.ok()) return std::unexpected(path.empty() ? std::move(status) : Within(path, std::move(status)));
  return value;
}

// --- rows

template <class Member, class Get, class Mutable, class Set, class Rule = AnyValue>
struct WireRow {
  constexpr WireRow(std::string_view member_path, std::string_view field_name, Member member_of, Get get_field,
                    Mutable mutable_field, Set set_field, Rule field_rule = {})
      : member_name(member_path.substr(0, member_path.find('.'))),
        name(field_name),
        member(member_of),
        get(get_field),
        fill(mutable_field),
        set(set_field),
        rule(field_rule) {}

  template <class Wire, class Value>
  Status Read(Wire& wire, Value& value) const {
    using Field = std::remove_cvref_t<decltype(get(wire))>;
    static_assert(!std::is_enum_v<Field> || std::is_same_v<Rule, Numbers>, "a row of an enum needs its Numbers");
    if constexpr (requires { rule.Problem(get(wire)); }) {
      if (const std::string problem = rule.Problem(get(wire)); !problem.empty()) {
        return Refuse("", name, problem).error();
      }
    }
    if constexpr (std::is_class_v<Field> && !std::is_const_v<Wire>) {
      return ReadField(fill(wire), member(value));
    } else {
      const Field& field = get(wire);
      return ReadField(field, member(value));
    }
  }

  template <class Value, class Wire>
  void Write(const Value& value, Wire& wire) const {
    using Field = std::remove_cvref_t<decltype(get(wire))>;
    const auto& from = member(value);
    using From = std::remove_cvref_t<decltype(from)>;
    if constexpr (HasWireTable<From, Field>) {
      WriteTable(from, fill(wire));
    } else if constexpr (HasRowTable<From, Field>) {
      fill(wire).Reserve(static_cast<int>(from.size()));
      for (const auto& row : from) WriteTable(row, *fill(wire).Add());
    } else if constexpr (std::is_same_v<Field, WireTexts> && std::is_same_v<Rule, AnyBytes>) {
      for (const std::string& text : from) fill(wire).Add(rule.Written(text));
    } else if constexpr (std::is_class_v<Field> && !std::is_same_v<Field, std::string>) {
      FillField(from, fill(wire));
    } else if constexpr (std::is_same_v<Rule, AnyBytes>) {
      set(wire, rule.Written(from));
    } else {
      set(wire, FieldOf<Field>(from));
    }
  }

  template <class Field, class Into>
  Status ReadField(Field& field, Into& into) const {
    if constexpr (HasWireTable<Into, std::remove_const_t<Field>>) {
      return Within(name, ReadTable(field, into));
    } else if constexpr (HasRowTable<Into, Field>) {
      into.reserve(static_cast<size_t>(field.size()));
      for (auto& row : field) {
        Status status = ReadTable(row, into.emplace_back());
        if (!status.ok()) return Within(fmt::format("{}[{}]", name, into.size() - 1), std::move(status));
      }
      return {};
    } else {
      return ReadValue(field, into, name);
    }
  }

  std::string_view member_name;  // the struct's own
  std::string_view name;         // of the field
  Member member;
  Get get;
  Mutable fill;
  Set set;
  Rule rule;
};

}  // namespace muster::rpc

#define MUSTER_WIRE_AS(member_, field_, ...)                                                                \
  ::muster::rpc::WireRow(                                                                                   \
      #member_, #field_, [](auto& value) -> auto& { return value.member_; },                                \
      [](auto& wire) -> decltype(auto) { return wire.field_(); },                                           \
      [](auto& wire) -> auto& { return *wire.mutable_##field_(); },                                         \
      [](auto& wire, auto&& from) { wire.set_##field_(std::forward<decltype(from)>(from)); } __VA_OPT__(, ) \
          __VA_ARGS__)
#define MUSTER_WIRE(name_, ...) MUSTER_WIRE_AS(name_, name_ __VA_OPT__(, ) __VA_ARGS__)

// The table of a pair that is a part of others, or that functions written by hand use; with every member, or with some.
#define MUSTER_WIRE_PART(Value, Wire, ...) \
  template <>                              \
  inline constexpr auto kWireTable<Value, Wire> = WireTable(true __VA_OPT__(, ) __VA_ARGS__)
#define MUSTER_WIRE_SOME(Value, Wire, ...) \
  template <>                              \
  inline constexpr auto kWireTable<Value, Wire> = WireTable(false, __VA_ARGS__)
// The table and the two functions that the header of the conversion declares.
#define MUSTER_WIRE_REQUEST(Value, Wire, ...) \
  MUSTER_WIRE_WHOLE(FromWire, const Wire, Value, Wire __VA_OPT__(, ) __VA_ARGS__)
#define MUSTER_WIRE_REPLY(Value, Wire, ...) MUSTER_WIRE_WHOLE(TakeReply, Wire, Value, Wire __VA_OPT__(, ) __VA_ARGS__)
#define MUSTER_WIRE_WHOLE(Read, From, Value, Wire, ...)                    \
  MUSTER_WIRE_PART(Value, Wire __VA_OPT__(, ) __VA_ARGS__);                \
  Result<Value> Read(From& wire) { return ReadByTable<Value>(wire); }      \
  void ToWire(const Value& value, Wire& wire) { WriteTable(value, wire); } \
  static_assert(true)
