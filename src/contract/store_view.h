// What a host tells a core about the cluster's store: the rows of a range and their changes, whether the store answers,
// and who leads. store::Mirror and store::Candidate make these events. And how a core reads anew: the effect Read,
// answered by the event ReadDone.
//
// A commit's CommitDone and the RowsChanged with its writes come in either order. After Conflict a core whose copy is
// as its conditions said waits for the RowsChanged of a key that it compared: it is under way.
#pragma once

#include <optional>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/effects.h"
#include "contract/store.h"

namespace muster::contract {

// Event: every row of the range at `revision`, in the order of the keys; RowsChanged follow. It comes at the start,
// just before each StoreBack, and when the store itself went back, to an older backup or to nothing: `revision` is
// lower then than what was told before.
struct RowsListed {
  Revision revision = 0;
  std::vector<KeyValue> rows;

  bool operator==(const RowsListed&) const = default;
  MUSTER_FIELDS(RowsListed, revision, rows)
};

// Event: with these changes, at least one, the copy of the range is the range at `revision`.
struct RowsChanged {
  Revision revision = 0;
  std::vector<Change> changes;  // in the order of their revisions

  bool operator==(const RowsChanged&) const = default;
  MUSTER_FIELDS(RowsChanged, revision, changes)
};

// Event: the store does not answer. The copy was known to be up to date at `since` for the last time.
struct StoreLost {
  MonoTime since;
  Status status;  // of the last request

  bool operator==(const StoreLost&) const = default;
  MUSTER_FIELDS(StoreLost, since, status)
};

// Event: the store answers again, and the copy is up to date: it is the range at `revision`.
struct StoreBack {
  Revision revision = 0;

  bool operator==(const StoreBack&) const = default;
  MUSTER_FIELDS(StoreBack, revision)
};

// Event: this process leads. It acts as the leader before `until` only; each renewal of its lease gives another Leading
// with a later `until`. Its writes are guarded with IfUnchanged(key.key, key.modified).
struct Leading {
  MonoTime until;
  KeyValue key;  // its own

  bool operator==(const Leading&) const = default;
  MUSTER_FIELDS(Leading, until, key)
};

// Event: this process does not lead.
struct Following {
  std::optional<KeyValue> leader;  // nothing: none is known

  bool operator==(const Following&) const = default;
  MUSTER_FIELDS(Following, leader)
};

// Effect: a fresh read of a range. The host answers with exactly one ReadDone while the core lives, after `timeout` at
// the latest. Effects after a Read do not wait for it.
struct Read {
  CallId id = 0;  // among the core's reads
  KeyRange range;
  Duration timeout{};

  MUSTER_FIELDS(Read, id, range, timeout)
};

// Event: the rows of the range at `revision`; or why they could not be read.
struct ReadDone {
  CallId id = 0;
  Status status;
  Revision revision = 0;
  std::vector<KeyValue> rows;

  MUSTER_FIELDS(ReadDone, id, status, revision, rows)
};

}  // namespace muster::contract
