#include "sim/plain_clusters.h"

#include <utility>

namespace muster::sim {
namespace {

constexpr Duration kSaysEvery = 10s;
constexpr Duration kAnswersAfter = 50ms;

}  // namespace

void PlainClusters::Start() {
  for (const auto& [name, cluster] : clusters_) Tick(name);
}

contract::Rollup PlainClusters::RollupOf(const std::string& name, int64_t machines) const {
  contract::Rollup rollup{.cluster_id = name, .timestamp = kernel_.now().wall};
  if (machines == 0) return rollup;
  rollup.rows = contract::NeedRows({{.profile = model::Profile({.priority = clusters_.at(name).priority}),
                                     .aggregate = {{"cpu", machines * 1000}},
                                     .min_unit = {{"cpu", 1000}}}});
  return rollup;
}

void PlainClusters::Tick(const std::string& name) {
  kernel_.After(kSaysEvery, [this, name] { Tick(name); });
  if (!host_.alive()) return;
  Session& session = sessions_[name];
  if (session.life != host_.life()) {
    session = {.id = ++last_session_, .life = host_.life()};
    host_.Post(shard::SessionOpened{session.id,
                                    {.cluster_id = name, .protocol_version = std::string(contract::kProtocolVersion)}});
  }
  host_.Post(shard::Received{session.id, RollupOf(name, clusters_.at(name).wanted)});
}

void PlainClusters::SayByMistake(const std::string& name, int64_t machines) {
  const Session& session = sessions_[name];
  if (host_.alive() && session.life == host_.life()) {
    host_.Post(shard::Received{session.id, RollupOf(name, machines)});
  }
}

void PlainClusters::Hear(const shard::Send& send) {
  if (const auto* asked = std::get_if<contract::BootstrapRequest>(&send.message)) {
    const Cluster& cluster = clusters_.at(asked->cluster_id);
    if (cluster.silent) return;
    contract::BootstrapResponse response{.request_id = asked->request_id, .error = cluster.blob_error};
    if (cluster.blob_error.empty()) response.user_data = "join";
    Say(send.session, std::move(response));
  } else if (const auto* told = std::get_if<contract::ReclaimInstruction>(&send.message)) {
    Say(send.session, contract::ReclaimAck{.instruction_id = told->instruction_id, .nodes_started = 1});
  }
}

void PlainClusters::Say(contract::SessionId session, contract::OperatorMessage message) {
  kernel_.After(kAnswersAfter,
                [this, session, message = std::move(message)] { host_.Post(shard::Received{session, message}); });
}

}  // namespace muster::sim
