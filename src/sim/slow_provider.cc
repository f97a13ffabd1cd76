#include "sim/slow_provider.h"

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace muster::sim {
namespace {

using model::MachineState;

constexpr Duration kLongestCall = 1s;  // until a call is looked at
constexpr Duration kLongestAck = 2s;   // from then until it is acknowledged
constexpr Duration kLongestList = 1500ms;
constexpr Duration kLongestMove = 4s;  // from one state to the next

}  // namespace

void SlowProvider::Put(model::Machine machine) {
  const std::string id = machine.id;
  machines_[id] = std::move(machine);
  changed_[id] = {++revision_, kernel_.now().mono};
}

void SlowProvider::SetState(const std::string& id, MachineState state) {
  model::Machine machine = machines_.at(id);
  machine.state = state;
  machine.last_error = state == MachineState::kFailed ? "not seen of late" : "";
  Put(std::move(machine));
}

void SlowProvider::Lose(const std::string& id) {
  machines_.erase(id);
  changed_.erase(id);
}

contract::ListReply SlowProvider::List(const contract::ListRequest& request) const {
  contract::ListReply reply{.revision = fmt::format("{}", revision_)};
  const uint64_t since = request.since_revision.empty() ? 0 : std::stoull(request.since_revision);
  const auto most = static_cast<size_t>(request.max_results);
  for (const auto& [id, machine] : machines_) {
    if (most > 0 && reply.machines.size() >= most) break;
    if (changed_.at(id).first > since) reply.machines.emplace_back(machine);
  }
  return reply;
}

Status SlowProvider::Begin(const std::string& id, const contract::ProviderRequest& request) {
  if (Status refused = Refusal(request); !refused.ok()) return refused;
  const auto found = machines_.find(id);
  if (found == machines_.end()) return {Code::kNotFound, "no such machine"};
  model::Machine machine = found->second;
  const bool failed = machine.state == MachineState::kFailed;
  if (const auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
    if (machine.state != MachineState::kIdle) return {Code::kAborted, "it is not Idle"};
    machine.state = MachineState::kConfiguring;
    machine.cluster = configure->cluster_id;
    machine.shard_metadata = configure->shard_metadata;
  } else if (std::holds_alternative<contract::CreateRequest>(request)) {
    if (machine.state != MachineState::kSpeculative) return {Code::kAborted, "it is not Speculative"};
    machine.state = MachineState::kCreating;
  } else if (std::holds_alternative<contract::DrainRequest>(request)) {
    if (machine.state != MachineState::kConfigured) return {Code::kAborted, "it is not Configured"};
    machine.state = MachineState::kDraining;
  } else {
    if (machine.state != MachineState::kIdle && !failed) return {Code::kAborted, "it is not Idle"};
    if (failed && refuses_deletes_) return {Code::kAborted, "it is Failed"};
    machine.state = MachineState::kDeleting;
    machine.cluster.clear();
    machine.shard_metadata.clear();
  }
  const MachineState during = machine.state;
  Put(std::move(machine));
  const Duration more = during == MachineState::kDraining ? drain_time_ : Duration::zero();
  kernel_.After(500ms + Draw(kLongestMove) + more, [this, id, during] { End(id, during); });
  return {};
}

void SlowProvider::End(const std::string& id, MachineState during) {
  const auto found = machines_.find(id);
  if (found == machines_.end() || found->second.state != during) return;
  model::Machine machine = found->second;
  if (const std::string error = hooks_.breaks ? hooks_.breaks(machine) : ""; !error.empty()) {
    machine.state = MachineState::kFailed;
    machine.last_error = error;
    machine.host = {.provider = "sim", .ref = id};
    if (hooks_.ended) hooks_.ended(machine);
    return Put(std::move(machine));
  }
  switch (during) {
    case MachineState::kCreating:
      machine.state = MachineState::kIdle;
      machine.host = {.provider = "sim", .ref = id};
      break;
    case MachineState::kConfiguring: machine.state = MachineState::kConfigured; break;
    case MachineState::kDraining:
      machine.state = MachineState::kIdle;
      machine.cluster.clear();
      machine.shard_metadata.clear();
      break;
    default:
      machine.state = MachineState::kSpeculative;
      machine.host = {};
      machine.last_error.clear();
      break;
  }
  if (hooks_.ended) hooks_.ended(machine);
  Put(std::move(machine));
}

void SlowProvider::Ask(const shard::Core::Call& call, Done done) {
  std::visit(
      [&](const auto& request) {
        using Request = std::decay_t<decltype(request)>;
        shard::Core::CallDone answer{.id = call.id};
        if constexpr (std::is_same_v<Request, contract::ListRequest>) {
          kernel_.After(Draw(kLongestList), [this, request, answer, done]() mutable {
            answer.status = Refusal(request);
            if (answer.status.ok()) answer.reply = List(request);
            done(answer);
          });
        } else if constexpr (std::is_same_v<Request, contract::GetRequest>) {
          kernel_.After(Draw(kLongestCall), [this, request, answer, done]() mutable {
            answer.status = Refusal(request);
            if (answer.status.ok() && !machines_.contains(request.machine_id)) {
              answer.status = Status(Code::kNotFound, "no such machine");
            }
            if (answer.status.ok()) {
              answer.reply = contract::GetReply{contract::MachineRecord(machines_.at(request.machine_id))};
            }
            done(answer);
          });
        } else if constexpr (requires { request.fence; }) {
          asked_.insert(request.machine_id);
          if (hooks_.hangs && hooks_.hangs(request.machine_id)) {
            kernel_.After(call.timeout, [this, id = request.machine_id, answer, done]() mutable {
              asked_.erase(id);
              answer.status = Status(Code::kDeadlineExceeded, "no answer");
              done(answer);
            });
            return;
          }
          kernel_.After(Draw(kLongestCall), [this, request, answer, done]() mutable {
            answer.status = Begin(request.machine_id, request);
            if (answer.status.ok()) {
              answer.reply = contract::TransitionAck{
                  .operation_id = "op", .machine = contract::MachineRecord(machines_.at(request.machine_id))};
            }
            kernel_.After(Draw(kLongestAck), [this, id = request.machine_id, answer, done] {
              asked_.erase(id);
              done(answer);
            });
          });
        }
      },
      call.request);
}

}  // namespace muster::sim
