// ChangeLog: which machines changed in which order, and the cursors that walk it.
//
// Every change of a machine gets the next number. The log holds, for each machine, the number of its newest change; a
// walk goes up the numbers, so a machine that changes while somebody walks moves ahead of him and is met there: nothing
// is skipped, and what was met twice had changed between.
//
// A cursor says which numbers are still to be walked: some closed ranges, then everything above one number. That is
// enough for "what changed since", for the rest of a capped page, and for a walk that began in the middle. Outside it
// is bytes with a checksum; what is damaged, of another lineage, or ahead of the log is not a cursor.
//
// Invariants: (1) numbers in the log grow; (2) each machine has one live entry, that of its newest number; (3) dead
// entries never outnumber the live by more than a constant. Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"

namespace muster::provider {

// Numbers above `after`, up to and including `upto`.
struct Range {
  uint64_t after = 0;
  uint64_t upto = 0;

  bool operator==(const Range&) const = default;
  MUSTER_FIELDS(Range, after, upto)
};

struct Cursor {
  uint64_t lineage = 0;       // of the state the numbers belong to
  std::vector<Range> ranges;  // to be walked first, in this order
  uint64_t open_after = 0;    // then everything above this

  bool operator==(const Cursor&) const = default;
  MUSTER_FIELDS(Cursor, lineage, ranges, open_after)
};

std::string ToRevision(const Cursor& cursor);
// Nothing unless these are the bytes of a cursor of this lineage with no number above `newest`.
std::optional<Cursor> FromRevision(std::string_view revision, uint64_t lineage, uint64_t newest);

class ChangeLog {
 public:
  struct Entry {
    uint64_t number = 0;
    uint32_t machine = 0;
  };

  // Machine `machine` changed; `number` is above all before it.
  void Append(uint32_t machine, uint64_t number);
  uint64_t newest() const { return entries_.empty() ? 0 : entries_.back().number; }
  // The live number of a machine; 0 if it has none.
  uint64_t NumberOf(uint32_t machine) const { return machine < live_.size() ? live_[machine] : 0; }

  // Calls visit(machine) for every live entry the cursor has still to walk, until `visit` returns false, which means
  // that this machine was not taken. Returns where the walk stands: the rest, or everything above the newest number.
  template <class Visit>
  Cursor Walk(Cursor cursor, Visit&& visit) const {
    cursor.ranges.push_back({.after = cursor.open_after, .upto = newest()});
    for (size_t i = 0; i < cursor.ranges.size(); ++i) {
      const Range range = cursor.ranges[i];
      for (size_t at = FirstAbove(range.after); at < entries_.size() && entries_[at].number <= range.upto; ++at) {
        const Entry& entry = entries_[at];
        if (live_[entry.machine] != entry.number || visit(entry.machine)) continue;
        cursor.ranges.erase(cursor.ranges.begin(), cursor.ranges.begin() + static_cast<ptrdiff_t>(i));
        cursor.ranges.front().after = entry.number - 1;
        return Open(std::move(cursor));
      }
    }
    cursor.ranges.clear();
    cursor.open_after = newest();
    return cursor;
  }

  void CheckInvariants() const;

 private:
  // The last range reaches up to the newest number, and from there on everything is still to come.
  static Cursor Open(Cursor cursor) {
    cursor.open_after = cursor.ranges.back().after;
    cursor.ranges.pop_back();
    return cursor;
  }
  size_t FirstAbove(uint64_t number) const;
  void DropDead();

  std::vector<Entry> entries_;
  std::vector<uint64_t> live_;  // newest number of each machine
  size_t machines_ = 0;         // with a live entry
};

}  // namespace muster::provider
