// ReadLogs: what a workload wrote, read by the one thread of a verb.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"
#include "base/time.h"
#include "contract/logs.h"
#include "rpc/cluster_client.h"

namespace muster::cli {

// Calls `take` with each part, on another thread, and returns how it ended; DEADLINE_EXCEEDED after `timeout`.
inline Status ReadLogs(rpc::ClusterClient& client, const contract::ReadLogs& what, std::optional<Duration> timeout,
                       const std::function<void(const contract::LogChunk&)>& take) {
  std::mutex mu;
  std::condition_variable done;
  std::optional<Status> status;
  const std::unique_ptr<rpc::OpenStream> stream =
      client.Logs(what, {.chunk = [&](const contract::LogChunk& chunk) { take(chunk); },
                         .ended =
                             [&](Status ended) {
                               const std::lock_guard lock(mu);
                               status = std::move(ended);
                               done.notify_all();
                             }});
  std::unique_lock lock(mu);
  const auto has_ended = [&] { return status.has_value(); };
  if (!timeout) {
    done.wait(lock, has_ended);
  } else if (!done.wait_for(lock, *timeout, has_ended)) {
    return {Code::kDeadlineExceeded, "the node does not send them"};
  }
  return *status;
}

}  // namespace muster::cli
