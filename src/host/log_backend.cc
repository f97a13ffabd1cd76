#include "host/log_backend.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "host/json_object.h"
#include "host/log_limit.h"
#include "host/log_writer.h"
#include "host/system_clock.h"

namespace muster::host {
namespace {

constexpr size_t kLongestValue = 200;  // bytes

spdlog::level::level_enum SpdlogLevel(log::Level level) {
  switch (level) {
    case log::Level::kDebug: return spdlog::level::debug;
    case log::Level::kInfo: return spdlog::level::info;
    case log::Level::kWarn: return spdlog::level::warn;
    case log::Level::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

bool Plain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte < 0x7F && c != '"';
  });
}

// What others said, shortened: a line is for reading.
std::string Shortened(std::string_view text) {
  if (text.size() <= kLongestValue) return std::string(text);
  size_t end = kLongestValue;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not within a character
  return fmt::format("{}... ({} bytes)", text.substr(0, end), text.size());
}

// The level as base/log.h spells it; the library's own names are longer than the column.
class LevelColumn final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& msg, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string_view name = msg.level == spdlog::level::debug  ? "debug"
                                  : msg.level == spdlog::level::info ? "info"
                                  : msg.level == spdlog::level::warn ? "warn"
                                                                     : "error";
    fmt::format_to(std::back_inserter(out), "{:<5}", name);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelColumn>(); }
};

log::Sink TextSink() {
  const auto colour = ColourWanted() ? spdlog::color_mode::automatic : spdlog::color_mode::never;
  auto logger = std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(colour));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelColumn>('*').set_pattern("%H:%M:%S.%e %^%*%$ %v");
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::trace);  // base/log.h filters
  return [logger](log::Level level, std::string_view message, std::span<const log::KeyValue> fields) {
    logger->log(SpdlogLevel(level), FormatText(message, fields));
  };
}

log::Sink JsonSink() {
  auto writer = std::make_shared<LogWriter>(STDERR_FILENO, [](uint64_t lost) {
    const log::KeyValue fields[] = {{"lines", lost}};
    return FormatJson(SystemClock().Read().wall, log::Level::kWarn, "log lines are lost", fields);
  });
  return [writer](log::Level level, std::string_view message, std::span<const log::KeyValue> fields) {
    writer->Write(FormatJson(SystemClock().Read().wall, level, message, fields));
  };
}

// Lines of one message and kind beyond their rate are left out, and counted in the next one that is not.
log::Sink Limited(log::Sink sink) {
  const auto limit = std::make_shared<LogLimit>();
  return [limit, sink = std::move(sink)](log::Level level, std::string_view message,
                                         std::span<const log::KeyValue> fields) {
    const std::optional<uint64_t> left_out = limit->Take(message, fields, SystemClock().Read().mono);
    if (!left_out) return;
    if (*left_out == 0) return sink(level, message, fields);
    std::vector<log::KeyValue> more(fields.begin(), fields.end());
    more.push_back({"left_out", *left_out});
    sink(level, message, more);
  };
}

}  // namespace

Result<log::Level> ParseLogLevel(std::string_view name) {
  for (const log::Level level : {log::Level::kDebug, log::Level::kInfo, log::Level::kWarn, log::Level::kError}) {
    if (name == log::LevelName(level)) return level;
  }
  return InvalidArgument(fmt::format("log level \"{}\" is unknown: use debug, info, warn or error", name));
}

bool ColourWanted() {
  const char* no_colour = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): nothing writes it
  return no_colour == nullptr || *no_colour == '\0';
}

void InstallLogBackend(log::Level lowest, LogForm form) {
  const bool text = form == LogForm::kText || (form == LogForm::kAuto && isatty(STDERR_FILENO) == 1);
  log::SetSink(Limited(text ? TextSink() : JsonSink()), lowest);
}

std::string FormatJson(WallTime when, log::Level level, std::string_view message,
                       std::span<const log::KeyValue> fields) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(when.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(micros);
  JsonObject line;
  line.Add("ts", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(static_cast<std::time_t>(seconds.count())),
                             (micros - seconds).count()));
  line.Add("level", log::LevelName(level));
  line.Add("msg", message);
  for (const auto& [key, value] : fields) {
    const bool taken = key == "ts" || key == "level" || key == "msg";
    const auto* text = std::get_if<std::string>(&value.data);
    line.Add(taken ? fmt::format("{}_", key) : std::string(key), text == nullptr ? value : Shortened(*text));
  }
  return line.Take();
}

std::string FormatText(std::string_view message, std::span<const log::KeyValue> fields) {
  std::string line(message);
  for (const auto& [key, value] : fields) {
    const std::string text = Shortened(value.ToString());
    line += fmt::format(" {}={}", key, Plain(text) ? text : JsonQuote(text));
  }
  return line;
}

}  // namespace muster::host
