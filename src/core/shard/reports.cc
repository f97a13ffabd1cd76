#include "core/shard/reports.h"

#include <algorithm>
#include <limits>

#include "base/probe.h"
#include "core/shard/narrow.h"

namespace muster::shard {
namespace {

using contract::InstructOutcome;

constexpr size_t kMostAcks = 1000;

}  // namespace

void Reports::Send(StepContext& ctx) {
  if (ctx.now.mono < NextWake()) return;
  state_.open = true;
  state_.next = ctx.now.mono + deps_.config.report_interval;
  contract::ShardReport report{.shard_id = deps_.config.id,
                               .cycle = ctx.cycle.number(),
                               .timestamp = ctx.now.wall,
                               .shard_epoch = deps_.lifecycle.epoch(),
                               .summary = Summary(),
                               .shortfalls = Shortfalls(),
                               .instruction_acks = {},
                               .shard_address = deps_.config.address};
  for (const auto& [id, ack] : state_.acks) report.instruction_acks.push_back(ack);
  ctx.Emit(Call{.id = deps_.calls.Open({.kind = OpenCall::Kind::kReport}),
                .to = std::string(kCoordinator),
                .request = std::move(report),
                .timeout = contract::kReportTimeout});
}

contract::ShardSummary Reports::Summary() const {
  contract::ShardSummary summary{.total_machines = Narrow(static_cast<int64_t>(deps_.machines.tracked().size())),
                                 .provider_address = deps_.config.provider_address};
  for (const auto& [kind, count] : deps_.machines.counts()) {
    const bool free = kind.state == model::MachineState::kIdle || kind.state == model::MachineState::kSpeculative;
    if (free) summary.free_machines += Narrow(static_cast<int64_t>(count));
  }
  for (const auto& [type, count] : deps_.machines.by_instance_type()) {
    summary.per_instance_type_counts[type] = Narrow(count);
  }
  for (const auto& [zone, count] : deps_.machines.by_zone()) summary.per_zone_counts[zone] = Narrow(count);
  return summary;
}

// By profile, over all clusters. A need that is covered once the machines taken for it have drained is not short.
std::vector<contract::Shortfall> Reports::Shortfalls() const {
  std::map<std::string, contract::Shortfall> by_profile;
  for (const engine::fast::ShortNeed& need : deps_.engine.engine().ShortNeeds()) {
    if (need.pending) continue;
    contract::Shortfall& shortfall = by_profile[need.key.fingerprint];
    shortfall.requirements = need.profile.requirements();
    shortfall.priority = need.profile.priority();
    shortfall.interruption = need.profile.interruption();
    shortfall.age_cycles = std::max(shortfall.age_cycles, need.age);
    for (const auto& [name, amount] : need.shortage.entries()) {
      int64_t sum = 0;
      const bool overflow = __builtin_add_overflow(shortfall.deficit.Get(name), amount, &sum);
      shortfall.deficit.Set(name, overflow ? std::numeric_limits<int64_t>::max() : sum);
    }
  }
  std::vector<contract::Shortfall> all;
  for (auto& [fingerprint, shortfall] : by_profile) all.push_back(std::move(shortfall));
  std::ranges::stable_sort(all, [](const contract::Shortfall& a, const contract::Shortfall& b) {
    return std::pair(a.priority, a.age_cycles) > std::pair(b.priority, b.age_cycles);
  });
  if (all.size() > contract::kReportedShortfalls) all.resize(contract::kReportedShortfalls);
  return all;
}

void Reports::OnDone(const CallDone& done, StepContext& ctx) {
  state_.open = false;
  if (!done.status.ok()) {
    PROBE("shard.report_failed");
    return;
  }
  ++ctx.counters.reports;
  const auto& ack = std::get<contract::ReportAck>(*done.reply);
  if (ack.coordinator_term < deps_.lifecycle.coordinator_term()) {
    PROBE("shard.old_coordinator");
    return;
  }
  deps_.lifecycle.SetCoordinatorTerm(ack.coordinator_term, ctx);
  std::vector<contract::CoordinatorInstruction> instructions = ack.instructions;
  std::ranges::sort(instructions, {}, &contract::CoordinatorInstruction::sequence_number);
  // The coordinator repeats an instruction until it has seen the acknowledgement.
  if (ack.acknowledged) {
    std::erase_if(state_.acks, [&](const auto& known) {
      return std::ranges::find(instructions, known.first, &contract::CoordinatorInstruction::instruction_id) ==
             instructions.end();
    });
  }
  for (const contract::CoordinatorInstruction& instruction : instructions) {
    if (state_.acks.contains(instruction.instruction_id)) {
      PROBE("shard.instruction_repeated");
      continue;
    }
    if (state_.acks.size() >= kMostAcks) continue;
    state_.acks.emplace(instruction.instruction_id, ApplyInstruction(instruction, ctx));
  }
}

contract::InstructAck Reports::ApplyInstruction(const contract::CoordinatorInstruction& instruction, StepContext& ctx) {
  contract::InstructAck ack{.instruction_id = instruction.instruction_id, .outcome = InstructOutcome::kAccepted};
  const auto refuse = [&](InstructOutcome outcome, std::string reason) {
    ack.outcome = outcome;
    ack.reason = std::move(reason);
    return ack;
  };
  if (instruction.coordinator_term < deps_.lifecycle.coordinator_term()) {
    return refuse(InstructOutcome::kRejectedStale, "of an earlier term");
  }
  const auto* assign = std::get_if<contract::AssignDomain>(&instruction.payload);
  const auto* unassign = std::get_if<contract::UnassignDomain>(&instruction.payload);
  if (assign == nullptr && unassign == nullptr) {
    return refuse(InstructOutcome::kFailed, "this shard does not move machines between shards");
  }
  const contract::Domain& domain = assign != nullptr ? assign->domain : unassign->domain;
  if (domain.key.empty() || domain.value.empty()) {
    return refuse(InstructOutcome::kRejectedInvalid, "topology_key and topology_value: both must be given");
  }
  if (assign != nullptr) {
    deps_.owned.Assign(domain, ctx);
  } else {
    deps_.owned.Unassign(domain, ctx);
  }
  deps_.reconcile.OnOwnedSetChanged(ctx);
  return ack;
}

}  // namespace muster::shard
