// Rows of a table (wire_table.h) for fields that may be absent: messages, and fields that are `optional`.
//
//   MUSTER_WIRE_OPTIONAL(usage)             the member is a std::optional, empty where the field is absent
//   MUSTER_WIRE_DEFAULT(replicas, Count())  the member keeps the struct's default where the field is absent
//
// Each takes a rule, and has a form with _AS where member and field have different names.
//
// Thread-safety: functions without state.
#pragma once

#include <string_view>

#include "base/status.h"
#include "rpc/wire_table.h"

namespace muster::rpc {

// `inner` is the row of the value within the optional.
template <class Has, class Member, class Row>
struct WireOptional {
  constexpr WireOptional(Has has_field, Member member_of, Row row)
      : member_name(row.member_name), has(has_field), member(member_of), inner(row) {}

  template <class Wire, class Value>
  bool Read(Wire& wire, Value& value, Status& error) const {
    if (!has(wire)) return true;
    member(value).emplace();
    return inner.Read(wire, value, error);
  }
  template <class Value, class Wire>
  void Write(const Value& value, Wire& wire) const {
    if (member(value)) inner.Write(value, wire);
  }

  std::string_view member_name;
  Has has;
  Member member;
  Row inner;
};

template <class Has, class Row>
struct WireDefault {
  constexpr WireDefault(Has has_field, Row row) : member_name(row.member_name), has(has_field), inner(row) {}

  template <class Wire, class Value>
  bool Read(Wire& wire, Value& value, Status& error) const {
    return !has(wire) || inner.Read(wire, value, error);
  }
  template <class Value, class Wire>
  void Write(const Value& value, Wire& wire) const {
    inner.Write(value, wire);
  }

  std::string_view member_name;
  Has has;
  Row inner;
};

}  // namespace muster::rpc

#define MUSTER_WIRE_OPTIONAL_AS(member_, field_, ...)                                                           \
  ::muster::rpc::WireOptional(                                                                                  \
      [](const auto& wire) { return wire.has_##field_(); }, [](auto& value) -> auto& { return value.member_; }, \
      ::muster::rpc::WireRow(                                                                                   \
          #member_, #field_, [](auto& value) -> auto& { return *value.member_; },                               \
          [](auto& wire) -> decltype(auto) { return wire.field_(); },                                           \
          [](auto& wire) -> auto& { return *wire.mutable_##field_(); },                                         \
          [](auto& wire, auto&& from) { wire.set_##field_(std::forward<decltype(from)>(from)); } __VA_OPT__(, ) \
              __VA_ARGS__))
#define MUSTER_WIRE_OPTIONAL(name_, ...) MUSTER_WIRE_OPTIONAL_AS(name_, name_ __VA_OPT__(, ) __VA_ARGS__)
#define MUSTER_WIRE_DEFAULT_AS(member_, field_, ...)                               \
  ::muster::rpc::WireDefault([](const auto& wire) { return wire.has_##field_(); }, \
                             MUSTER_WIRE_AS(member_, field_ __VA_OPT__(, ) __VA_ARGS__))
#define MUSTER_WIRE_DEFAULT(name_, ...) MUSTER_WIRE_DEFAULT_AS(name_, name_ __VA_OPT__(, ) __VA_ARGS__)
