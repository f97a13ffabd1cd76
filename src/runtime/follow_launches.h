// FollowLaunches: the logs of a workload whose every launch has containers of its own, read launch after launch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/status.h"
#include "base/time.h"
#include "contract/logs.h"

namespace muster::runtime {

struct LaunchLogs {
  // The number of the newest launch; nothing: the engine has none that was started, as between two launches.
  std::function<Result<std::optional<uint64_t>>()> newest;
  // Reads what the newest launch wrote, with `follow` until it has ended.
  std::function<Status(const contract::ReadLogs&)> read;
  // The workload is removed, the reader is gone, or the runtime is closing.
  std::function<bool()> over;
  // How long a reader that follows waits for the first launch, because one may just be replaced by the next. A
  // container that is being removed breaks the stream of its logs, and is still seen for so long.
  Duration patience = 30s;
};

// Without `follow` the newest launch alone. `tail` and `since` are for the first launch that is read. NOT_FOUND if
// there is none to begin with, when following after `patience`; the error of the engine otherwise. Between two launches
// the engine is asked every `poll`.
Status FollowLaunches(contract::ReadLogs request, Duration poll, const LaunchLogs& logs);

}  // namespace muster::runtime
