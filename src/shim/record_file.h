// A record in a file of its own: read whole, replaced all or nothing, durable once written.
//
// The file holds a digest and the codec bytes of a value with Fields. Thread-safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/codec.h"

namespace muster::shim {

// The bytes of the record in the file `name` of the directory; none if there is no file or if it is damaged.
std::optional<std::string> ReadRecordBytes(const std::string& directory, std::string_view name);
// 0, or the errno of the step that failed. A crash at any moment leaves the old record or the new one.
int WriteRecordBytes(const std::string& directory, std::string_view name, std::string_view bytes);

template <class Record>
std::optional<Record> ReadRecord(const std::string& directory, std::string_view name) {
  const std::optional<std::string> bytes = ReadRecordBytes(directory, name);
  if (!bytes) return std::nullopt;
  return codec::FromBytes<Record>(*bytes);
}
template <class Record>
int WriteRecord(const std::string& directory, std::string_view name, const Record& record) {
  return WriteRecordBytes(directory, name, codec::ToBytes(record));
}

}  // namespace muster::shim
