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

// The names a struct goes by in text: that of a private member is given without its last underscore.
#define MUSTER_SOME_FIELDS(Type, ...)                                                           \
  static constexpr std::string_view kTypeName = #Type;                                          \
  static constexpr bool kSomeFields = true;                                                     \
  static constexpr auto Fields() {                                                              \
    return std::tuple{__VA_OPT__(MUSTER_FIELDS_EXPAND(MUSTER_FIELDS_EACH(Type, __VA_ARGS__)))}; \
  }
#define MUSTER_FIELDS(Type, ...)                                                                \
  static constexpr std::string_view kTypeName = #Type;                                          \
  static constexpr auto Fields() {                                                              \
    return std::tuple{__VA_OPT__(MUSTER_FIELDS_EXPAND(MUSTER_FIELDS_EACH(Type, __VA_ARGS__)))}; \
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
  T::Fields();
  T::kTypeName;
};

namespace internal {

struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): stands for a value of any type; never defined
};

// How many members an aggregate has.
template <class T, class... Members>
constexpr size_t CountMembers() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; }) {
    return CountMembers<T, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}

template <HasFields T>
constexpr bool NamedOnce() {
  return std::apply(
      [](const auto&... field) {
        std::array<std::string_view, sizeof...(field)> names{field.name...};
        std::ranges::sort(names);
        return std::ranges::adjacent_find(names) == names.end();
      },
      T::Fields());
}

// Classes with private members list what they are made of without this check.
template <HasFields T>
constexpr bool NamesEveryMember() {
  if constexpr (requires { T::kSomeFields; } || !std::is_aggregate_v<T>) {
    return true;
  } else {
    return CountMembers<T>() == std::tuple_size_v<decltype(T::Fields())>;
  }
}

}  // namespace internal

// Calls fn(name, member) for every field of `value`, in order.
template <HasFields T, class Value, class Fn>
void ForEachField(Value& value, Fn&& fn) {
  static_assert(internal::NamedOnce<T>(), "MUSTER_FIELDS names a member twice");
  static_assert(internal::NamesEveryMember<T>(), "MUSTER_FIELDS leaves out a member");
  std::apply([&](const auto&... field) { (fn(field.name, value.*(field.member)), ...); }, T::Fields());
}

}  // namespace muster
