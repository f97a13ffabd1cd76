// The log backend: what base/log.h writes reaches standard error, one line per message.
//
// For people (a terminal):  12:04:07.251 info  session replaced cluster=c-1 epoch=7
// For machines (elsewhere): {"ts":"2025-03-01T12:04:07.251043Z","level":"info","msg":"session replaced",...}
//
// Text values with blanks or quotes are quoted in the form for people. In JSON a field called ts, level or msg gets an
// underscore at its end, so that no key occurs twice.
//
// A text value is cut at 200 bytes, with its length. Of one message 1,000 lines are written at once and 100 a second
// from then on; the first that is written after others were left out says how many (`left_out`). Orders are never left
// out.
//
// Lines for machines never make a caller wait: what standard error does not take is kept, and lost beyond a limit
// (log_writer.h). A terminal that is stopped stops the program.
//
// Thread-safety: the sinks may be called from any thread; lines do not mix.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

namespace muster::host {

enum class LogForm : uint8_t {
  kAuto,  // kText on a terminal, kJson elsewhere
  kText,
  kJson,
};

// "debug", "info", "warn" or "error"; the error names the four.
Result<log::Level> ParseLogLevel(std::string_view name);

// Whether colours may be used on a terminal: unless NO_COLOR is set, to anything but the empty string, in the
// environment.
bool ColourWanted();

// Sends everything from `lowest` upwards to standard error. Colours appear on a terminal if they are wanted.
void InstallLogBackend(log::Level lowest, LogForm form = LogForm::kAuto);

// The two forms, without a line end. FormatText leaves time and level to the sink, which colours them.
std::string FormatJson(WallTime when, log::Level level, std::string_view message,
                       std::span<const log::KeyValue> fields);
std::string FormatText(std::string_view message, std::span<const log::KeyValue> fields);

}  // namespace muster::host
