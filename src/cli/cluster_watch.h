// ChangeQueue: a watch of a cluster, read by the one thread of a verb.
//
// Thread-safety: Watch and Next by one thread; the watch fills the queue from its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"
#include "contract/cluster.h"
#include "rpc/cluster_client.h"

namespace muster::cli {

class ChangeQueue {
 public:
  explicit ChangeQueue(rpc::ClusterClient& client) : client_(client) {}
  ~ChangeQueue() { stream_.reset(); }
  ChangeQueue(const ChangeQueue&) = delete;
  ChangeQueue& operator=(const ChangeQueue&) = delete;

  // Begins to watch; an earlier watch ends, and what it brought is dropped.
  void Watch(const contract::WatchCluster& what) {
    stream_.reset();
    changes_.clear();
    ended_.reset();
    stream_ = client_.Watch(what, {.changed = [this](contract::ClusterChange change) { Push(std::move(change)); },
                                   .ended = [this](Status status) { End(std::move(status)); }});
  }

  // The next change, as long as it takes; after the last one, why the watch ended.
  Result<contract::ClusterChange> Next() {
    std::unique_lock lock(mu_);
    more_.wait(lock, [&] { return !changes_.empty() || ended_; });
    if (changes_.empty()) return std::unexpected(*ended_);
    contract::ClusterChange change = std::move(changes_.front());
    changes_.pop_front();
    return change;
  }

 private:
  void Push(contract::ClusterChange change) {
    const std::lock_guard lock(mu_);
    changes_.push_back(std::move(change));
    more_.notify_one();
  }
  void End(Status status) {
    const std::lock_guard lock(mu_);
    ended_ = std::move(status);
    more_.notify_one();
  }

  rpc::ClusterClient& client_;
  std::mutex mu_;
  std::condition_variable more_;
  std::deque<contract::ClusterChange> changes_;  // guarded by mu_
  std::optional<Status> ended_;                  // guarded by mu_
  std::unique_ptr<rpc::OpenStream> stream_;
};

}  // namespace muster::cli
