// The row of a table (wire_table.h) that pairs a oneof of messages with a std::variant of the contract.
//
//   MUSTER_WIRE_ONEOF(payload, MUSTER_WIRE_CASE(contract::AssignDomain, assign_domain),
//                     MUSTER_WIRE_CASE(contract::UnassignDomain, unassign_domain))
//
// Every alternative has its case and its table; std::monostate stands for none. An error has the name of the oneof's
// field in its path.
//
// Thread-safety: functions without state.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

#include "base/status.h"
#include "rpc/wire_table.h"

namespace muster::rpc {

template <class... Alternatives>
constexpr size_t CasesOf(const std::variant<Alternatives...>* /*type*/) {
  return (size_t{0} + ... + (std::is_same_v<Alternatives, std::monostate> ? 0 : 1));
}

// One alternative of a variant, with its field of a oneof.
template <class Value, class Has, class Get, class Mutable>
struct WireCase {
  constexpr WireCase(std::type_identity<Value> /*type*/, std::string_view field_name, Has has_field, Get get_field,
                     Mutable mutable_field)
      : name(field_name), has(has_field), get(get_field), fill(mutable_field) {}

  // False: it is refused, and `error` names the field.
  template <class Wire, class Variant>
  bool Read(Wire& wire, Variant& into, Status& error) const {
    if (!has(wire)) return true;
    Value& value = into.template emplace<Value>();
    if constexpr (std::is_const_v<Wire>) {
      if (!ReadTable(get(wire), value, error)) AddPath(name, error);
    } else {
      if (!ReadTable(fill(wire), value, error)) AddPath(name, error);
    }
    return error.ok();
  }
  template <class Variant, class Wire>
  void Write(const Variant& from, Wire& wire) const {
    if (const auto* value = std::get_if<Value>(&from)) WriteTable(*value, fill(wire));
  }

  std::string_view name;
  Has has;
  Get get;
  Mutable fill;
};

// A oneof as a row. A message without it, or with one that is not known here, leaves the variant as it is.
template <class Member, class... Cases>
struct WireOneof {
  constexpr WireOneof(std::string_view name, Member member_of, Cases... all)
      : member_name(name), member(member_of), cases(all...) {}

  template <class Wire, class Value>
  bool Read(Wire& wire, Value& value, Status& error) const {
    static_assert(CasesOf(std::add_pointer_t<decltype(member(value))>()) == sizeof...(Cases), "each has its case");
    return std::apply([&](const auto&... one) { return (true && ... && one.Read(wire, member(value), error)); }, cases);
  }
  template <class Value, class Wire>
  void Write(const Value& value, Wire& wire) const {
    std::apply([&](const auto&... one) { (one.Write(member(value), wire), ...); }, cases);
  }

  std::string_view member_name;
  Member member;
  std::tuple<Cases...> cases;
};

}  // namespace muster::rpc

#define MUSTER_WIRE_ONEOF(member_, ...) \
  ::muster::rpc::WireOneof(#member_, [](auto& value) -> auto& { return value.member_; }, __VA_ARGS__)
#define MUSTER_WIRE_CASE(Value, field_)                                                           \
  ::muster::rpc::WireCase(                                                                        \
      std::type_identity<Value>(), #field_, [](const auto& wire) { return wire.has_##field_(); }, \
      [](const auto& wire) -> auto& { return wire.field_(); },                                    \
      [](auto& wire) -> auto& { return *wire.mutable_##field_(); })
