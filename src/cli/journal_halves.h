// JournalHalves: a scheduler and a shard as they were at a moment, from the journals that they wrote (--journal). The
// cores are stepped through what they saw until then and asked as running ones are; what they would do is dropped.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "cli/halves.h"
#include "core/scheduler/scheduler.h"
#include "core/shard/shard.h"

namespace muster::cli {

// What a journal spans: from its first to its last step.
struct JournalRange {
  WallTime begin;
  WallTime end;
};

class JournalHalves final : public Halves {
 public:
  // The journals of directories, of a scheduler, a shard, or both. OUT_OF_RANGE for a moment before the first step of
  // one; INVALID_ARGUMENT for two of the same role and for another role.
  // `alive` is called with each step.
  static Result<std::unique_ptr<JournalHalves>> Open(const std::vector<std::string>& directories, WallTime at,
                                                     std::function<void()> alive = {});

  Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) override;
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override;

  // What people should know of the journals, such as one that ends before the moment.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  template <class Core>
  struct Past {
    std::optional<Core> core;
    Now now;
  };
  template <class Core>
  Status Load(const std::string& directory, WallTime at, Past<Core>& past);

  Past<scheduler::Core> scheduler_;
  Past<shard::Core> shard_;
  std::function<void()> alive_;
  std::vector<std::string> notes_;
  contract::RequestId last_request_ = 0;
};

}  // namespace muster::cli
