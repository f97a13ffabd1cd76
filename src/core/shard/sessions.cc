#include "core/shard/sessions.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "model/requirement.h"

namespace muster::shard {
namespace {

// With the two labels that a record says in fields of their own: the operator makes a node of the labels alone.
model::TextMap LabelsOf(const model::Machine& machine) {
  model::TextMap labels = machine.labels;
  if (!machine.instance_type.empty()) labels[std::string(model::kInstanceTypeKey)] = machine.instance_type;
  if (!machine.zone.empty()) labels[std::string(model::kZoneKey)] = machine.zone;
  return labels;
}

// The provider's id is the bare ref of the host: operators compare it with what the node says.
contract::NodeStateUpdate UpdateOf(const std::string& cluster, const model::Machine& machine) {
  return {.supersedes_key = "node:" + machine.id,
          .machine_id = machine.id,
          .cluster_id = cluster,
          .state = machine.state,
          .provider_id = machine.host.ref,
          .last_error = machine.last_error,
          .labels = LabelsOf(machine),
          .resources = machine.EffectiveAllocatable()};
}

}  // namespace

bool Sessions::Check(const SessionOpened& opened, StepContext& ctx) const {
  const auto refuse = [&](std::string why, Code code = Code::kInvalidArgument) {
    ctx.Emit(CloseSession{opened.session, Status(code, std::move(why))});
    return false;
  };
  const std::string& cluster = opened.hello.cluster_id;
  if (cluster.empty()) return refuse("cluster_id: missing; say which cluster this is");
  if (cluster.size() > kLongestName) {
    return refuse(fmt::format("cluster_id: has {} bytes, more than {}", cluster.size(), kLongestName));
  }
  if (opened.hello.protocol_version != contract::kProtocolVersion) {
    return refuse(fmt::format("protocol_version: {} is not spoken here; use {}",
                              codec::Quote(opened.hello.protocol_version), contract::kProtocolVersion));
  }
  if (clusters_.names().size() >= kMostClusters && !clusters_.names().contains(cluster)) {
    return refuse(
        fmt::format("cluster_id: this shard knows {} clusters, and no more are allowed; those without session, "
                    "demand, machines and orders are forgotten after ten minutes",
                    clusters_.names().size()),
        Code::kResourceExhausted);
  }
  return true;
}

bool Sessions::CloseOlder(const std::string& cluster, StepContext& ctx) {
  const auto older = state_.by_cluster.find(cluster);
  if (older == state_.by_cluster.end()) return false;
  PROBE("shard.session_replaced");
  ++ctx.counters.sessions_replaced;
  ctx.Emit(CloseSession{older->second, Status(Code::kAborted, "a newer session of this cluster took its place")});
  state_.clusters.erase(older->second);
  state_.by_cluster.erase(older);
  return true;
}

void Sessions::Open(const SessionOpened& opened, const Machines& machines, bool all_seen, StepContext& ctx) {
  const std::string& cluster = opened.hello.cluster_id;
  ++ctx.counters.sessions_installed;
  clusters_.Add(cluster);
  state_.by_cluster[cluster] = opened.session;
  state_.clusters[opened.session] = cluster;
  Acknowledge(cluster, "hello", ctx);
  for (const std::string& id : machines.BoundTo(cluster).machines) {
    model::Machine machine = *machines.Find(id)->record;
    if (machine.state == model::MachineState::kFailed && !MUTANT("shard.failing_told")) {
      if (!all_seen) continue;
      if (machines.AsideOf(id) == SetAside::kFailing) {
        machine.state = model::MachineState::kConfigured;
        machine.last_error.clear();
      }
    }
    SendNodeState(cluster, machine, ctx);
  }
}

std::string Sessions::Close(contract::SessionId session, StepContext& ctx) {
  const auto found = state_.clusters.find(session);
  if (found == state_.clusters.end()) return "";
  const std::string cluster = found->second;
  state_.clusters.erase(found);
  state_.by_cluster.erase(cluster);
  ++ctx.counters.sessions_removed;
  return cluster;
}

std::string Sessions::ClusterOf(contract::SessionId session) const {
  const auto found = state_.clusters.find(session);
  return found == state_.clusters.end() ? "" : found->second;
}

void Sessions::Send(const std::string& cluster, contract::ShardMessage message, StepContext& ctx) const {
  const auto session = state_.by_cluster.find(cluster);
  ctx.Emit(shard::Send{session == state_.by_cluster.end() ? 0 : session->second, std::move(message)});
}

void Sessions::SendNodeState(const std::string& cluster, const model::Machine& machine, StepContext& ctx) const {
  if (Has(cluster)) Send(cluster, UpdateOf(cluster, machine), ctx);
}

void Sessions::Acknowledge(const std::string& cluster, std::string echo, StepContext& ctx) const {
  Send(cluster,
       contract::Acknowledgement{.echo = std::move(echo),
                                 .coordinator_term = lifecycle_.coordinator_term(),
                                 .shard_epoch = lifecycle_.epoch()},
       ctx);
}

void Sessions::CheckInvariants() const {
  MUSTER_CHECK(state_.clusters.size() == state_.by_cluster.size());
  for (const auto& [session, cluster] : state_.clusters) {
    const auto known = state_.by_cluster.find(cluster);
    MUSTER_CHECK(known != state_.by_cluster.end() && known->second == session, "session {} is not that of cluster {}",
                 session, cluster);
  }
}

}  // namespace muster::shard
