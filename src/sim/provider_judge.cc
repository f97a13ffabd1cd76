#include "sim/provider_judge.h"

#include <fmt/format.h>

#include "base/codec.h"

namespace muster::sim {
namespace {

using contract::OperationKind;

struct Transition {
  std::string machine;
  contract::FenceToken fence;
  OperationKind kind = OperationKind::kCreate;
};

std::optional<Transition> TransitionOf(const contract::ProviderRequest& request) {
  if (const auto* r = std::get_if<contract::CreateRequest>(&request))
    return {{r->machine_id, r->fence, OperationKind::kCreate}};
  if (const auto* r = std::get_if<contract::ConfigureRequest>(&request))
    return {{r->machine_id, r->fence, OperationKind::kConfigure}};
  if (const auto* r = std::get_if<contract::DrainRequest>(&request))
    return {{r->machine_id, r->fence, OperationKind::kDrain}};
  if (const auto* r = std::get_if<contract::DeleteRequest>(&request))
    return {{r->machine_id, r->fence, OperationKind::kDelete}};
  return std::nullopt;
}

std::string Binding(const std::string& cluster, const std::map<std::string, std::string>& metadata) {
  return codec::ToBytes(std::pair(cluster, metadata));
}

template <class T>
std::optional<T> DurableRow(const contract::Recovered& durable, const std::string& key) {
  const auto row = durable.find(key);
  return row == durable.end() ? std::nullopt : codec::FromBytes<T>(row->second);
}

// Of one shard, on whatever machine; tokens by shard and machine.
template <class Tokens>
int64_t NewestEpoch(const Tokens& tokens, const std::string& shard) {
  int64_t newest = 0;
  for (auto it = tokens.lower_bound({shard, ""}); it != tokens.end() && it->first.first == shard; ++it) {
    newest = std::max(newest, it->second.first);
  }
  return newest;
}

}  // namespace

ProviderJudge::Delivered ProviderJudge::Deliver(const contract::ProviderRequest& request) {
  Delivered delivered{.request = request, .number = ++deliveries_, .may_be_fenced = false};
  const auto transition = TransitionOf(request);
  if (!transition) return delivered;
  const Token token{transition->fence.epoch, transition->fence.sequence};
  const auto [newest, first] = delivered_.emplace(Whose{transition->fence.shard_id, transition->machine}, token);
  if (!first) {
    delivered.may_be_fenced = newest->second >= token;
    newest->second = std::max(newest->second, token);
  }
  // A newer epoch of a shard fences an older one on every machine.
  delivered.may_be_fenced |= NewestEpoch(delivered_, transition->fence.shard_id) > token.first;
  if (const auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
    bindings_[configure->machine_id].insert(Binding(configure->cluster_id, configure->shard_metadata));
  }
  if (transition->kind == OperationKind::kDelete) last_delete_[transition->machine] = deliveries_;
  return delivered;
}

void ProviderJudge::Answered(const Delivered& delivered, const provider::Answer& answer,
                             const contract::Recovered& durable) {
  const auto* ack = answer.reply ? std::get_if<contract::TransitionAck>(&*answer.reply) : nullptr;
  if (ack != nullptr) CheckAck(delivered.request, *ack, durable);
  CheckFence(delivered, answer, durable);
  if (!answer.reply) return;
  if (ack != nullptr) {
    CheckRecord(*ack->machine, delivered.number);
  } else if (const auto* got = std::get_if<contract::GetReply>(&*answer.reply)) {
    CheckRecord(*got->machine, delivered.number);
  } else {
    const auto& list = std::get<contract::ListReply>(*answer.reply);
    for (const contract::MachineRecord& machine : list.machines) CheckRecord(*machine, delivered.number);
    const int32_t cap = std::get<contract::ListRequest>(delivered.request).max_results;
    Check(cap == 0 || list.machines.size() <= static_cast<size_t>(cap),
          [&] { return fmt::format("a list capped at {} has {} machines", cap, list.machines.size()); });
  }
}

void ProviderJudge::CheckFence(const Delivered& delivered, const provider::Answer& answer,
                               const contract::Recovered& durable) {
  const auto transition = TransitionOf(delivered.request);
  if (!transition) return;
  const Whose whose{transition->fence.shard_id, transition->machine};
  const Token token{transition->fence.epoch, transition->fence.sequence};
  const auto name = [&] {
    return fmt::format("({}, {}) of {} on {}", token.first, token.second, whose.first, whose.second);
  };
  if (answer.status.code() == Code::kFailedPrecondition) {
    return Check(delivered.may_be_fenced, [&] { return name() + " was fenced, though nothing as new came before it"; });
  }
  const auto [newest, first] = passed_.emplace(whose, token);
  Check(first || newest->second < token, [&] {
    return fmt::format("{} passed after ({}, {}) had", name(), newest->second.first, newest->second.second);
  });
  newest->second = std::max(newest->second, token);
  const int64_t epoch = NewestEpoch(passed_, whose.first);
  Check(epoch == token.first, [&] { return fmt::format("{} passed after epoch {} had", name(), epoch); });
  const auto mark = DurableRow<provider::Mark>(durable, provider::kMarks.RowKey(whose));
  Check(mark && Token{mark->epoch, mark->sequence} >= token,
        [&] { return name() + " was answered before its mark was durable"; });
}

void ProviderJudge::CheckAck(const contract::ProviderRequest& request, const contract::TransitionAck& ack,
                             const contract::Recovered& durable) {
  const auto transition = TransitionOf(request);
  const std::pair what{transition->machine, transition->kind};
  const auto [known, first] = operations_.emplace(ack.operation_id, what);
  Check(known->second == what, [&] { return fmt::format("operation {} has two meanings", ack.operation_id); });
  const auto row = DurableRow<provider::MachineRow>(durable, provider::kMachines.RowKey(transition->machine));
  Check(row.has_value() && row->operations != provider::Operations{},
        [&] { return fmt::format("operation {} was answered before it was durable", ack.operation_id); });
  const model::Machine& machine = *ack.machine;
  Check(machine.id == transition->machine,
        [&] { return fmt::format("asked for {}, got {}", transition->machine, machine.id); });
  if (const auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
    Check(machine.cluster == configure->cluster_id, [&] {
      return fmt::format("{} was acknowledged to {} while bound to {}", machine.id, configure->cluster_id,
                         machine.cluster);
    });
  }
}

void ProviderJudge::CheckRecord(const model::Machine& machine, uint64_t asked) {
  const Status sound = model::CheckStructure(machine);
  Check(sound.ok(), [&] { return sound.message(); });
  Check(!machine.cluster.empty() || machine.shard_metadata.empty(),
        [&] { return fmt::format("{} has metadata and no cluster", machine.id); });
  if (!machine.cluster.empty()) {
    Check(bindings_[machine.id].contains(Binding(machine.cluster, machine.shard_metadata)),
          [&] { return fmt::format("{} is bound to {} as nobody ever asked", machine.id, machine.cluster); });
  }
  const auto failed = seen_failed_.find(machine.id);
  const bool may_live = failed == seen_failed_.end() || last_delete_[machine.id] >= failed->second;
  Check(machine.state == model::MachineState::kFailed || may_live, [&] {
    return fmt::format("{} had failed and is {} without a Delete", machine.id, model::StateName(machine.state));
  });
  if (machine.state == model::MachineState::kFailed) seen_failed_[machine.id] = asked;
}

void ProviderJudge::CloudDid(const provider::Report& report) {
  if (const auto* observed = std::get_if<contract::Observation>(&report)) {
    if (const auto* lost = std::get_if<contract::MachineLost>(observed)) {
      hardware_[lost->machine_id] = {};
      lost_.insert(lost->machine_id);
    }
    return;
  }
  const auto& ended = std::get<provider::OperationEnded>(report);
  if (ended.repeated || !ended.status.ok()) return;
  Hardware& hardware = hardware_[ended.machine_id];
  const auto check = [&](bool holds, std::string_view why) {
    Check(holds, [&] {
      return fmt::format("the cloud did {} ({}) to {}, which {}", contract::OperationName(ended.kind),
                         ended.operation_id, ended.machine_id, why);
    });
  };
  const bool taken = lost_.contains(ended.machine_id);
  switch (ended.kind) {
    case OperationKind::kCreate:
      check(!hardware.exists, "exists already");
      hardware.exists = true;
      break;
    case OperationKind::kConfigure:
      check(!hardware.bound, "is a node already");
      hardware.bound = true;
      break;
    case OperationKind::kDrain:
      check(hardware.bound || taken, "is no node");
      hardware.bound = false;
      break;
    case OperationKind::kDelete: hardware = {}; break;
  }
}

void ProviderJudge::AtRest(const std::vector<contract::MachineRecord>& machines) {
  for (const contract::MachineRecord& machine : machines) {
    CheckRecord(*machine, deliveries_);
    Check(model::IsStable(machine->state) || machine->state == model::MachineState::kFailed,
          [&] { return fmt::format("{} is {} for ever", machine->id, model::StateName(machine->state)); });
  }
  for (const auto& [id, what] : operations_) {
    Check(started_.contains(id) || lost_.contains(what.first),
          [&] { return fmt::format("operation {} on {} was acknowledged and never done", id, what.first); });
  }
}

}  // namespace muster::sim
