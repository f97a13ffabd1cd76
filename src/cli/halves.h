// Halves: whom `muster explain`, a live `muster plan` and `muster what-if` ask: a scheduler and a shard, running ones
// or those of a moment in their journals.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "cli/ask.h"
#include "cli/cluster.h"
#include "contract/cluster.h"
#include "contract/shard.h"

namespace muster::cli {

class Halves {
 public:
  virtual ~Halves() = default;
  virtual Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) = 0;
  virtual Result<contract::ShardReply> AskShard(contract::ShardRequest request) = 0;

  // The reply that belongs to the request.
  template <class Reply, class Request>
  Result<Reply> OfCluster(Request request) {
    MUSTER_ASSIGN_OR_RETURN(contract::ClusterReply reply, AskCluster(std::move(request)));
    return Typed<Reply>(reply);
  }
  template <class Reply, class Request>
  Result<Reply> OfShard(Request request) {
    MUSTER_ASSIGN_OR_RETURN(contract::ShardReply reply, AskShard(std::move(request)));
    return Typed<Reply>(reply);
  }

  // Every workload, node and set, page by page.
  Result<std::vector<contract::WorkloadView>> AllWorkloads();
  Result<std::vector<contract::NodeView>> AllNodes();
  Result<std::vector<contract::SetView>> AllSets();

 private:
  template <class Reply, class Any>
  static Result<Reply> Typed(Any& reply) {
    auto* typed = std::get_if<Reply>(&reply);
    MUSTER_CHECK(typed != nullptr, "the port answered with the reply of another request");
    return std::move(*typed);
  }
};

// Which scheduler and which shard.
struct HalvesFlags {
  ClusterFlags cluster;
  ShardFlags shard;  // its TLS files are those of `cluster`
};
// --scheduler, --shard and the TLS files.
void AddHalvesFlags(Verb& verb, HalvesFlags& flags);

// Running ones. Each is connected to when it is first asked.
class RunningHalves final : public Halves {
 public:
  RunningHalves(ClusterAccess access, HalvesFlags flags) : access_(std::move(access)), flags_(std::move(flags)) {}
  Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) override;
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override;

 private:
  const ClusterAccess access_;
  const HalvesFlags flags_;
  std::optional<ClusterSession> session_;
  std::unique_ptr<contract::ShardPort> shard_;
};

}  // namespace muster::cli
