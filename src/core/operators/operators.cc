#include "core/operators/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/codec.h"
#include "base/overloaded.h"
#include "base/probe.h"
#include "contract/core.h"
#include "model/requirement.h"

namespace muster::operators {
namespace {

constexpr Duration kReviewPause = 1s;
constexpr Duration kUnaskedGrace = 10min;            // as the shard gives to what it reclaims
constexpr size_t kMostReported = 1000;               // kinds of machines; a scheduler takes no more
constexpr uint64_t kOrderLimit = uint64_t{1} << 61;  // no clock reaches it, and a scheduler takes what follows it
constexpr int kReportsMissed = 3;                    // a report holds for so many intervals

// States in which the machine is, or is about to stop being, a node of the cluster.
bool Serves(model::MachineState state) {
  return state == model::MachineState::kConfigured || state == model::MachineState::kDraining;
}

// On its way to become a node.
bool Comes(model::MachineState state) {
  return state == model::MachineState::kCreating || state == model::MachineState::kConfiguring;
}

}  // namespace

static_assert(contract::Core<Core>);

Core::Core(Config config) {
  state_.demand = Demand(config.cluster, config.stuck_after, config.correction_hold);
  state_.config = std::move(config);
}

std::optional<Core> Core::Load(std::string_view saved) {
  auto state = codec::FromBytes<State>(saved);
  if (!state || state->layout != State{}.layout) return std::nullopt;
  return Core(*std::move(state));
}

std::string Core::Save() const { return codec::ToBytes(state_); }

void Core::Step(const Event& event, Now now, std::vector<Effect>& out) {
  std::visit(
      Overloaded{
          [&](const contract::Wake&) {},
          [&](const ClusterListed& listed) { OnListed(listed, now, out); },
          [&](const ClusterChanged& changed) { OnChanged(changed.change, now, out); },
          [&](const ClusterLost& lost) {
            out.emplace_back(Notice{.what = "the scheduler does not answer", .detail = lost.why.ToString()});
          },
          [&](const SessionOpened&) {
            state_.session = true;
            state_.rollup_at = now.mono;
            state_.report_at = now.mono;
            // The first roll-up carries what an earlier life had raised.
            if (!state_.demand.reviewed() && !MUTANT("operators.says_before_it_looks")) state_.review_at = now.mono;
            state_.announced.clear();
            state_.all_announced.reset();
          },
          [&](const SessionClosed& closed) {
            state_.session = false;
            out.emplace_back(Notice{.what = "the session with the shard has ended", .detail = closed.why.ToString()});
          },
          [&](const Received& received) { OnReceived(received.message, now, out); },
          [&](const CallDone& done) { OnCallDone(done, now, out); },
          [&](const DemandTakenUp& before) {
            state_.demand.TakeUp(before.needs, now.mono);
            Gather(now);
          },
      },
      event);
  ForgetNodes(now);
  StartJobs(now, out);
  Acknowledge(out);
  ReviewDemand(now, out);
  SendRollup(now, out);
  ReportMachines(now, out);
}

// --- the cluster

void Core::OnListed(const ClusterListed& listed, Now now, std::vector<Effect>& out) {
  // What waits is asked again how long it has waited: a list gives no history. Corrections stay.
  std::set<std::string> known;
  for (const contract::NodeView& node : listed.nodes) known.insert(node.node);
  std::erase_if(state_.nodes, [&](const auto& node) {
    if (known.contains(node.first)) return false;
    state_.demand.RemoveNode(node.first);
    return true;
  });
  if (!MUTANT("operators.list_keeps_gone")) state_.demand.RemoveWorkloadsBut(listed.workloads);
  // A record may have gone and come anew since the last list.
  for (const std::string& node : state_.jobs | std::views::keys) ForgetOrder(node);
  for (const contract::NodeView& node : listed.nodes) OnNode(node, now);
  for (const contract::WorkloadView& view : listed.workloads) OnWorkload(view.workload, view, now, out);
  state_.listed = true;
  Gather(now);
}

void Core::OnNode(const contract::NodeView& node, Now now) {
  SetComing(node.node, nullptr, now);
  Node& known = state_.nodes[node.node];
  known.drained = !node.drain_instruction.empty();
  known.cordoned = node.cordoned;
  known.ready = node.status == model::NodeStatus::kReady;
  if (node.last_order < kOrderLimit) state_.last_order = std::max(state_.last_order, node.last_order);
  // Somebody took the drain back, though its machine goes.
  if (const auto job = state_.jobs.find(node.node);
      job != state_.jobs.end() && job->second.drained && !known.drained && node.last_order >= job->second.order) {
    job->second.drained = false;
  }
  const auto machine = state_.machines.find(node.node);
  if (state_.announced.contains(node.node) && machine != state_.machines.end() && !state_.jobs.contains(node.node)) {
    const bool kept = machine->second == model::MachineState::kConfigured;
    const bool goes = machine->second == model::MachineState::kDraining;
    // An instruction of another time: the shard has named the machine since, and keeps it.
    if (known.drained && kept && !MUTANT("operators.stays_cordoned")) {
      SetJob(node.node, NodeJob{.job = Job::kUncordon});
    }
    if (!known.drained && goes && !MUTANT("operators.draining_is_kept")) DrainUnasked(node.node, now);
  }
  known.of_fleet |= known.drained || state_.machines.contains(node.node) ||
                    node.labels.contains(std::string(model::kInstanceTypeKey));
  known.capacity = {.total = node.total, .labels = node.labels, .usable = known.ready && !known.cordoned};
  CountNode(node.node);
}

// Whether the shard counts the machine of a node that takes nothing. Until it has named its machines, one that was a
// machine is taken for one.
bool Core::IsBound(const std::string& id, const Node& node) const {
  const auto machine = state_.machines.find(id);
  if (machine == state_.machines.end()) {
    return node.of_fleet && !state_.all_announced && !state_.announced.contains(id);
  }
  return machine->second == model::MachineState::kConfigured;
}

void Core::CountNode(const std::string& id) {
  const auto at = state_.nodes.find(id);
  if (at == state_.nodes.end()) return;
  const Node& node = at->second;
  // What the fleet drains, it does not count any more.
  const bool barred = !node.drained && IsBound(id, node) && !MUTANT("operators.barred_node_is_forgotten");
  if (node.capacity.usable || barred) {
    state_.demand.SetNode(id, node.capacity);
  } else {
    state_.demand.RemoveNode(id);
  }
}

void Core::OnWorkload(const std::string& id, const contract::WorkloadView& view, Now now, std::vector<Effect>& out) {
  const std::string before = state_.demand.LeftOutBy(id);
  state_.demand.SetWorkload(id, view, now.mono);
  std::string after = state_.demand.LeftOutBy(id);
  // Once: a workload changes often, and each change brings it here.
  if (after.empty() || after == before) return;
  out.emplace_back(Notice{.what = "the fleet is not asked for a workload", .subject = id, .detail = std::move(after)});
}

void Core::OnChanged(const contract::ObjectChanged& change, Now now, std::vector<Effect>& out) {
  if (change.kind == contract::ObjectKind::kWorkload) {
    if (const auto* view = std::get_if<contract::WorkloadView>(&change.now)) {
      OnWorkload(change.name, *view, now, out);
    } else {
      state_.demand.RemoveWorkload(change.name);
    }
    Gather(now);
  } else if (change.kind == contract::ObjectKind::kNode) {
    if (const auto* view = std::get_if<contract::NodeView>(&change.now)) {
      OnNode(*view, now);
    } else {
      state_.nodes.erase(change.name);
      state_.demand.RemoveNode(change.name);
      ForgetOrder(change.name);
    }
    Gather(now);
  }
}

// --- the shard

void Core::OnReceived(const contract::ShardMessage& message, Now now, std::vector<Effect>& out) {
  std::visit(Overloaded{
                 [&](const contract::Acknowledgement& ack) {
                   if (!ack.echo.starts_with("rollup")) return;
                   state_.last_echo = ack.echo;
                   // The first roll-up went after the shard had named its machines.
                   if (state_.all_announced) return;
                   state_.all_announced = now.mono;
                   std::erase_if(state_.machines,
                                 [&](const auto& machine) { return !state_.announced.contains(machine.first); });
                   std::erase_if(state_.coming,
                                 [&](const auto& machine) { return !state_.announced.contains(machine.first); });
                   for (const std::string& node : state_.nodes | std::views::keys) CountNode(node);
                   state_.report_at = now.mono;
                 },
                 [&](const contract::BootstrapRequest& request) {
                   out.emplace_back(GiveBlob{.request_id = request.request_id});
                 },
                 [&](const contract::ReclaimInstruction& instruction) { OnReclaim(instruction, now); },
                 [&](const contract::NodeStateUpdate& update) { OnMachine(update, now, out); },
                 [](const contract::AvailableCapacity&) {},
             },
             message);
}

void Core::OnReclaim(const contract::ReclaimInstruction& instruction, Now now) {
  Reclaim& reclaim = state_.reclaims[instruction.instruction_id];
  reclaim.acknowledged = false;
  reclaim.nodes = instruction.nodes;
  const Duration grace = std::chrono::seconds(instruction.grace_period_seconds);
  for (const std::string& node : instruction.nodes) {
    const auto job = state_.jobs.find(node);
    const bool there = job != state_.jobs.end() && job->second.job == Job::kDrain &&
                       job->second.instruction == instruction.instruction_id;
    if (there) continue;
    SetJob(node, NodeJob{.job = Job::kDrain,
                         .instruction = instruction.instruction_id,
                         .grace = grace,
                         .deadline = now.wall + grace});
  }
}

void Core::OnMachine(const contract::NodeStateUpdate& update, Now now, std::vector<Effect>& out) {
  const std::string& id = update.machine_id;
  state_.announced.insert(id);
  if (const auto known = state_.nodes.find(id); known != state_.nodes.end()) known->second.of_fleet = true;
  if (Serves(update.state) || Comes(update.state)) {
    state_.machines[id] = update.state;
  } else {
    state_.machines.erase(id);
  }
  CountNode(id);
  // Configured, and its agent has not joined yet: it is on its way too.
  const bool comes = Comes(update.state) || update.state == model::MachineState::kConfigured;
  SetComing(id, comes && !state_.nodes.contains(id) ? &update : nullptr, now);
  if (update.state == model::MachineState::kFailed) {
    out.emplace_back(Notice{.what = "a machine of the cluster failed", .subject = id, .detail = update.last_error});
  }
  const auto node = state_.nodes.find(id);
  const bool drained = node != state_.nodes.end() && node->second.drained;
  const auto job = state_.jobs.find(id);
  const bool drains = job != state_.jobs.end() && job->second.job == Job::kDrain;
  const bool early = MUTANT("operators.deletes_draining_node") && update.state == model::MachineState::kDraining;
  if (!early && (Serves(update.state) || Comes(update.state))) {
    if (update.state == model::MachineState::kConfigured && (drained || drains)) {
      // It is kept, whatever was said before; an instruction that still holds comes again.
      if (!MUTANT("operators.stays_cordoned")) KeepMachine(id);
    } else if (update.state == model::MachineState::kDraining && node != state_.nodes.end() && !drains) {
      // What was told to be kept may be uncordoned at any moment.
      const bool keeps = job != state_.jobs.end() && job->second.job == Job::kUncordon;
      if (!drained || (keeps && !MUTANT("operators.draining_is_kept"))) DrainUnasked(id, now);
    }
  } else if (!MUTANT("operators.keeps_nodes")) {
    SetJob(id, NodeJob{.job = Job::kDelete});
  }
  state_.review_at = now.mono;
}

// --- jobs

void Core::SetJob(const std::string& node, NodeJob job) {
  if (const auto before = state_.jobs.find(node); before != state_.jobs.end() && !MUTANT("operators.orders_overtake")) {
    job.after = before->second.call ? before->second.call : before->second.after;
  }
  state_.jobs.insert_or_assign(node, std::move(job));
}

// The machine drains, and no instruction was heard, or what was heard was taken back meanwhile.
void Core::DrainUnasked(const std::string& node, Now now) {
  SetJob(
      node,
      NodeJob{
          .job = Job::kDrain, .instruction = "draining", .grace = kUnaskedGrace, .deadline = now.wall + kUnaskedGrace});
}

void Core::ForgetOrder(const std::string& node) {
  if (const auto job = state_.jobs.find(node); job != state_.jobs.end() && job->second.drained) job->second.order = 0;
}

// The machine was repaired, say, before the scheduler took the order: what runs there now is not to be deleted.
bool Core::IsVoid(const std::string& node, const NodeJob& job) const {
  return job.job == Job::kDelete && state_.machines.contains(node) && !MUTANT("operators.deletes_draining_node");
}

void Core::KeepMachine(const std::string& id) {
  if (!MUTANT("operators.acks_void_instruction")) {
    for (Reclaim& reclaim : state_.reclaims | std::views::values) std::erase(reclaim.nodes, id);
    std::erase_if(state_.reclaims, [](const auto& reclaim) { return reclaim.second.nodes.empty(); });
  }
  SetJob(id, NodeJob{.job = Job::kUncordon});
}

uint64_t Core::NextOrder(Now now) {
  const auto moment = static_cast<uint64_t>(std::max<int64_t>(0, now.wall.time_since_epoch() / 1us));
  return state_.last_order = std::max(state_.last_order + 1, moment);
}

void Core::StartJobs(Now now, std::vector<Effect>& out) {
  std::erase_if(state_.jobs, [this](const auto& entry) {
    const NodeJob& job = entry.second;
    return !job.call && !job.after && IsVoid(entry.first, job);
  });
  if (!state_.listed) return;
  for (auto& [node, job] : state_.jobs) {
    if (job.call || job.after || job.drained || (job.not_before && *job.not_before > now.mono)) continue;
    job.not_before.reset();
    job.call = ++state_.last_call;
    job.order = NextOrder(now);
    contract::ClusterRequest request;
    switch (job.job) {
      case Job::kDrain:
        request = contract::DrainNode{.node = node,
                                      .grace = job.grace,
                                      .reason = "the fleet reclaims the machine",
                                      .instruction = job.instruction,
                                      .deadline = job.deadline,
                                      .order = job.order};
        break;
      case Job::kUncordon:
        request = contract::CordonNode{
            .node = node, .cordoned = false, .reason = "the fleet keeps the machine", .order = job.order};
        break;
      case Job::kDelete:
        request = contract::DeleteObject{.kind = contract::ObjectKind::kNode, .name = node, .force = true};
        break;
    }
    out.emplace_back(
        Call{.id = *job.call, .to = "scheduler", .request = std::move(request), .timeout = state_.config.call_timeout});
  }
}

void Core::OnCallDone(const CallDone& done, Now now, std::vector<Effect>& out) {
  if (state_.report_call == done.id) {
    state_.report_call.reset();
    if (done.status.ok()) return;
    state_.reported = true;  // whether it arrived is not known
    if (!state_.report_at) state_.report_at = now.mono + state_.config.rollup_interval;
    return;
  }
  const auto at = std::ranges::find_if(state_.jobs, [&](const auto& entry) { return entry.second.call == done.id; });
  if (at == state_.jobs.end()) {
    // Another job took its place, and can begin.
    const auto next = std::ranges::find_if(state_.jobs, [&](const auto& job) { return job.second.after == done.id; });
    if (next != state_.jobs.end()) next->second.after.reset();
    return;
  }
  auto& [node, job] = *at;
  job.call.reset();
  // A node that the scheduler does not know is as good as drained, uncordoned and deleted.
  if (!done.status.ok() && done.status.code() != Code::kNotFound) {
    job.not_before = now.mono + state_.config.retry_after;
    out.emplace_back(Notice{
        .what = "the scheduler refused an order of the fleet", .subject = node, .detail = done.status.ToString()});
    return;
  }
  if (job.job == Job::kDrain) {
    job.drained = true;
    // An agent that joins later does so with a record that was never drained.
    if (!done.status.ok() || !state_.nodes.contains(node)) ForgetOrder(node);
    return;
  }
  // Who tells of changes may be behind: the node would be found left over again, and at once.
  const auto known = state_.nodes.find(node);
  if (job.job == Job::kDelete && known != state_.nodes.end() && !MUTANT("operators.deleted_node_stays")) {
    known->second.deleted = now.mono;
  }
  state_.jobs.erase(at);
}

void Core::Acknowledge(std::vector<Effect>& out) {
  for (auto at = state_.reclaims.begin(); at != state_.reclaims.end();) {
    auto& [id, reclaim] = *at;
    int32_t started = 0;
    bool open = false;  // a node of it is not cordoned yet
    bool live = false;  // a node of it is still being drained
    for (const std::string& node : reclaim.nodes) {
      const auto job = state_.jobs.find(node);
      if (job == state_.jobs.end() || job->second.instruction != id) continue;
      live = true;
      if (job->second.drained) ++started;
      open |= !job->second.drained && !MUTANT("operators.acks_before_cordon");
    }
    if (!open && !reclaim.acknowledged && state_.session) {
      out.emplace_back(Send{.message = contract::ReclaimAck{.instruction_id = id, .nodes_started = started}});
      reclaim.acknowledged = true;
    }
    at = !live && reclaim.acknowledged ? state_.reclaims.erase(at) : std::next(at);
  }
}

std::optional<MonoTime> Core::LeftOverAt(const std::string& id, const Node& node) const {
  if (!state_.session || !state_.all_announced) return std::nullopt;
  if (!node.of_fleet || node.ready || state_.machines.contains(id)) return std::nullopt;
  // A drain that is done and waits for its machine to go says nothing: the machine has gone.
  const auto job = state_.jobs.find(id);
  const bool waits = job != state_.jobs.end() && (!job->second.drained || MUTANT("operators.keeps_nodes"));
  if (waits) return std::nullopt;
  return std::max(*state_.all_announced, node.deleted.value_or(*state_.all_announced)) + state_.config.forget_after;
}

void Core::ForgetNodes(Now now) {
  for (const auto& [id, node] : state_.nodes) {
    const std::optional<MonoTime> at = LeftOverAt(id, node);
    if (at && *at <= now.mono) SetJob(id, NodeJob{.job = Job::kDelete});
  }
}

// --- demand

void Core::Gather(Now now) {
  const MonoTime at = now.mono + state_.config.settle;
  if (!state_.rollup_at || *state_.rollup_at > at) state_.rollup_at = at;
  if (!state_.review_at || *state_.review_at > at) state_.review_at = at;
}

void Core::SetComing(const std::string& id, const contract::NodeStateUpdate* update, Now now) {
  bool changed = false;
  if (update == nullptr) {
    changed = state_.coming.erase(id) > 0;
  } else {
    contract::ComingMachine machine{.resources = update->resources};
    for (const auto& [key, value] : update->labels) machine.labels.emplace(key, value);
    for (const contract::Taint& taint : update->taints) {
      machine.taints.push_back({.key = taint.key, .value = taint.value, .effect = taint.effect});
    }
    const auto [at, is_new] = state_.coming.try_emplace(id, machine);
    changed = is_new || at->second != machine;
    at->second = std::move(machine);
  }
  const MonoTime soon = now.mono + state_.config.settle;
  if (changed && (!state_.report_at || *state_.report_at > soon)) state_.report_at = soon;
}

// Without a session nothing is said, and what was said expires: whether machines still come is not known.
void Core::ReportMachines(Now now, std::vector<Effect>& out) {
  if (!state_.session || !state_.listed || state_.report_call || !state_.report_at || *state_.report_at > now.mono)
    return;
  state_.report_at.reset();
  if (state_.coming.empty() && !state_.reported) return;
  contract::ReportMachines report{.valid_for = kReportsMissed * state_.config.rollup_interval};
  std::set<std::string> said;  // equal ones once
  for (const contract::ComingMachine& machine : state_.coming | std::views::values) {
    if (said.size() < kMostReported && said.insert(codec::ToBytes(machine)).second) report.machines.push_back(machine);
  }
  state_.reported = !report.machines.empty();
  if (state_.reported) state_.report_at = now.mono + state_.config.rollup_interval;
  state_.report_call = ++state_.last_call;
  out.emplace_back(Call{.id = *state_.report_call,
                        .to = "scheduler",
                        .request = std::move(report),
                        .timeout = state_.config.call_timeout});
}

bool Core::MachinesOnTheirWay() const {
  return std::ranges::any_of(state_.machines, [this](const auto& machine) {
    return Comes(machine.second) ||
           (machine.second == model::MachineState::kConfigured && !state_.nodes.contains(machine.first));
  });
}

void Core::ReviewDemand(Now now, std::vector<Effect>& out) {
  if (!state_.listed || !state_.review_at || *state_.review_at > now.mono) return;
  const std::map<std::string, std::string> before = state_.demand.helpless();
  const std::vector<std::string> changes = state_.demand.Review(MachinesOnTheirWay(), now.mono);
  for (const std::string& change : changes) {
    out.emplace_back(Notice{.what = "demand was corrected", .subject = state_.config.cluster, .detail = change});
  }
  for (const auto& [workload, reason] : state_.demand.helpless()) {
    if (before.contains(workload)) continue;
    out.emplace_back(Notice{.what = "another machine does not help a workload",
                            .subject = workload,
                            .detail = fmt::format("an empty node refuses it too: {}", reason)});
  }
  if (!changes.empty()) state_.rollup_at = now.mono;
  const std::optional<MonoTime> next = state_.demand.NextReview();
  state_.review_at = next ? std::optional(std::max(*next, now.mono + kReviewPause)) : std::nullopt;
}

void Core::SendRollup(Now now, std::vector<Effect>& out) {
  if (!state_.session || !state_.rollup_at || *state_.rollup_at > now.mono) return;
  if (!state_.listed && !MUTANT("operators.says_nothing_first")) {
    state_.rollup_at.reset();  // the list makes the next one due
    return;
  }
  out.emplace_back(Send{.message = contract::Rollup{.cluster_id = state_.config.cluster,
                                                    .timestamp = now.wall,
                                                    .rows = contract::NeedRows(state_.demand.Needs())}});
  ++state_.rollups;
  state_.rollup_at = now.mono + state_.config.rollup_interval;
}

std::optional<MonoTime> Core::NextWake() const {
  std::optional<MonoTime> next;
  const auto at = [&next](const std::optional<MonoTime>& moment) {
    if (moment) next = next ? std::min(*next, *moment) : *moment;
  };
  if (state_.session) at(state_.rollup_at);
  for (const auto& [id, node] : state_.nodes) at(LeftOverAt(id, node));
  if (state_.session && state_.listed && !state_.report_call) at(state_.report_at);
  if (state_.listed) {
    at(state_.review_at);
    for (const NodeJob& job : std::views::values(state_.jobs)) {
      if (!job.call && !job.drained) at(job.not_before);
    }
  }
  return next;
}

std::shared_ptr<const Snapshot> Core::View() const {
  auto view = std::make_shared<Snapshot>();
  view->session = state_.session;
  view->cluster_known = state_.listed;
  view->rollups = state_.rollups;
  view->last_echo = state_.last_echo;
  view->needs = state_.demand.Needs();
  view->left_out = static_cast<int64_t>(state_.demand.left_out());
  for (const auto& [key, correction] : state_.demand.corrections()) {
    if (correction.extra.empty()) continue;
    view->corrections.push_back(
        {.fingerprint = key.fingerprint, .group = key.group, .extra = correction.extra, .stuck = correction.stuck});
  }
  view->helpless = state_.demand.helpless();
  for (const auto& [id, reclaim] : state_.reclaims) {
    view->reclaims.push_back({.instruction = id, .nodes = reclaim.nodes, .acknowledged = reclaim.acknowledged});
  }
  view->machines = state_.machines;
  return view;
}

void Core::CheckInvariants() const {
  state_.demand.CheckInvariants();
  std::set<contract::CallId> calls;
  for (const auto& [node, job] : state_.jobs) {
    if (job.call) MUSTER_CHECK(calls.insert(*job.call).second, "two jobs wait for call {}", *job.call);
    MUSTER_CHECK(job.job == Job::kDrain || !job.drained, "a job of {} that is no drain is drained", node);
  }
  for (const auto& [machine, state] : state_.machines) {
    MUSTER_CHECK(Serves(state) || Comes(state), "machine {} is kept as {}", machine, model::StateName(state));
  }
}

}  // namespace muster::operators
