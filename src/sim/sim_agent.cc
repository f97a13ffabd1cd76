#include "sim/sim_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::sim {

using contract::ActualState;

SimAgent::SimAgent(Kernel& kernel, Options options, uint64_t stream, World world)
    : kernel_(kernel), options_(std::move(options)), rng_(kernel.ForkRng(stream)), world_(std::move(world)) {}

void SimAgent::Start() {
  if (alive_) return;
  alive_ = true;
  ++life_;
  registered_ = false;
  Register();
  Beat();
}

void SimAgent::Crash(bool node_too) {
  alive_ = false;
  ++life_;
  if (node_too) running_.clear();
}

// --- towards the scheduler

void SimAgent::Register() {
  contract::RegisterNode request;
  request.facts = {.node = options_.node,
                   .endpoint = fmt::format("{}.example:50051", options_.node),
                   .agent_version = "sim",
                   .total = {{"cpu", options_.cpu_milli}, {"memory", options_.memory * 1000}},
                   .supported_types = options_.types,
                   .labels = {{"zone", options_.zone}, {"kubernetes.io/hostname", options_.node}},
                   .native = options_.native};
  request.facts.supported_types.insert(request.facts.supported_types.end(), options_.claims.begin(),
                                       options_.claims.end());
  if (options_.native) {
    request.running = AllStatuses();
    request.epoch = epoch_;
  }
  world_.ask(std::move(request),
             [this, life = life_](Result<contract::ClusterReply> reply) { OnRegistered(reply, life); });
}

void SimAgent::OnRegistered(const Result<contract::ClusterReply>& reply, uint64_t life) {
  if (!alive_ || life != life_ || !reply) return;
  const auto& answer = std::get<contract::NodeRegistered>(*reply);
  if (!answer.accepted || (registered_ && answer.state.epoch < epoch_)) return;
  registered_ = true;
  interval_ = std::max<Duration>(answer.heartbeat_interval, 100ms);
  if (!options_.native) return;
  epoch_ = answer.state.epoch;
  std::set<std::string> listed;
  for (const contract::ApplyOnAgent& apply : answer.state.workloads) {
    listed.insert(apply.workload);
    if (CheckStamp(apply.workload, apply.stamp).ok()) Launch(apply);
  }
  if (answer.state.remove_others) {
    std::erase_if(running_, [&](const auto& entry) { return !listed.contains(entry.first); });
  }
}

void SimAgent::Beat() {
  if (!alive_) return;
  kernel_.After(interval_, [this, life = life_] {
    if (life == life_) Beat();
  });
  if (!registered_) return Register();
  if (!running_.empty() && Chance(faults_.vanishes_per_mille)) {
    auto at = running_.begin();
    std::advance(at, static_cast<int64_t>(rng_.Below(running_.size())));
    running_.erase(at);
  }
  contract::Heartbeat beat{.node = options_.node, .epoch = options_.native ? epoch_ : 0, .statuses = AllStatuses()};
  if (Chance(faults_.lies_per_mille)) {
    beat.statuses.push_back({.workload = fmt::format("w{}", rng_.Below(12)),
                             .actual = rng_.Chance(1, 2) ? ActualState::kFailed : ActualState::kRunning,
                             .message = "a lie"});
  }
  world_.ask(std::move(beat), [this, life = life_](Result<contract::ClusterReply> reply) {
    if (alive_ && life == life_ && !reply && reply.error().code() == Code::kNotFound) registered_ = false;
  });
}

// --- from the scheduler

contract::WorkloadStatus SimAgent::StatusOf(const std::string& id) const {
  const Running& running = running_.at(id);
  return {.workload = id,
          .revision = running.revision,
          .wanted_running = running.run,
          .actual = running.actual,
          .message = running.message,
          .exit_code = running.exit_code,
          .stamp = running.stamp};
}

std::vector<contract::WorkloadStatus> SimAgent::AllStatuses() const {
  std::vector<contract::WorkloadStatus> all;
  for (const auto& [id, running] : running_) all.push_back(StatusOf(id));
  return all;
}

void SimAgent::Handle(const contract::AgentRequest& request, std::function<void(Result<contract::AgentReply>)> done) {
  if (!alive_ || Chance(faults_.hangs_per_mille)) return;
  kernel_.After(Duration(rng_.Between(0, Duration(20ms).count())),
                [this, life = life_, request, done = std::move(done)] {
                  if (alive_ && life == life_) done(Answer(request));
                });
}

Result<contract::AgentReply> SimAgent::Answer(const contract::AgentRequest& request) {
  if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&request)) return Apply(*apply);
  if (const auto* gone = std::get_if<contract::DeleteOnAgent>(&request)) return Delete(*gone);
  if (const auto* get = std::get_if<contract::GetStatusOnAgent>(&request)) {
    if (!running_.contains(get->workload)) return std::unexpected(Status(Code::kNotFound, "status not found"));
    return StatusOf(get->workload);
  }
  return contract::ListedOnAgent{.workloads = AllStatuses()};
}

Status SimAgent::CheckStamp(const std::string& workload, const contract::Stamp& stamp) {
  if (!options_.native) return {};
  contract::Stamp& last = last_stamps_[workload];
  if (stamp.epoch != epoch_ || stamp < last) {
    ++refused_stamps_;
    return {Code::kFailedPrecondition, "an older assignment"};
  }
  last = stamp;
  return {};
}

Result<contract::AgentReply> SimAgent::Apply(const contract::ApplyOnAgent& apply) {
  if (Status status = CheckStamp(apply.workload, apply.stamp); !status.ok()) return std::unexpected(std::move(status));
  if (std::ranges::find(options_.types, apply.spec.type) == options_.types.end()) {
    return contract::AppliedOnAgent{.applied = false, .message = "runtime not available: vm"};
  }
  if (apply.run && !running_.contains(apply.workload) && Chance(faults_.refuses_per_mille)) {
    return std::unexpected(Status(Code::kResourceExhausted, "the node is full"));
  }
  const auto there = running_.find(apply.workload);
  const bool same = there != running_.end() && there->second.revision == apply.revision &&
                    there->second.run == apply.run && there->second.actual != ActualState::kFailed;
  if (!same) Launch(apply);
  running_.at(apply.workload).stamp = apply.stamp;
  return contract::AppliedOnAgent{.applied = true, .skipped = same, .status = StatusOf(apply.workload)};
}

void SimAgent::Launch(const contract::ApplyOnAgent& apply) {
  Running& running = running_[apply.workload];
  const bool same = running.turn != 0 && running.revision == apply.revision && running.run == apply.run &&
                    running.actual != ActualState::kFailed;
  running.stamp = apply.stamp;
  if (same) return;
  running = {.revision = apply.revision,
             .actual = ActualState::kPending,
             .run = apply.run,
             .stamp = apply.stamp,
             .job = apply.spec.restart != model::RestartPolicy::kAlways,
             .turn = ++turns_};
  const bool fails = apply.run && (Chance(faults_.fails_per_mille) || apply.workload == faults_.always_fails);
  // The node does this, whether or not its agent lives meanwhile.
  kernel_.After(Duration(rng_.Between(0, Duration(2s).count())), [this, id = apply.workload, turn = running.turn,
                                                                  fails] {
    const auto at = running_.find(id);
    if (at == running_.end() || at->second.turn != turn) return;
    at->second.actual = !at->second.run ? ActualState::kStopped : fails ? ActualState::kFailed : ActualState::kRunning;
    if (fails) at->second.message = "exit code 1";
    if (fails) at->second.exit_code = 1;
    if (at->second.actual != ActualState::kRunning || !at->second.job) return;
    kernel_.After(Duration(rng_.Between(Duration(1s).count(), Duration(10s).count())), [this, id, turn] {
      const auto job = running_.find(id);
      if (job == running_.end() || job->second.turn != turn) return;
      job->second.actual = ActualState::kStopped;
      job->second.exit_code = 0;
    });
  });
}

Result<contract::AgentReply> SimAgent::Delete(const contract::DeleteOnAgent& gone) {
  if (Status status = CheckStamp(gone.workload, gone.stamp); !status.ok()) return std::unexpected(std::move(status));
  running_.erase(gone.workload);
  return contract::DeletedOnAgent{.success = true};
}

}  // namespace muster::sim
