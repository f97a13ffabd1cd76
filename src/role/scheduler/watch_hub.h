// WatchHub: what a scheduler publishes, for those who watch it over gRPC. Changes of objects are kept, up to a number
// and a weight, for each holds the whole object, so that a watcher may begin with a revision that has passed; decisions
// are given to those who watch at that moment.
//
// Invariants:
//   1. A watcher gets every change after `from` of the kinds it asked for, once, in the order of publication.
//   2. OUT_OF_RANGE if a change after `from` is no longer kept, or came before the hub began.
//
// Thread-safety: all functions may be called from any thread. Sinks only queue.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/status.h"
#include "contract/cluster.h"
#include "rpc/cluster_services.h"

namespace muster::scheduler {

class WatchHub final : public rpc::WatchPort {
 public:
  // `most` changes are kept, and no more of them than weigh `most_weight` (base/weight.h).
  explicit WatchHub(size_t most = 10'000, size_t most_weight = 64 << 20) : most_(most), most_weight_(most_weight) {}

  // Every change after `revision` is published from here on. What was kept is dropped, and watchers are ended with
  // OUT_OF_RANGE: they may have missed something.
  void Begin(contract::Revision revision);
  void Publish(contract::ClusterChange change);
  void Watch(const contract::WatchCluster& what, std::shared_ptr<rpc::WatchSink> sink) override;
  // Ends every watch, and those to come, with `why`.
  void Close(const Status& why);
  size_t watchers() const;

 private:
  using Change = std::shared_ptr<const contract::ClusterChange>;
  struct Watcher {
    contract::WatchCluster what;
    std::shared_ptr<rpc::WatchSink> sink;
  };

  struct Kept {
    Change change;
    size_t weight = 0;
  };
  void Forget();

  const size_t most_;
  const size_t most_weight_;
  mutable std::mutex mu_;
  // Guarded by mu_.
  std::optional<contract::Revision> floor_;  // changes after it are kept; nothing: the hub has not begun
  std::deque<Kept> kept_;
  size_t weight_ = 0;  // of all that are kept
  std::vector<Watcher> watchers_;
  std::optional<Status> closed_;
};

}  // namespace muster::scheduler
