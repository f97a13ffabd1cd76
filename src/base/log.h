// Log: one shape for every line, a constant message followed by key=value.
//
//   log::Info("session replaced", {{"cluster", id}, {"epoch", epoch}});
//
// The message must be a literal, so that lines can be counted and searched; what varies goes into fields. Cores never
// log: they emit reasons. The backend (host/log_backend.h) prints for people on a terminal and as JSON elsewhere;
// without one, warnings and errors go to standard error as plain text.
//
// Thread-safety: all functions may be called from any thread. SetSink is for program start and tests.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace muster::log {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError };
std::string_view LevelName(Level level);  // "debug", "info", "warn", "error"

struct Message {
  consteval Message(const char* literal) : text(literal) {}  // NOLINT(google-explicit-constructor): reads as a call
  std::string_view text;
};

struct Value {
  Value(bool v) : data(v) {}                                             // NOLINT(google-explicit-constructor)
  Value(double v) : data(v) {}                                           // NOLINT(google-explicit-constructor)
  Value(std::signed_integral auto v) : data(static_cast<int64_t>(v)) {}  // NOLINT(google-explicit-constructor)
  Value(std::unsigned_integral auto v)                                   // NOLINT(google-explicit-constructor)
    requires(!std::same_as<decltype(v), bool>)
      : data(static_cast<uint64_t>(v)) {}
  Value(const char* v) : data(std::string(v)) {}       // NOLINT(google-explicit-constructor)
  Value(std::string_view v) : data(std::string(v)) {}  // NOLINT(google-explicit-constructor)
  Value(std::string v) : data(std::move(v)) {}         // NOLINT(google-explicit-constructor)

  std::string ToString() const;
  std::variant<bool, int64_t, uint64_t, double, std::string> data;
};

struct KeyValue {
  std::string_view key;
  Value value;
};

using Sink = std::function<void(Level, std::string_view message, std::span<const KeyValue>)>;

// Replaces the sink and the lowest level that reaches it. An empty sink restores the default one.
void SetSink(Sink sink, Level lowest = Level::kInfo);
void Write(Level level, Message message, std::span<const KeyValue> fields);
inline void Write(Level level, Message message, std::initializer_list<KeyValue> fields) {
  Write(level, message, std::span(fields.begin(), fields.size()));
}

inline void Debug(Message message, std::initializer_list<KeyValue> fields = {}) {
  Write(Level::kDebug, message, fields);
}
inline void Info(Message message, std::initializer_list<KeyValue> fields = {}) { Write(Level::kInfo, message, fields); }
inline void Warn(Message message, std::initializer_list<KeyValue> fields = {}) { Write(Level::kWarn, message, fields); }
// Named Err: muster::Error makes a failed Result.
inline void Err(Message message, std::initializer_list<KeyValue> fields = {}) { Write(Level::kError, message, fields); }

}  // namespace muster::log
