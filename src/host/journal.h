// Journal: what a core saw, step by step, so that it can be stepped through again (replay.h).
//
// A directory of numbered segments, private to its user. Each begins with the core's whole state and holds the steps
// after it, so any segment can be replayed without the ones before. Writing is bounded: a segment is closed at
// `segment_bytes`, and only the newest `keep_segments` stay. A core whose state is larger than half a segment gets
// longer ones, as long again as its state, and as many fewer: all segments together stay below their product, unless
// one alone is larger. A record is framed by its length and a hash; a torn end (the process died) is recognised and
// everything before it counts.
//
// A step is two records. Its event reaches the operating system before the core sees it, so the step that kills the
// process, inside the core or while its effects are carried out, is in the journal. The digest of its effects follows.
//
// A journal is evidence, not state: it is flushed to the operating system, not synced, and when it cannot be written
// the core runs on; status() says so. One process at a time writes to a directory; anyone may read.
//
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "host/data_dir.h"

namespace muster::host {

struct JournalOptions {
  size_t segment_bytes = 64u << 20;
  size_t keep_segments = 8;

  // As many segments as usual, which together stay below so much.
  static JournalOptions OfBytes(uint64_t bytes) { return {.segment_bytes = bytes / JournalOptions().keep_segments}; }
};

class JournalWriter {
 public:
  // Creates the directory if need be and goes on after the segments that are there. FAILED_PRECONDITION if another
  // process writes there or the directory cannot be used; the message names it as --journal.
  static Result<std::unique_ptr<JournalWriter>> Open(const std::string& directory, std::string core_name,
                                                     JournalOptions options = {});

  // Begins a segment from this state of the core. Must come before the first step, and not within one.
  void StartSegment(std::string_view core_state);
  // The core is about to step. Flushes.
  void BeginStep(Now now, std::string_view event);
  // It came back. Written with the next flush.
  void EndStep(uint64_t effects_digest);
  // True when the segment has reached its size: the owner then calls StartSegment.
  bool full() const { return segment_size_ >= SegmentBytes(); }
  void Flush();
  // The first failure; from then on nothing is written.
  const Status& status() const { return status_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  JournalWriter(std::unique_ptr<DataDir> lock, std::string core_name, JournalOptions options);
  // Of the current segment, when it is full.
  size_t SegmentBytes() const { return std::max(options_.segment_bytes, 2 * head_size_); }
  void WriteFrame(std::string_view payload);
  void DropOldSegments();
  void Fail(std::string_view what);

  const std::unique_ptr<DataDir> lock_;
  const std::string directory_;
  const std::string core_name_;
  const JournalOptions options_;
  uint64_t segment_ = 0;  // number of the current segment, from 1
  size_t segment_size_ = 0;
  size_t head_size_ = 0;  // of it, the core's state
  std::unique_ptr<std::FILE, CloseFile> file_;
  Status status_;
};

struct JournalStep {
  Now now;
  std::string event;
  std::optional<uint64_t> effects_digest;  // none: the process died before the step's end was written
};

struct JournalSegment {
  std::string path;
  std::string core_name;
  std::string core_state;
};

// Paths of the segments in a directory, oldest first. NOT_FOUND if there is none.
Result<std::vector<std::string>> ListSegments(const std::string& directory);

// Name of the core whose journal this is, from its oldest segment.
Result<std::string> JournalCoreName(const std::string& directory);

struct SegmentEnd {
  bool torn = false;  // the file ends in the middle of a record
};

// Reads one segment: first `begin` with its head, then `step` for each step until one returns an error; only the last
// one may lack its digest. A segment cut short before its head is torn and holds nothing. DATA_LOSS if a record in the
// middle is damaged.
Result<SegmentEnd> ReadSegment(const std::string& path, const std::function<Status(const JournalSegment&)>& begin,
                               const std::function<Status(const JournalStep&)>& step);

}  // namespace muster::host
