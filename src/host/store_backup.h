// Backup: the rows of a store at one revision as text, which any store can be restored from.
//
// JSON lines: a head with the format and the revision, one line for each row, and an end with the number of rows and
// their digest, so that a file that was cut short or changed is refused as a whole. Text that is not UTF-8, or has a
// zero byte, is written in hexadecimal. Rows that live by a lease are left out: a lease does not outlive its store.
//
// Thread-safety: functions.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace muster::host {

struct Backup {
  store::Revision revision = 0;
  std::vector<store::KeyValue> rows;  // key and value; in the order of their keys
};

// A restored store begins this far above the revision of its backup, so that no revision that was given after the
// backup is given a second time.
constexpr store::Revision kRestoreGap = 1'000'000;

Backup MakeBackup(const store::RangeReply& everything);
std::string ToText(const Backup& backup);
// INVALID_ARGUMENT naming `source` and the line if it is no backup, DATA_LOSS if it is not whole.
Result<Backup> ReadBackup(std::istream& in, const std::string& source);

}  // namespace muster::host
