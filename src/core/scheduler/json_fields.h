// JSON of plain structs, from their lists of fields (base/fields.h): what is added to a struct is stored without a line
// here. Names are written in camelCase.
//
// A field that has its default is left out, and one that is absent keeps what the struct was made with. The default of
// a field is that of the object around it, so that `MemberCount max_unavailable{1}` is left out at 1. Enums are written
// as their names, durations as "1h30m", times as RFC 3339 to the nanosecond, amounts as quantities.
//
// Pure.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/agent.h"
#include "core/scheduler/json_cursor.h"
#include "core/scheduler/json_writer.h"
#include "model/node.h"
#include "model/penalty.h"
#include "model/requirement.h"
#include "model/resources.h"
#include "model/workload.h"

namespace muster::scheduler {

// --- scalars with a text of their own

std::string JsonText(WallTime time);  // years 1970 to 2261; others become the nearest of them
std::string JsonText(Duration duration);
std::string JsonText(model::MemberCount count);
std::string JsonText(model::WorkloadType value);
std::string JsonText(model::DesiredState value);
std::string JsonText(model::WorkloadPhase value);
std::string JsonText(model::NodeStatus value);
std::string JsonText(model::RestartPolicy value);
std::string JsonText(model::PortProtocol value);
std::string JsonText(model::Operator value);
std::string JsonText(model::WhenUnsatisfiable value);
std::string JsonText(model::PenaltyBucket value);
std::string JsonText(model::WorkloadKind value);
std::string JsonText(contract::ActualState value);

// The zero time of other programs, in the year 1.
bool IsZeroTime(std::string_view text);

// The inverse. INVALID_ARGUMENT quotes the text.
Status ParseJsonText(std::string_view text, WallTime& out);  // 1970 for the zero time of other programs
Status ParseJsonText(std::string_view text, Duration& out);
Status ParseJsonText(std::string_view text, model::MemberCount& out);
Status ParseJsonText(std::string_view text, model::WorkloadType& out);
Status ParseJsonText(std::string_view text, model::DesiredState& out);
Status ParseJsonText(std::string_view text, model::WorkloadPhase& out);
Status ParseJsonText(std::string_view text, model::NodeStatus& out);
Status ParseJsonText(std::string_view text, model::RestartPolicy& out);
Status ParseJsonText(std::string_view text, model::PortProtocol& out);
Status ParseJsonText(std::string_view text, model::Operator& out);
Status ParseJsonText(std::string_view text, model::WhenUnsatisfiable& out);
Status ParseJsonText(std::string_view text, model::PenaltyBucket& out);
Status ParseJsonText(std::string_view text, model::WorkloadKind& out);
Status ParseJsonText(std::string_view text, contract::ActualState& out);

void WriteJson(JsonWriter& out, const model::Resources& resources);
void ReadJson(JsonCursor& in, model::Resources& resources);

// --- everything else

template <class T>
concept HasJsonText = requires(const T& value) { JsonText(value); };

// "agent_revision" -> "agentRevision", for every field of T.
template <HasFields T>
const std::vector<std::string>& JsonNames() {
  static const std::vector<std::string> kNames = T::TakeFields([](const auto&... field) {
    const auto camel = [](std::string_view name) {
      std::string text;
      for (size_t i = 0; i < name.size(); ++i) {
        const bool joint = name[i] == '_' && i + 1 < name.size();
        text.push_back(joint ? static_cast<char>(name[++i] - 'a' + 'A') : name[i]);
      }
      return text;
    };
    return std::vector<std::string>{camel(field.name)...};
  });
  return kNames;
}

template <class T>
void WriteJson(JsonWriter& out, const T& value);
template <class T>
void WriteJson(JsonWriter& out, const std::vector<T>& list);
template <class T>
void WriteJson(JsonWriter& out, const std::map<std::string, T>& map);
template <class T>
void ReadJson(JsonCursor& in, T& value);
template <class T>
void ReadJson(JsonCursor& in, std::vector<T>& list);
template <class T>
void ReadJson(JsonCursor& in, std::map<std::string, T>& map);
template <class T>
void ReadJson(JsonCursor& in, std::optional<T>& value);

template <HasFields T>
void WriteFields(JsonWriter& out, const T& value, const T& absent, const std::vector<std::string_view>& left_out = {});

// A key and the value, or nothing if it is `absent`.
template <class T>
void WriteField(JsonWriter& out, std::string_view key, const T& value, const T& absent) {
  if constexpr (requires {
                  *value;
                  value.has_value();
                }) {
    if (!value) return;
    out.Key(key);
    WriteJson(out, *value);
  } else if constexpr (requires { value.empty(); }) {
    if (value.empty()) return;
    out.Key(key);
    WriteJson(out, value);
  } else if constexpr (HasFields<T> && !HasJsonText<T>) {
    const JsonWriter::Mark before = out.mark();
    out.Key(key);
    out.BeginObject();
    const size_t empty = out.mark().size;
    WriteFields(out, value, absent);
    if (out.mark().size == empty) return out.Rollback(before);
    out.EndObject();
  } else {
    if (value == absent) return;
    out.Key(key);
    WriteJson(out, value);
  }
}

// The fields of `value` that are not those of `absent`, into the open object. `left_out` are names as in the struct.
template <HasFields T>
void WriteFields(JsonWriter& out, const T& value, const T& absent, const std::vector<std::string_view>& left_out) {
  static_assert(internal::NamedOnce<T>() && internal::NamesEveryMember<T>());
  const std::vector<std::string>& names = JsonNames<T>();
  T::TakeFields([&](const auto&... field) {
    size_t index = 0;
    const auto write = [&](const auto& one) {
      const std::string& name = names[index++];
      for (const std::string_view out_name : left_out) {
        if (out_name == one.name) return;
      }
      WriteField(out, name, value.*(one.member), absent.*(one.member));
    };
    (write(field), ...);
  });
}

template <class T>
void WriteJson(JsonWriter& out, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    out.Bool(value);
  } else if constexpr (std::signed_integral<T>) {
    out.Integer(value);
  } else if constexpr (std::unsigned_integral<T>) {
    out.Unsigned(value);
  } else if constexpr (std::same_as<T, std::string>) {
    out.Text(value);
  } else if constexpr (HasJsonText<T>) {
    out.Text(JsonText(value));
  } else {
    static const T kAbsent{};
    out.BeginObject();
    WriteFields(out, value, kAbsent);
    out.EndObject();
  }
}

template <class T>
void WriteJson(JsonWriter& out, const std::vector<T>& list) {
  out.BeginList();
  for (const T& item : list) WriteJson(out, item);
  out.EndList();
}

template <class T>
void WriteJson(JsonWriter& out, const std::map<std::string, T>& map) {
  out.BeginObject();
  for (const auto& [name, value] : map) {
    out.Key(name);
    WriteJson(out, value);
  }
  out.EndObject();
}

// Reads the field `key` of T; false if there is none.
template <HasFields T>
bool ReadField(JsonCursor& in, std::string_view key, T& value) {
  const std::vector<std::string>& names = JsonNames<T>();
  return T::TakeFields([&](const auto&... field) {
    size_t index = 0;
    const auto read = [&](const auto& one) {
      if (names[index++] != key) return false;
      ReadJson(in, value.*(one.member));
      return true;
    };
    return (read(field) || ...);
  });
}

template <class T>
void ReadJson(JsonCursor& in, T& value) {
  if constexpr (HasJsonText<T>) {
    std::string text;
    in.Read(text);
    if (!in.ok() || text.empty()) return;
    if (const Status status = ParseJsonText(text, value); !status.ok()) in.Fail(status.message());
  } else if constexpr (HasFields<T>) {
    in.Object([&](std::string_view key) {
      if (!ReadField(in, key, value)) in.Skip();
    });
  } else {
    in.Read(value);
  }
}

template <class T>
void ReadJson(JsonCursor& in, std::vector<T>& list) {
  list.clear();
  in.List([&] { ReadJson(in, list.emplace_back()); });
}

template <class T>
void ReadJson(JsonCursor& in, std::map<std::string, T>& map) {
  map.clear();
  in.Object([&](std::string_view key) { ReadJson(in, map[std::string(key)]); });
}

template <class T>
void ReadJson(JsonCursor& in, std::optional<T>& value) {
  if (in.Peek() == JsonCursor::Kind::kNull) return in.Skip();
  ReadJson(in, value.emplace());
}

}  // namespace muster::scheduler
