#include "cli/halves.h"

#include <fmt/format.h>

namespace muster::cli {
Result<std::vector<contract::WorkloadView>> Halves::AllWorkloads() {
  MUSTER_ASSIGN_OR_RETURN(contract::WorkloadsListed listed,
                          AllPages<contract::WorkloadsListed>(
                              [this](auto page) { return OfCluster<contract::WorkloadsListed>(std::move(page)); },
                              contract::ListWorkloads{}, &contract::WorkloadsListed::workloads));
  return std::move(listed.workloads);
}

Result<std::vector<contract::NodeView>> Halves::AllNodes() {
  MUSTER_ASSIGN_OR_RETURN(
      contract::NodesListed listed,
      AllPages<contract::NodesListed>([this](auto page) { return OfCluster<contract::NodesListed>(std::move(page)); },
                                      contract::ListNodes{}, &contract::NodesListed::nodes));
  return std::move(listed.nodes);
}

Result<std::vector<contract::SetView>> Halves::AllSets() {
  MUSTER_ASSIGN_OR_RETURN(
      contract::SetsListed listed,
      AllPages<contract::SetsListed>([this](auto page) { return OfCluster<contract::SetsListed>(std::move(page)); },
                                     contract::ListSets{}, &contract::SetsListed::sets));
  return std::move(listed.sets);
}

void AddHalvesFlags(Verb& verb, HalvesFlags& flags) {
  AddSchedulerFlags(verb, flags.cluster);
  AddShardAddress(verb, flags.shard);
}

Result<contract::ClusterReply> RunningHalves::AskCluster(contract::ClusterRequest request) {
  if (!session_) {
    MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access_, flags_.cluster));
    session_.emplace(std::move(session));
  }
  return session_->AskAny(std::move(request));
}

Result<contract::ShardReply> RunningHalves::AskShard(contract::ShardRequest request) {
  if (shard_ == nullptr) {
    if (!access_.shard) return Error(Code::kUnavailable, "no shard is known");
    ShardFlags flags = flags_.shard;
    flags.tls = flags_.cluster.tls;
    MUSTER_ASSIGN_OR_RETURN(shard_, access_.shard(flags));
  }
  Result<contract::ShardReply> reply = cli::AskShard(*shard_, std::move(request));
  if (!reply && (reply.error().code() == Code::kUnavailable || reply.error().code() == Code::kDeadlineExceeded)) {
    return Error(reply.error().code(), fmt::format("shard {}: {}; is it running? Name another one with --shard",
                                                   flags_.shard.shard, reply.error().message()));
  }
  return reply;
}

}  // namespace muster::cli
