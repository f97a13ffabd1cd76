// SendQueue: what a shard has said to a cluster and the stream has not taken yet.
//
// Messages go out in the order they were put in, but an update with a supersedes_key takes the place of an earlier one
// with the same key that is still here: the latest counts, and it loses no time. Where many messages are here, so does
// an acknowledgement that follows one of the same. Updates of nodes are thus as many as there are machines at most;
// everything else is counted, and overlong() says that the peer has not read for too long.
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "contract/session.h"

namespace muster::rpc {

struct SendQueueLimits {
  size_t messages = 10'000;  // without a key
  size_t bytes = 64 << 20;   // about: of these and of hints; questions of 75 KB may come by hundreds in a step
};

class SendQueue {
 public:
  explicit SendQueue(SendQueueLimits limits = {}) : limits_(limits) {}

  void Push(contract::ShardMessage message);
  std::optional<contract::ShardMessage> Pop();
  void Clear();
  bool empty() const { return queue_.empty(); }
  size_t size() const { return queue_.size(); }
  bool overlong() const { return messages_ > limits_.messages || bytes_ > limits_.bytes; }
  // So much that a peer which is told nothing more need not get it.
  bool lengthy() const { return queue_.size() > limits_.messages / 10 || bytes_ > limits_.bytes / 64; }

 private:
  bool Repeats(const contract::ShardMessage& message) const;

  const SendQueueLimits limits_;
  std::deque<contract::ShardMessage> queue_;
  uint64_t sent_ = 0;                                 // messages popped: the number of the front one
  std::unordered_map<std::string, uint64_t> places_;  // of updates here, by key: their number
  size_t messages_ = 0;                               // without a key
  size_t bytes_ = 0;                                  // of these, and of hints
};

}  // namespace muster::rpc
