// Fields: how a plain struct says what it is made of, once, so that encoding, hashing and printing need no second list.
//
//   struct Add {
//     uint64_t request = 0;
//     int64_t amount = 0;
//     MUSTER_FIELDS(Add, request, amount)
//   };
//
// Every event, effect and snapshot that crosses a core's border has fields; codec.h does the rest. The list is in the
// order of the encoding. A list that leaves out a member, or names one twice, does not compile where the fields are
// used; MUSTER_SOME_FIELDS is for a struct that has members besides, derived from the listed ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

// The names a struct goes by in text: that of a private member is given without its last underscore. TakeFields(take)
// calls take with one Field per name, and Fields() is the tuple of them. Both are templates of their own struct, so
// that a file that includes the struct and encodes nothing pays for none of this; prefer the first, which compiles
// sooner.
#define MUSTER_SOME_FIELDS(Type, ...) MUSTER_FIELDS_OF(Type, false, __VA_ARGS__)
#define MUSTER_FIELDS(Type, ...) MUSTER_FIELDS_OF(Type, true, __VA_ARGS__)

#define MUSTER_FIELDS_OF(Type, every, ...)                                                \
  static constexpr std::string_view kTypeName = #Type;                                    \
  static constexpr bool kEveryField = every;                                              \
  template <class Self = Type, class Take>                                                \
  static constexpr auto TakeFields(Take&& take) {                                         \
    return take(__VA_OPT__(MUSTER_FIELDS_EXPAND(MUSTER_FIELDS_EACH(Self, __VA_ARGS__)))); \
  }                                                                                       \
  template <class Self = Type>                                                            \
  static constexpr auto Fields() {                                                        \
    return Self::TakeFields([](const auto&... field) { return std::tuple{field...}; });   \
  }

// Every rescan takes one more name: 85 names at the most.
#define MUSTER_FIELDS_EXPAND(...) MUSTER_FIELDS_E3(MUSTER_FIELDS_E3(MUSTER_FIELDS_E3(MUSTER_FIELDS_E3(__VA_ARGS__))))
#define MUSTER_FIELDS_E3(...) MUSTER_FIELDS_E2(MUSTER_FIELDS_E2(MUSTER_FIELDS_E2(MUSTER_FIELDS_E2(__VA_ARGS__))))
#define MUSTER_FIELDS_E2(...) MUSTER_FIELDS_E1(MUSTER_FIELDS_E1(MUSTER_FIELDS_E1(MUSTER_FIELDS_E1(__VA_ARGS__))))
#define MUSTER_FIELDS_E1(...) __VA_ARGS__
#define MUSTER_FIELDS_PARENS ()
#define MUSTER_FIELDS_EACH(Type, name, ...) \
  ::muster::Field{#name, &Type::name} __VA_OPT__(, MUSTER_FIELDS_AGAIN MUSTER_FIELDS_PARENS(Type, __VA_ARGS__))
#define MUSTER_FIELDS_AGAIN() MUSTER_FIELDS_EACH

namespace muster {

template <class Struct, class Member>
struct Field {
  constexpr Field(std::string_view as_written, Member Struct::* which)
      : name(as_written.ends_with('_') ? as_written.substr(0, as_written.size() - 1) : as_written), member(which) {}
  std::string_view name;
  Member Struct::* member;
};

template <class T>
concept HasFields = requires {
  T::kTypeName;
  T::kEveryField;
};

namespace internal {

// Stands for a value of any type; never called. The conversion has a body because clang refuses to name an undefined
// one for a type without linkage.
struct AnyMember {
  template <class T>
  operator T() const {  // NOLINT(google-explicit-constructor)
    std::unreachable();
  }
};

template <class T, size_t... I>
constexpr bool TakesMembers(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyMember{})...}; };
}

template <HasFields T>
constexpr bool NamedOnce() {
  return T::TakeFields([](const auto&... field) {
    std::array<std::string_view, sizeof...(field)> names{field.name...};
    std::ranges::sort(names);
    return std::ranges::adjacent_find(names) == names.end();
  });
}

// As many names as the aggregate has members: it can be made from that many values and not from one more. Classes with
// private members list what they are made of without this check.
template <HasFields T>
constexpr bool NamesEveryMember() {
  if constexpr (!T::kEveryField || !std::is_aggregate_v<T>) {
    return true;
  } else {
    constexpr size_t kNames = T::TakeFields([](const auto&... field) { return sizeof...(field); });
    return TakesMembers<T>(std::make_index_sequence<kNames>()) &&
           !TakesMembers<T>(std::make_index_sequence<kNames + 1>());
  }
}

}  // namespace internal

// Calls fn(name, member) for every field of `value`, in order.
template <HasFields T, class Value, class Fn>
void ForEachField(Value& value, Fn&& fn) {
  static_assert(internal::NamedOnce<T>(), "MUSTER_FIELDS names a member twice");
  static_assert(internal::NamesEveryMember<T>(), "MUSTER_FIELDS leaves out a member");
  T::TakeFields([&](const auto&... field) { (fn(field.name, value.*(field.member)), ...); });
}

}  // namespace muster
