// Weight: about how much memory a value with Fields takes, and what in it is beyond a bound. For what others send,
// which is to be neither kept nor sent on without a bound.
//
// Many small parts weigh more than their bytes: 90,000 variables without a value are less than a megabyte in a record
// and 27 as a message. The weight of a value is at least the bytes that it has as a message, and about what the message
// takes once it is read.
//
// Thread-safety: functions without state.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/codec.h"
#include "base/copy_on_write.h"
#include "base/fields.h"

namespace muster {

namespace internal {

inline constexpr size_t kNumberWeight = 16;
inline constexpr size_t kTextWeight = 64;
inline constexpr size_t kPartWeight = 32;    // a list, or a struct
inline constexpr size_t kEntryWeight = 160;  // of a map

template <class T>
struct IsCopyOnWrite : std::false_type {};
template <class T>
struct IsCopyOnWrite<CopyOnWrite<T>> : std::true_type {};

// A member's name as it is written in files: "secret_env" is secretEnv.
std::string NameInFiles(std::string_view member);
// A key of a map as a part of a path: quoted, and cut where it is long.
std::string KeyInPath(std::string_view key);

}  // namespace internal

template <class T>
size_t WeightOf(const T& value) {
  if constexpr (HasFields<T>) {
    size_t sum = internal::kPartWeight;
    ForEachField<T>(value, [&](std::string_view, const auto& field) { sum += WeightOf(field); });
    return sum;
  } else if constexpr (internal::IsCopyOnWrite<T>::value) {
    return WeightOf(*value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return internal::kTextWeight + value.size();
  } else if constexpr (codec::internal::Variant<T>) {
    return std::visit([](const auto& alternative) { return WeightOf(alternative); }, value);
  } else if constexpr (codec::internal::Optional<T>) {
    return internal::kNumberWeight + (value ? WeightOf(*value) : 0);
  } else if constexpr (codec::internal::IsPair<T>::value) {
    return internal::kEntryWeight + WeightOf(value.first) + WeightOf(value.second);
  } else if constexpr (codec::internal::Iterable<T>) {
    size_t sum = internal::kPartWeight;
    for (const auto& item : value) sum += WeightOf(item);
    return sum;
  } else {
    return internal::kNumberWeight;
  }
}

struct MostOf {
  size_t entries = 0;  // of each list and map
  size_t bytes = 0;    // of each text
};

// The first list or text within the value that is beyond a bound, with its path: "env: 1001 entries are too many; at
// most 1000 are taken". Empty: there is none.
template <class T>
std::string Beyond(const MostOf& most, std::string_view path, const T& value) {
  std::string problem;
  const auto within = [&](const auto& part, const auto& path_of) {
    if (!problem.empty()) return;
    problem = Beyond(most, "", part);
    if (!problem.empty()) problem = path_of() + problem;
  };
  if constexpr (HasFields<T>) {
    ForEachField<T>(value, [&](std::string_view name, const auto& field) {
      constexpr bool kBody = internal::IsCopyOnWrite<std::remove_cvref_t<decltype(field)>>::value;
      within(field, [&] { return kBody ? "" : "." + internal::NameInFiles(name); });
    });
  } else if constexpr (internal::IsCopyOnWrite<T>::value) {
    return Beyond(most, path, *value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (value.size() > most.bytes) {
      problem = fmt::format(": {} bytes are too many; at most {} are taken", value.size(), most.bytes);
    }
  } else if constexpr (codec::internal::Variant<T>) {
    std::visit([&](const auto& alternative) { within(alternative, [] { return ""; }); }, value);
  } else if constexpr (codec::internal::Optional<T>) {
    if (value) within(*value, [] { return ""; });
  } else if constexpr (codec::internal::Iterable<T>) {
    if (value.size() > most.entries) {
      problem = fmt::format(": {} entries are too many; at most {} are taken", value.size(), most.entries);
    }
    size_t index = 0;
    for (const auto& item : value) {
      if constexpr (codec::internal::IsPair<std::remove_cvref_t<decltype(item)>>::value) {
        const auto path_of = [&] { return "." + internal::KeyInPath(item.first); };
        within(item.first, path_of);
        within(item.second, path_of);
      } else {
        within(item, [&] { return fmt::format("[{}]", index); });
      }
      ++index;
    }
  }
  if (problem.empty() || path.empty()) return problem;
  return std::string(path) + problem;
}

}  // namespace muster
