// What nodes say, and what is ordered of them: the part of Requests that is about nodes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/probe.h"
#include "core/scheduler/requests.h"
#include "model/workload_bounds.h"

namespace muster::scheduler {
namespace {

// Far above what registrations, revisions and orders reach, and far enough from the end of the range to count on.
constexpr uint64_t kNumberLimit = uint64_t{1} << 62;

std::unexpected<Status> NoNode(const std::string& node) {
  return Error(Code::kNotFound, fmt::format("there is no node {}", node));
}

// Why the node is not accepted; empty if it is.
std::string RegistrationProblem(const contract::NodeFacts& facts, const Config& config) {
  if (std::string problem = Beyond(model::kMostParts, "node", facts); !problem.empty()) return problem;
  if (const size_t weight = WeightOf(facts); weight > model::kMostNodeWeight) {
    return fmt::format("node: what it says of itself takes {} KiB; at most {} are taken", weight >> 10,
                       model::kMostNodeWeight >> 10);
  }
  if (facts.total.Get("cpu") <= 0) return "cpu: the node's total must be above zero";
  if (facts.total.Get("memory") <= 0) return "memory: the node's total must be above zero";
  if (!config.cluster.empty() && !facts.cluster.empty() && facts.cluster != config.cluster) {
    return fmt::format("cluster: the node is for {}, this is {}", facts.cluster, config.cluster);
  }
  return {};
}

// Whether one more node is too many, with those that are on their way into the store.
Status CheckRoomForNode(const StoreCopy& copy, const Drafts& drafts) {
  size_t nodes = copy.All<NodeRecord>().size();
  if (nodes + drafts.state().drafts.size() < model::kMostNodes) return {};
  for (const auto& [object, draft] : drafts.state().drafts) {
    if (object.kind == contract::ObjectKind::kNode && copy.Find<NodeRecord>(object.name) == nullptr) ++nodes;
  }
  if (nodes < model::kMostNodes) return {};
  return {Code::kResourceExhausted,
          fmt::format("scheduler: nodes {} of {} in use; delete those that are gone", nodes, model::kMostNodes)};
}

// The order was on its way while a later one was given: it must not undo that. The last one may come again, as long as
// the record says what it ordered: `same`.
Status CheckOrder(const NodeRecord& record, uint64_t order, bool same) {
  if (order >= kNumberLimit) return {Code::kInvalidArgument, fmt::format("order: {} is out of range", order)};
  if (order == 0 || order > record.last_order || MUTANT("scheduler.late_order_taken")) return {};
  if (order == record.last_order && same) return {};
  return {Code::kFailedPrecondition, fmt::format("order: node {} was given order {} before order {}", record.facts.node,
                                                 record.last_order, order)};
}

}  // namespace

Requests::Outcome Requests::Change(const contract::RegisterNode& body, Waiter&, StepContext& ctx) {
  const contract::NodeFacts& facts = body.facts;
  if (!model::IsWorkloadId(facts.node)) return InvalidArgument("node_id: not a valid id");
  const size_t colon = facts.endpoint.rfind(':');
  if (colon == std::string::npos || colon + 1 == facts.endpoint.size()) {
    return InvalidArgument("grpc_endpoint: must be host:port");
  }
  if (body.epoch >= kNumberLimit) {
    return InvalidArgument(fmt::format(
        "epoch: {} is out of range; the agent's state is damaged: start it with an empty data directory", body.epoch));
  }
  if (Status readable = CheckReadable(NodeObject(facts.node)); !readable.ok()) return std::unexpected(readable);
  if (std::string problem = RegistrationProblem(facts, p_.config); !problem.empty()) {
    return contract::NodeRegistered{.accepted = false, .reason = std::move(problem)};
  }
  const NodeRecord* before = p_.drafts.Find<NodeRecord>(facts.node);
  if (before == nullptr) {
    if (Status room = CheckRoomForNode(p_.copy, p_.drafts); !room.ok()) return std::unexpected(std::move(room));
  }
  NodeRecord record = before == nullptr ? NodeRecord{} : *before;
  // A registration proves that the node lives, not that its agent can be called.
  const bool unreachable = record.unreachable && record.facts.endpoint == facts.endpoint;
  record.facts = facts;
  record.last_heartbeat = ctx.now.wall;
  record.registration = std::max(record.registration, p_.copy.LatestFor(NodeObject(facts.node))) + 1;
  record.unreachable = unreachable;
  if (!unreachable) {
    record.status = model::NodeStatus::kReady;
    record.status_reason = "registered";
    record.status_updated_by = "register";
    record.status_updated_at = ctx.now.wall;
  }
  if (facts.native && !MUTANT("scheduler.epoch_stays")) {
    // Above what the agent knows too: with an empty or restored store the rest may be lower, and the agent would refuse
    // everything.
    const uint64_t known = MUTANT("scheduler.known_epoch_ignored") ? 0 : body.epoch;
    record.epoch = std::max({record.epoch, p_.copy.LatestFor(NodeObject(facts.node)), known}) + 1;
  }
  p_.drafts.Create(facts.node, std::move(record));
  p_.health.OnRegistered(facts.node, ctx.now);
  return std::nullopt;
}

// Its registration is durable.
void Requests::OnRegistered(const std::string& node, const contract::RegisterNode& body) {
  const NodeRecord* record = p_.copy.Find<NodeRecord>(node);
  if (record == nullptr) return;
  p_.reconciler.EndWaitsOfRefused(node);
  p_.reconciler.MarkNode(node, true);
  if (body.facts.native) p_.reconciler.OnReported(node, body.running, true);
  if (record->unreachable && !p_.calls.Has(node, "")) p_.calls.Enqueue({.kind = CallKind::kList, .node = node});
}

contract::NodeRegistered Requests::Registered(const std::string& node, bool remove_others, Now now) const {
  contract::NodeRegistered reply{
      .accepted = true,
      .reason = {},
      .heartbeat_interval = HeartbeatInterval(p_.config),
      .lease_expires_at = now.wall + p_.config.node_timeout,
      .state = {.epoch = 0, .workloads = {}, .remove_others = remove_others},
  };
  const NodeRecord* record = p_.copy.Find<NodeRecord>(node);
  if (record == nullptr || !record->facts.native) return reply;
  reply.state.epoch = record->epoch;
  for (const std::string& id : p_.copy.OnNode(node)) {
    reply.state.workloads.push_back(ApplyRequestOf(*p_.copy.Find<WorkloadRecord>(id), *record));
  }
  return reply;
}

void Requests::OnHeartbeat(const contract::Heartbeat& beat, contract::RequestId request, StepContext& ctx) {
  if (!p_.standing.state().leading || !p_.standing.state().listed) {
    return Answer(request, std::unexpected(p_.standing.MayChange()), ctx);
  }
  const NodeRecord* record = p_.copy.Find<NodeRecord>(beat.node);
  const bool known = record != nullptr && (record->facts.native ? beat.epoch == record->epoch : beat.epoch == 0);
  if (!known && !(record != nullptr && MUTANT("scheduler.old_epoch_heard"))) {
    if (record != nullptr) PROBE("scheduler.old_epoch");
    return Answer(request, Error(Code::kNotFound, fmt::format("node {} is not registered: register", beat.node)), ctx);
  }
  if (std::string problem = Beyond(model::kMostParts, "used", beat.used); !problem.empty()) {
    return Answer(request, InvalidArgument(std::move(problem)), ctx);
  }
  p_.health.OnHeartbeat(beat.node, beat.used, ctx.now);
  for (size_t i = 0; i < std::min(beat.usage.size(), beat.usage_of.size()); ++i) {
    const WorkloadRecord* workload = p_.copy.Find<WorkloadRecord>(beat.usage_of[i]);
    if (workload != nullptr && workload->workload.assigned_node == beat.node) {
      p_.reconciler.OnUsage(beat.usage_of[i], beat.usage[i]);
    }
  }
  if (p_.standing.active()) {
    p_.reconciler.OnReported(beat.node, beat.statuses, beat.statuses_complete);
    p_.orphans.OnReported(beat.node, beat.statuses, beat.statuses_complete, ctx);
  }
  Answer(request,
         contract::HeartbeatAck{.drain_node = record->drain.has_value(),
                                .lease_expires_at = ctx.now.wall + p_.config.node_timeout},
         ctx);
}

// Nothing if the record is about to change: the answer waits for that to be durable.
std::optional<contract::Done> Requests::Unchanged(const std::string& node) const {
  if (p_.drafts.state().drafts.contains(NodeObject(node))) return std::nullopt;
  return contract::Done{.message = "unchanged", .store_revision = p_.copy.RevisionOf(NodeObject(node))};
}

Requests::Outcome Requests::Change(const contract::CordonNode& body, Waiter&, StepContext&) {
  const NodeRecord* before = p_.drafts.Find<NodeRecord>(body.node);
  if (before == nullptr) return NoNode(body.node);
  const bool same =
      before->cordoned == body.cordoned && before->cordon_reason == body.reason && (body.cordoned || !before->drain);
  if (Status late = CheckOrder(*before, body.order, same); !late.ok()) return std::unexpected(late);
  if (same && body.order <= before->last_order) {
    if (auto unchanged = Unchanged(body.node)) return *std::move(unchanged);
  }
  auto& record = p_.drafts.Edit<NodeRecord>(body.node);
  record.cordoned = body.cordoned;
  record.cordon_reason = body.reason;
  if (!body.cordoned) record.drain.reset();
  record.last_order = std::max(record.last_order, body.order);
  return std::nullopt;
}

Requests::Outcome Requests::Change(const contract::DrainNode& body, Waiter&, StepContext&) {
  const NodeRecord* before = p_.drafts.Find<NodeRecord>(body.node);
  if (before == nullptr) return NoNode(body.node);
  DrainOrder drain{
      .reason = body.reason, .instruction = body.instruction, .grace = body.grace, .deadline = body.deadline};
  const bool same = before->cordoned && before->cordon_reason == body.reason && before->drain == drain;
  if (Status late = CheckOrder(*before, body.order, same); !late.ok()) return std::unexpected(late);
  if (same && body.order != 0 && body.order == before->last_order) {
    if (auto unchanged = Unchanged(body.node)) return *std::move(unchanged);
  }
  auto& record = p_.drafts.Edit<NodeRecord>(body.node);
  record.cordoned = true;
  record.cordon_reason = body.reason;
  record.drain = std::move(drain);
  record.last_order = std::max(record.last_order, body.order);
  return std::nullopt;
}

Requests::Outcome Requests::Change(const contract::AcceptNode& body, Waiter&, StepContext&) {
  if (p_.copy.Find<NodeRecord>(body.node) == nullptr) return NoNode(body.node);
  const size_t held = p_.orphans.Accept(body.node);
  if (held > 0 && !p_.calls.Has(body.node, "")) p_.calls.Enqueue({.kind = CallKind::kList, .node = body.node});
  return contract::Done{.message = fmt::format("{} workloads may be deleted there", held)};
}

Requests::Outcome Requests::DeleteNode(const contract::DeleteObject& body, StepContext&) {
  const size_t there = p_.copy.OnNode(body.name).size();
  if (there > 0 && !body.force) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("node {} has {} workloads: drain it first, or force", body.name, there));
  }
  p_.drafts.Remove(NodeObject(body.name));
  return std::nullopt;
}

}  // namespace muster::scheduler
