// Fields: how a plain struct says what it is made of, once, so that encoding, hashing and printing need no second list.
//
//   struct Add {
//     uint64_t request = 0;
//     int64_t amount = 0;
//     static constexpr std::string_view kTypeName = "Add";
//     static constexpr auto Fields() {
//       return std::tuple{Field{"request", &Add::request}, Field{"amount", &Add::amount}};
//     }
//   };
//
// Every event, effect and snapshot that crosses a core's border has Fields; codec.h does the rest.
#pragma once

#include <string_view>
#include <tuple>

namespace muster {

template <class Struct, class Member>
struct Field {
  std::string_view name;
  Member Struct::* member;
};
template <class Struct, class Member>
Field(std::string_view, Member Struct::*) -> Field<Struct, Member>;
template <class Struct, class Member>
Field(const char*, Member Struct::*) -> Field<Struct, Member>;

template <class T>
concept HasFields = requires {
  T::Fields();
  T::kTypeName;
};

// Calls fn(name, member) for every field of `value`, in order.
template <HasFields T, class Value, class Fn>
void ForEachField(Value& value, Fn&& fn) {
  std::apply([&](const auto&... field) { (fn(field.name, value.*(field.member)), ...); }, T::Fields());
}

}  // namespace muster
