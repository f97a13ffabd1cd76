// Random histories of a store, and what they prove.
//
// Two kinds. A *sequential* history is one caller's: every request is drawn from a seed and from the answers so far,
// and the answers are written down as text in which revisions and leases are counted from the beginning; so two stores
// that mean the same write the same text. A *concurrent* history is that of many callers and watches at once;
// CheckHistory judges it.
//
// Thread-safety: functions; a History is for one thread.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "store/blocking.h"
#include "store/store.h"

namespace muster::store {

// Draws `operations` requests on keys below `prefix`, which must be unused: commits with every kind of condition,
// ranges, leases that are granted and revoked, compactions, and watches from a revision of the past. No lease ends by
// time. The text is one line for each answer; the error is that of a store that fails.
Result<std::string> RunSequentialHistory(Blocking& store, const std::string& prefix, uint64_t seed, int operations);

// One request of a concurrent history, and what came of it.
struct Event {
  int client = 0;
  MonoTime called;
  MonoTime answered;
  Transaction transaction;  // of a commit
  KeyRange range;           // of a range
  std::variant<CommitOutcome, RangeReply> answer;
};

struct History {
  Revision begins = 0;                                 // the keys are not there at this revision
  std::vector<Event> events;                           // ranges that failed are left out
  std::vector<std::vector<contract::Change>> watched;  // by each watch, from begins + 1 on; all keys of the history
};

struct HistoryOptions {
  std::string prefix;  // unused
  uint64_t seed = 1;
  int clients = 8;
  int operations = 50;  // of each
  int keys = 4;
  int watches = 3;  // the later ones begin in the middle, from revision begins + 1
  Duration timeout = 10s;
};
// Runs one, with a thread for each client. The error is that of a store that cannot be read in the end, or of a watch
// that does not reach the end.
Result<History> RunConcurrentHistory(Store& store, const HistoryOptions& options, const Clock& clock);

// OK, or the first breach found:
//   - linearizable: put in the order of the revisions they report, every request sees exactly what the requests before
//     it wrote, and that order respects time: what was answered before another was called does not come after it. This
//     exhibits one order of the whole store, hence of every key;
//   - nothing is lost and nothing invented: each change of a watch is that of one commit, in one revision; a Committed
//     one is there, a Conflict or a refusal is not, an Unknown one is there once or not at all;
//   - watches: all give the same changes, in order of revisions, each once.
// Every write of the history puts a value that no other one puts.
Status CheckHistory(const History& history);

}  // namespace muster::store
