// Sessions: who speaks for a cluster, what it is told, what it answers.
#include <fmt/format.h>

#include <limits>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"

namespace muster::shard {
namespace {

contract::NodeStateUpdate UpdateOf(const std::string& cluster, const model::Machine& machine) {
  return {.supersedes_key = "node:" + machine.id,
          .machine_id = machine.id,
          .cluster_id = cluster,
          .state = machine.state,
          .provider_id = machine.host.empty() ? "" : fmt::format("{}://{}", machine.host.provider, machine.host.ref),
          .last_error = machine.last_error,
          .labels = machine.labels,
          .resources = machine.EffectiveAllocatable()};
}

}  // namespace

void Core::OnOpened(const SessionOpened& opened, Turn& turn) {
  const std::string& name = opened.hello.cluster_id;
  const auto refuse = [&](std::string why) {
    turn.out.push_back(CloseSession{opened.session, Status(Code::kInvalidArgument, std::move(why))});
  };
  if (name.empty()) return refuse("cluster_id: missing; say which cluster this is");
  if (opened.hello.protocol_version != contract::kProtocolVersion) {
    return refuse(fmt::format("protocol_version: {} is not spoken here; use {}",
                              codec::Quote(opened.hello.protocol_version), contract::kProtocolVersion));
  }
  Cluster& cluster = clusters_[name];
  ++counters_.sessions_installed;
  if (cluster.session != 0) {
    PROBE("shard.session_replaced");
    ++counters_.sessions_replaced;
    turn.out.push_back(
        CloseSession{cluster.session, Status(Code::kAborted, "a newer session of this cluster took its place")});
    sessions_.erase(cluster.session);
    EndSession(name, turn);
  }
  cluster.session = opened.session;
  sessions_[opened.session] = name;
  Acknowledge(cluster, "hello", turn);
  for (const std::string& id : cluster.bound) TellNode(name, *machines_.find(id)->second.record, turn);
  for (const auto& [token, unanswered] : unanswered_) {
    if (unanswered.cluster != name || MUTANT("shard.instructions_not_resent")) continue;
    PROBE("shard.instruction_resent");
    SendTo(cluster, unanswered.instruction, turn);
    const auto operation = operations_.find(unanswered.instruction.nodes.front());
    if (operation == operations_.end() || operation->second.token != token) continue;
    if (operation->second.stage != Stage::kInstructed) continue;
    SetDeadline(operation->first, operation->second, turn.now.mono + config_.ack_timeout);
  }
  MakeDue();
}

void Core::OnClosed(contract::SessionId session, Turn& turn) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;  // it was replaced, or never accepted
  const std::string name = found->second;
  sessions_.erase(found);
  ++counters_.sessions_removed;
  EndSession(name, turn);
  MakeDue();
}

// The cluster cannot be asked any more. What it was asked for fails; what it was told is told again when it is back.
void Core::EndSession(const std::string& name, Turn& turn) {
  Cluster& cluster = clusters_.find(name)->second;
  cluster.session = 0;
  cluster.hints.clear();
  std::vector<std::string> asking;
  for (auto& [id, operation] : operations_) {
    if (operation.cluster != name) continue;
    if (operation.stage == Stage::kAsking) asking.push_back(id);
    if (operation.stage == Stage::kInstructed) SetDeadline(id, operation, turn.now.mono + config_.give_up);
  }
  for (const std::string& id : asking) {
    PROBE("shard.session_lost_while_asking");
    EndOperation(id, "no_session", "the cluster's session ended", turn);
  }
}

void Core::OnReceived(const Received& received, Turn& turn) {
  const auto found = sessions_.find(received.session);
  if (found == sessions_.end()) return;
  const std::string name = found->second;
  if (const auto* rollup = std::get_if<contract::Rollup>(&received.message)) {
    OnRollup(name, *rollup, turn);
  } else if (const auto* blob = std::get_if<contract::BootstrapResponse>(&received.message)) {
    OnBlob(name, *blob, turn);
  } else if (const auto* ack = std::get_if<contract::ReclaimAck>(&received.message)) {
    OnReclaimAck(name, *ack, turn);
  } else {
    Acknowledge(clusters_.find(name)->second, "hello", turn);  // said once more
  }
}

void Core::OnBlob(const std::string& cluster, const contract::BootstrapResponse& response, Turn& turn) {
  const auto token = token_of_.find(response.request_id);
  if (token == token_of_.end()) {
    PROBE("shard.late_blob");
    return;
  }
  const std::string id = token->second;
  Operation& operation = operations_.find(id)->second;
  if (operation.cluster != cluster || operation.stage != Stage::kAsking) return;
  token_of_.erase(token);
  if (!response.error.empty()) {
    BackOff(id, false, turn.now.mono);
    return EndOperation(id, "blob_error", response.error, turn);
  }
  if (!operation.blob_until)
    turn.out.push_back(Lasted{.leg = Leg::kBlob, .took = turn.now.mono - operation.decided.mono});
  operation.blob = response.user_data;
  if (response.ttl > 0s && !MUTANT("shard.blob_keeps_for_ever")) {
    // A ttl beyond what time can hold is as good as none.
    constexpr std::chrono::seconds kLongest = std::chrono::hours(24 * 365);
    operation.blob_until = turn.now.mono + std::min(response.ttl, kLongest);
  }
  Enqueue(id, operation);
}

void Core::OnReclaimAck(const std::string& cluster, const contract::ReclaimAck& ack, Turn&) {
  const auto unanswered = unanswered_.find(ack.instruction_id);
  if (unanswered == unanswered_.end() || unanswered->second.cluster != cluster) {
    PROBE("shard.late_ack");
    return;
  }
  const std::string id = unanswered->second.instruction.nodes.front();
  unanswered_.erase(unanswered);
  const auto operation = operations_.find(id);
  if (operation == operations_.end() || operation->second.token != ack.instruction_id) return;
  if (operation->second.stage == Stage::kInstructed) Enqueue(id, operation->second);
}

void Core::TellNode(const std::string& name, const model::Machine& machine, Turn& turn) {
  const auto cluster = clusters_.find(name);
  if (cluster == clusters_.end() || cluster->second.session == 0) return;
  SendTo(cluster->second, UpdateOf(name, machine), turn);
}

void Core::SendTo(const Cluster& cluster, contract::ShardMessage message, Turn& turn) {
  turn.out.push_back(Send{cluster.session, std::move(message)});
}

void Core::Acknowledge(const Cluster& cluster, std::string echo, Turn& turn) {
  SendTo(cluster, contract::Acknowledgement{.echo = std::move(echo), .coordinator_term = term_, .shard_epoch = epoch_},
         turn);
}

}  // namespace muster::shard
