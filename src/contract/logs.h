// What a workload wrote, as whoever asks for it and the agent say it. muster.v1.Agent/Logs and muster.v1.Cluster/Logs
// are these on the wire (docs/wire.md).
//
// Thread-safety: values. A port is asked from any thread, many times at once; a sink is written by one thread at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"

namespace muster::contract {

enum class LogStream : uint8_t { kStdout, kStderr };

struct ReadLogs {
  std::string workload;
  bool follow = false;            // until the workload is deleted or the reader ends the call
  std::optional<int32_t> tail;    // the last lines only; absent: all that is kept
  std::optional<WallTime> since;  // nothing older

  MUSTER_FIELDS(ReadLogs, workload, follow, tail, since)
};

struct LogChunk {
  LogStream stream = LogStream::kStdout;
  std::string data;  // whole lines as a rule; a long line may come in parts
  WallTime at;       // when it was written, as far as that is known

  bool operator==(const LogChunk&) const = default;
  MUSTER_FIELDS(LogChunk, stream, data, at)
};

// Where the answer to one ReadLogs goes.
class LogsSink {
 public:
  virtual ~LogsSink() = default;
  // False once the reader is gone: the port stops. While much waits for a slow reader, the call waits too: a port that
  // reads files does so on a thread of its own.
  virtual bool Write(LogChunk chunk) = 0;
  // The same for a port that must not wait: `next` gets the answer when there is room for more, at once or later.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): a port that waits keeps it
  virtual void WriteThen(LogChunk chunk, std::function<void(bool)> next) { next(Write(std::move(chunk))); }
  // Whether Write would return false; for a port that follows and has nothing to write.
  virtual bool Gone() const = 0;
  // Calls `gone` once the reader is gone, at once if it is; not after End. For a port that has nothing to poll with.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): a port that waits keeps it
  virtual void OnGone(std::function<void()> gone) { static_cast<void>(gone); }
  // Last, once: OK, NOT_FOUND if the node does not have the workload, or why it cannot be read.
  virtual void End(Status status) = 0;
};

class LogsPort {
 public:
  virtual ~LogsPort() = default;
  // Returns at once, or after everything was written. The port ends the sink exactly once and then lets go of it.
  virtual void Read(ReadLogs request, std::shared_ptr<LogsSink> sink) = 0;
};

}  // namespace muster::contract
