// Parts that several records share, and the lossy texts that other programs know: ports, volumes, amounts. A record
// holds such a text for them; what the text does not carry exactly lies below "muster" too.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/scheduler/json_cursor.h"
#include "core/scheduler/json_writer.h"
#include "core/scheduler/records.h"
#include "model/names.h"
#include "model/resources.h"
#include "model/workload_template.h"

namespace muster::scheduler {

// The record, or the first error of its reader.
template <class T>
Result<T> Finished(JsonCursor& in, T record) {
  if (Status status = in.Finish(); !status.ok()) return std::unexpected(std::move(status));
  return record;
}

inline std::unexpected<Status> BadId(std::string_view field, std::string_view id) {
  return InvalidArgument(fmt::format("{}: {}", field, id.empty() ? "missing" : model::Quoted(id) + " is no id"));
}

// attempts, maxAttempts, nextRetryAt, into the open object.
void WriteRetry(JsonWriter& out, const RetryRecord& retry);
void ReadRetry(JsonCursor& in, RetryRecord& retry);

// A time that is absent at zero, as other programs write it.
void ReadTime(JsonCursor& in, std::optional<WallTime>& time);

// A map whose values may be anything; those that are no text are taken as they are written.
void ReadTexts(JsonCursor& in, std::map<std::string, std::string>& map);

// "h:c/proto", with an address before it "ip:h:c/proto". 0 stands for a host port that is not given.
std::string PortText(const model::Port& port);
Result<model::Port> ParsePortText(std::string_view text);

// "source:target[:ro]".
std::string VolumeText(const model::VolumeMount& volume);
Result<model::VolumeMount> ParseVolumeText(std::string_view text);

// Amounts in cores, megabytes of 2^20 and gigabytes of 2^30 bytes: whole ones, rounded up, and not more than are read.
struct CoarseAmounts {
  int64_t cpu_milli = 0;
  int64_t memory_mb = 0;
  int64_t disk_gb = 0;
};
CoarseAmounts Coarse(const model::Resources& resources);
model::Resources Fine(const CoarseAmounts& amounts);
// Numbers of another program: not negative, and of a size that a machine may have.
void ReadCores(JsonCursor& in, int64_t& cpu_milli);
void ReadAmount(JsonCursor& in, int64_t& whole);

// The text of a compose file; other programs write it in base64, which has no ':' while a compose file has some.
std::string ParseCompose(std::string_view text);

}  // namespace muster::scheduler
