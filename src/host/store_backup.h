// Backup: the rows of a store at one revision as text, which any store can be restored from.
//
// JSON lines: a head with the format and the revision, one line for each row, and an end with the number of rows and
// the digest of rows and revision, so that a file that was cut short or changed is refused as a whole. Text that is not
// UTF-8, or has a zero byte, is written in hexadecimal. Rows that live by a lease are left out: a lease does not
// outlive its store.
//
// Thread-safety: functions.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/json_object.h"
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
// INVALID_ARGUMENT naming `source` and the line if a line is none of a backup: one that is not understood, a key that
// is there twice or out of order, a key or value larger than a store takes, anything after the end. DATA_LOSS if all
// lines are right but the file is not what was written.
Result<Backup> ReadBackup(std::istream& in, const std::string& source);

// Adds `bytes` without loss: as `name` if they are UTF-8 without a zero byte, else in hexadecimal as `name`Hex.
void AddBytes(JsonObject& json, const std::string& name, const std::string& bytes);

}  // namespace muster::host
