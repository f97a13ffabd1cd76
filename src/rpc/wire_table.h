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
// text is written. wire_oneof.h has the row of a oneof, wire_optional.h those of fields that may be absent.
//
// 1. Reading goes row by row and ends at the first value that is refused: INVALID_ARGUMENT with the path of the field
//    ("clusters[1].mode: ..."). Texts are moved out of a message that is not const. Writing cannot fail.
// 2. A table that leaves out a member of the struct does not compile; MUSTER_WIRE_SOME is for structs of which a part
//    is converted by hand. A field of the message that is left out is found by carried_fields_test.cc.
//
// Thread-safety: functions without state.
#pragma once

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

template <class Value, class Wire>
constexpr bool NamesEveryMember() {
  constexpr const auto& table = kWireTable<Value, Wire>;
  const auto named = [](std::string_view name) {
    return std::apply([&](const auto&... row) { return (false || ... || (row.member_name == name)); }, table.rows);
  };
  return std::apply([&](const auto&... member) { return (true && ... && named(member.name)); }, Value::Fields());
}

// False: a value is refused, and `error` names its field.
template <class Wire, class Value>
bool ReadTable(Wire& wire, Value& into, Status& error) {
  constexpr const auto& table = kWireTable<Value, std::remove_const_t<Wire>>;
  if constexpr (table.complete) {
    static_assert(NamesEveryMember<Value, std::remove_const_t<Wire>>(), "a table leaves out a member");
  }
  return std::apply([&](const auto&... row) { return (true && ... && row.Read(wire, into, error)); }, table.rows);
}

template <class Value, class Wire>
void WriteTable(const Value& from, Wire& wire) {
  std::apply([&](const auto&... row) { (row.Write(from, wire), ...); }, kWireTable<Value, Wire>.rows);
}

// The whole message; `path` is where it stands, or empty.
template <class Value, class Wire>
Result<Value> ReadByTable(Wire& wire, std::string_view path = "") {
  Value value;
  Status error;
  if (ReadTable(wire, value, error)) return value;
  if (!path.empty()) AddPath(path, error);
  return std::unexpected(std::move(error));
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
  bool Read(Wire& wire, Value& value, Status& error) const {
    using Field = std::remove_cvref_t<decltype(get(wire))>;
    static_assert(!std::is_enum_v<Field> || std::is_same_v<Rule, Numbers>, "a row of an enum needs its Numbers");
    if constexpr (requires { rule.Allows(get(wire), name, error); }) {
      if (!rule.Allows(get(wire), name, error)) return false;
    }
    if constexpr (std::is_class_v<Field> && !std::is_const_v<Wire>) {
      return ReadField(fill(wire), member(value), error);
    } else {
      const Field& field = get(wire);
      return ReadField(field, member(value), error);
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
      for (const std::string& text : from) fill(wire).Add(Readable(text));
    } else if constexpr (std::is_same_v<Field, WireMap> && std::is_same_v<Rule, AnyBytes>) {
      for (const auto& [key, text] : from) fill(wire)[Readable(key)] = Readable(text);
    } else if constexpr (std::is_class_v<Field> && !std::is_same_v<Field, std::string>) {
      FillField(from, fill(wire));
    } else if constexpr (std::is_same_v<Rule, AnyBytes>) {
      set(wire, Readable(from));
    } else {
      set(wire, FieldOf<Field>(from));
    }
  }

  template <class Field, class Into>
  bool ReadField(Field& field, Into& into, Status& error) const {
    if constexpr (HasWireTable<Into, std::remove_const_t<Field>>) {
      if (!ReadTable(field, into, error)) AddPath(name, error);
      return error.ok();
    } else if constexpr (HasRowTable<Into, Field>) {
      into.reserve(static_cast<size_t>(field.size()));
      for (auto& row : field) {
        if (ReadTable(row, into.emplace_back(), error)) continue;
        AddPath(name, into.size() - 1, error);
        return false;
      }
      return true;
    } else {
      return ReadValue(field, into, name, error);
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
// The table of a list that stands in a message of its own, as the one field of it.
#define MUSTER_WIRE_LIST(Value, Wire, field_)                                          \
  template <>                                                                          \
  inline constexpr auto kWireTable<Value, Wire> =                                      \
      WireTable(false, ::muster::rpc::WireRow(                                         \
                           "", #field_, [](auto& value) -> auto& { return value; },    \
                           [](auto& wire) -> decltype(auto) { return wire.field_(); }, \
                           [](auto& wire) -> auto& { return *wire.mutable_##field_(); }, [](auto&, auto&&) {}))
// The table and the two functions that the header of the conversion declares.
#define MUSTER_WIRE_REQUEST(Value, Wire, ...) \
  MUSTER_WIRE_WHOLE(FromWire, const Wire, Value, Wire __VA_OPT__(, ) __VA_ARGS__)
#define MUSTER_WIRE_REPLY(Value, Wire, ...) MUSTER_WIRE_WHOLE(TakeReply, Wire, Value, Wire __VA_OPT__(, ) __VA_ARGS__)
#define MUSTER_WIRE_WHOLE(Read, From, Value, Wire, ...)                    \
  MUSTER_WIRE_PART(Value, Wire __VA_OPT__(, ) __VA_ARGS__);                \
  Result<Value> Read(From& wire) { return ReadByTable<Value>(wire); }      \
  void ToWire(const Value& value, Wire& wire) { WriteTable(value, wire); } \
  static_assert(true)
