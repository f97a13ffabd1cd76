#include "base/log.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <mutex>

namespace muster::log {
namespace {

void WritePlain(Level level, std::string_view message, std::span<const KeyValue> fields) {
  if (level < Level::kWarn) return;
  std::string line = fmt::format("{}: {}", LevelName(level), message);
  for (const KeyValue& field : fields) line += fmt::format(" {}={}", field.key, field.value.ToString());
  fmt::print(stderr, "{}\n", line);
}

struct Current {
  std::mutex mu;
  std::shared_ptr<const Sink> sink = std::make_shared<const Sink>(WritePlain);  // guarded by mu
  Level lowest = Level::kInfo;                                                  // guarded by mu
};

Current& Get() {
  static Current current;
  return current;
}

}  // namespace

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kDebug: return "debug";
    case Level::kInfo: return "info";
    case Level::kWarn: return "warn";
    case Level::kError: return "error";
  }
  return "error";
}

std::string Value::ToString() const {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, data);
}

void SetSink(Sink sink, Level lowest) {
  Current& current = Get();
  const std::lock_guard lock(current.mu);
  current.sink = std::make_shared<const Sink>(sink ? std::move(sink) : Sink(WritePlain));
  current.lowest = lowest;
}

void Write(Level level, Message message, std::span<const KeyValue> fields) {
  Current& current = Get();
  std::shared_ptr<const Sink> sink;
  {
    const std::lock_guard lock(current.mu);
    if (level < current.lowest) return;
    sink = current.sink;
  }
  (*sink)(level, message.text, fields);
}

}  // namespace muster::log
