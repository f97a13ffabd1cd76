// Codec: turns values with Fields (fields.h) into bytes and back, and into text for people.
//
// One encoding serves the journal, a core's persisted rows and effect hashes: integers as LEB128 varints (signed ones
// zigzag), strings and containers with a length before them, variants with their alternative's number before them. It
// is not self-describing: whoever stores it stores a version too.
//
// Decoding trusts nothing: any bytes give a value or `false`, never undefined behaviour or an allocation larger than
// the input could justify. Every value has one spelling: bytes that decode are the bytes that encode it.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/hash.h"
#include "base/index.h"

namespace muster::codec {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void Varint(uint64_t value);
  void Bytes(std::string_view bytes);

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool Varint(uint64_t& value);
  bool Bytes(std::string_view& bytes);
  // A count of items that each take at least one byte.
  bool Count(size_t& count);
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

namespace internal {

template <class T>
struct IsVariant : std::false_type {};
template <class... T>
struct IsVariant<std::variant<T...>> : std::true_type {};

template <class T>
concept Variant = IsVariant<T>::value;
template <class T>
concept Optional = requires(T t) {
  t.has_value();
  t.reset();
  typename T::value_type;
};
template <class T>
concept TimePoint = requires(T t) {
  t.time_since_epoch();
  typename T::clock;
};
template <class T>
concept ChronoDuration = requires(T t) {
  t.count();
  typename T::period;
};
template <class T>
concept StrongIndex = requires(T t) {
  { t.value() } -> std::same_as<uint32_t>;
  t.valid();
};
template <class T>
concept Map = requires {
  typename T::mapped_type;
  typename T::key_compare;
};
template <class T>
concept Set = requires {
  typename T::key_type;
  typename T::key_compare;
} && !Map<T>;
template <class T>
concept Sequence =
    requires(T t) { t.push_back(std::declval<typename T::value_type>()); } && !std::same_as<T, std::string>;
template <class T>
concept Iterable = requires(const T t) {
  t.begin();
  t.size();
};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};

}  // namespace internal

template <class T>
void Encode(Writer& writer, const T& value) {
  if constexpr (HasFields<T>) {
    ForEachField<T>(value, [&](std::string_view, const auto& field) { Encode(writer, field); });
  } else if constexpr (std::is_enum_v<T>) {
    Encode(writer, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::same_as<T, bool> || std::unsigned_integral<T>) {
    writer.Varint(value);
  } else if constexpr (std::signed_integral<T>) {
    const auto wide = static_cast<int64_t>(value);
    writer.Varint((static_cast<uint64_t>(wide) << 1) ^ static_cast<uint64_t>(wide >> 63));
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
    writer.Bytes(value);
  } else if constexpr (std::same_as<T, std::monostate>) {
  } else if constexpr (internal::ChronoDuration<T>) {
    Encode(writer, value.count());
  } else if constexpr (internal::TimePoint<T>) {
    Encode(writer, value.time_since_epoch().count());
  } else if constexpr (internal::StrongIndex<T>) {
    writer.Varint(value.value());
  } else if constexpr (internal::Variant<T>) {
    writer.Varint(value.index());
    std::visit([&](const auto& alternative) { Encode(writer, alternative); }, value);
  } else if constexpr (internal::Optional<T>) {
    writer.Varint(value.has_value());
    if (value) Encode(writer, *value);
  } else if constexpr (internal::IsPair<T>::value) {
    Encode(writer, value.first);
    Encode(writer, value.second);
  } else if constexpr (internal::Iterable<T>) {
    writer.Varint(value.size());
    for (const auto& item : value) Encode(writer, item);
  } else {
    static_assert(!sizeof(T), "give this type Fields()");
  }
}

template <class T>
std::string ToBytes(const T& value) {
  std::string bytes;
  Writer writer(bytes);
  Encode(writer, value);
  return bytes;
}

template <class T>
uint64_t Digest(const T& value) {
  return Hash(ToBytes(value));
}

template <class T>
bool Decode(Reader& reader, T& value);

namespace internal {

template <class T>
bool DecodeInteger(Reader& reader, T& value) {
  uint64_t raw = 0;
  if (!reader.Varint(raw)) return false;
  if constexpr (std::same_as<T, bool>) {
    if (raw > 1) return false;
    value = raw != 0;
  } else if constexpr (std::unsigned_integral<T>) {
    if (raw > std::numeric_limits<T>::max()) return false;
    value = static_cast<T>(raw);
  } else {
    const auto wide = static_cast<int64_t>(raw >> 1) ^ -static_cast<int64_t>(raw & 1);
    if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) return false;
    value = static_cast<T>(wide);
  }
  return true;
}

template <size_t I, class V>
bool DecodeAlternative(Reader& reader, size_t index, V& value) {
  if constexpr (I < std::variant_size_v<V>) {
    if (index == I) return Decode(reader, value.template emplace<I>());
    return DecodeAlternative<I + 1>(reader, index, value);
  } else {
    return false;
  }
}

// Keys in any other order than the encoder's would be a second spelling of the same container.
template <class T>
bool DecodeContainer(Reader& reader, T& value) {
  size_t count = 0;
  if (!reader.Count(count)) return false;
  value.clear();
  for (size_t i = 0; i < count; ++i) {
    if constexpr (Map<T>) {
      typename T::key_type key{};
      typename T::mapped_type mapped{};
      if (!Decode(reader, key) || !Decode(reader, mapped)) return false;
      if (!value.empty() && !value.key_comp()(value.rbegin()->first, key)) return false;
      value.emplace_hint(value.end(), std::move(key), std::move(mapped));
    } else if constexpr (Set<T>) {
      typename T::key_type key{};
      if (!Decode(reader, key)) return false;
      if (!value.empty() && !value.key_comp()(*value.rbegin(), key)) return false;
      value.emplace_hint(value.end(), std::move(key));
    } else {
      typename T::value_type item{};
      if (!Decode(reader, item)) return false;
      value.push_back(std::move(item));
    }
  }
  return true;
}

}  // namespace internal

template <class T>
bool Decode(Reader& reader, T& value) {
  if constexpr (HasFields<T>) {
    bool ok = true;
    ForEachField<T>(value, [&](std::string_view, auto& field) { ok = ok && Decode(reader, field); });
    return ok;
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> raw{};
    if (!Decode(reader, raw)) return false;
    value = static_cast<T>(raw);
    return true;
  } else if constexpr (std::integral<T>) {
    return internal::DecodeInteger(reader, value);
  } else if constexpr (std::same_as<T, std::string>) {
    std::string_view bytes;
    if (!reader.Bytes(bytes)) return false;
    value = bytes;
    return true;
  } else if constexpr (std::same_as<T, std::monostate>) {
    return true;
  } else if constexpr (internal::ChronoDuration<T>) {
    typename T::rep count{};
    if (!Decode(reader, count)) return false;
    value = T(count);
    return true;
  } else if constexpr (internal::TimePoint<T>) {
    typename T::duration since{};
    if (!Decode(reader, since)) return false;
    value = T(since);
    return true;
  } else if constexpr (internal::StrongIndex<T>) {
    uint32_t raw = 0;
    if (!Decode(reader, raw)) return false;
    value = T(raw);
    return true;
  } else if constexpr (internal::Variant<T>) {
    size_t index = 0;
    uint64_t raw = 0;
    if (!reader.Varint(raw)) return false;
    index = static_cast<size_t>(raw);
    return internal::DecodeAlternative<0>(reader, index, value);
  } else if constexpr (internal::Optional<T>) {
    bool present = false;
    if (!Decode(reader, present)) return false;
    if (!present) {
      value.reset();
      return true;
    }
    return Decode(reader, value.emplace());
  } else if constexpr (internal::IsPair<T>::value) {
    return Decode(reader, value.first) && Decode(reader, value.second);
  } else if constexpr (internal::Map<T> || internal::Set<T> || internal::Sequence<T>) {
    return internal::DecodeContainer(reader, value);
  } else {
    static_assert(!sizeof(T), "give this type Fields()");
  }
}

// The value all of `bytes` stands for, or nothing if they are not one.
template <class T>
std::optional<T> FromBytes(std::string_view bytes) {
  std::optional<T> value(std::in_place);
  Reader reader(bytes);
  if (!Decode(reader, *value) || !reader.done()) value.reset();
  return value;
}

// Printable form: strings that are not plain text are quoted and escaped.
std::string Quote(std::string_view text);

// "Add{request=7, amount=1}".
template <class T>
std::string Describe(const T& value) {
  if constexpr (HasFields<T>) {
    std::string text = fmt::format("{}{{", T::kTypeName);
    bool first = true;
    ForEachField<T>(value, [&](std::string_view name, const auto& field) {
      text += fmt::format("{}{}={}", first ? "" : ", ", name, Describe(field));
      first = false;
    });
    return text + "}";
  } else if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::integral<T>) {
    return fmt::format("{}", value);
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
    return Quote(value);
  } else if constexpr (std::same_as<T, std::monostate>) {
    return "none";
  } else if constexpr (internal::ChronoDuration<T>) {
    return fmt::format("{}s", std::chrono::duration<double>(value).count());
  } else if constexpr (internal::TimePoint<T>) {
    return Describe(value.time_since_epoch());
  } else if constexpr (internal::StrongIndex<T>) {
    return value.valid() ? fmt::format("#{}", value.value()) : "#none";
  } else if constexpr (internal::Variant<T>) {
    return std::visit([](const auto& alternative) { return Describe(alternative); }, value);
  } else if constexpr (internal::Optional<T>) {
    return value ? Describe(*value) : "none";
  } else if constexpr (internal::IsPair<T>::value) {
    return Describe(value.first) + ": " + Describe(value.second);
  } else {
    std::string text = "[";
    for (const auto& item : value) text += (text.size() > 1 ? ", " : "") + Describe(item);
    return text + "]";
  }
}

}  // namespace muster::codec
