// Reports: what clusters are told of free capacity, and what the coordinator is told of the shard.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"

namespace muster::shard {
namespace {

using contract::Confidence;
using contract::InstructOutcome;

// Hints of all clusters are spread over the interval, so that no step has to make them all.
constexpr int64_t kMostHintTurns = 100;
constexpr size_t kObeyedKept = 1000;

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()));
}

contract::AvailableCapacity HintOf(const engine::fast::Available& available) {
  const Confidence confidence = available.idle > 0          ? Confidence::kHigh
                                : available.speculative > 0 ? Confidence::kMedium
                                : available.in_use          ? Confidence::kLow
                                                            : Confidence::kNone;
  return {.supersedes_key = "available:" + available.profile.fingerprint(),
          .requirements = available.profile.requirements(),
          .resources = available.each,
          .available_count = Narrow(available.idle + available.speculative),
          .confidence = confidence,
          .cost_per_hour = available.price};
}

}  // namespace

void Core::SendHints(Turn& turn) {
  if (!decided_ || turn.now.mono < next_hints_) return;
  const auto count = static_cast<int64_t>(clusters_.size());
  const int64_t turns = std::clamp<int64_t>(count, 1, kMostHintTurns);
  next_hints_ = turn.now.mono + config_.hints_interval / turns;
  for (int64_t i = 0; i < (count + turns - 1) / turns; ++i) {
    auto cluster = clusters_.upper_bound(hinted_);
    if (cluster == clusters_.end()) cluster = clusters_.begin();
    hinted_ = cluster->first;
    if (cluster->second.session == 0) continue;
    std::map<std::string, contract::AvailableCapacity> hints;
    for (const engine::fast::Available& available : engine_->AvailableTo(cluster->first)) {
      contract::AvailableCapacity hint = HintOf(available);
      const auto sent = cluster->second.hints.find(hint.supersedes_key);
      if (sent == cluster->second.hints.end() || sent->second != hint) SendTo(cluster->second, hint, turn);
      std::string key = hint.supersedes_key;
      hints.emplace(std::move(key), std::move(hint));
    }
    cluster->second.hints = std::move(hints);
  }
}

void Core::Report(Turn& turn) {
  if (config_.coordinator.empty() || !decided_ || report_open_ || turn.now.mono < next_report_) return;
  report_open_ = true;
  next_report_ = turn.now.mono + config_.report_interval;
  contract::ShardReport report{.shard_id = config_.id,
                               .cycle = cycle_,
                               .timestamp = turn.now.wall,
                               .shard_epoch = epoch_,
                               .summary = Summary(),
                               .shortfalls = Shortfalls(),
                               .instruction_acks = {},
                               .shard_address = config_.address};
  for (const auto& [id, ack] : obeyed_) report.instruction_acks.push_back(ack);
  turn.out.push_back(Call{.id = OpenACall({.kind = OpenCall::Kind::kReport}),
                          .to = std::string(kCoordinator),
                          .request = std::move(report),
                          .timeout = contract::kReportTimeout});
}

contract::ShardSummary Core::Summary() const {
  contract::ShardSummary summary{.total_machines = Narrow(static_cast<int64_t>(machines_.size())),
                                 .provider_address = config_.provider_address};
  for (const auto& [which, count] : counts_) {
    if (which.state == model::MachineState::kIdle) summary.free_machines += Narrow(static_cast<int64_t>(count));
  }
  for (const auto& [type, count] : types_) summary.per_instance_type_counts[type] = Narrow(count);
  for (const auto& [zone, count] : zones_) summary.per_zone_counts[zone] = Narrow(count);
  return summary;
}

// By profile, over all clusters. What is covered once machines that were taken have drained is not short any more.
std::vector<contract::Shortfall> Core::Shortfalls() const {
  std::map<std::string, contract::Shortfall> by_profile;
  for (const engine::fast::ShortNeed& need : engine_->ShortNeeds()) {
    if (need.on_its_way) continue;
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

void Core::OnReportDone(const CallDone& done, Turn& turn) {
  report_open_ = false;
  if (!done.status.ok()) {
    PROBE("shard.report_failed");
    return;
  }
  ++counters_.reports;
  const auto& ack = std::get<contract::ReportAck>(*done.reply);
  if (ack.coordinator_term < term_) {
    PROBE("shard.old_coordinator");
    return;
  }
  term_ = ack.coordinator_term;
  std::vector<contract::CoordinatorInstruction> instructions = ack.instructions;
  std::ranges::sort(instructions, {}, &contract::CoordinatorInstruction::sequence_number);
  // What the coordinator no longer repeats it has heard of.
  if (ack.acknowledged) {
    std::erase_if(obeyed_, [&](const auto& known) {
      return std::ranges::find(instructions, known.first, &contract::CoordinatorInstruction::instruction_id) ==
             instructions.end();
    });
  }
  for (const contract::CoordinatorInstruction& instruction : instructions) {
    if (obeyed_.contains(instruction.instruction_id)) {
      PROBE("shard.instruction_repeated");
      continue;
    }
    if (obeyed_.size() < kObeyedKept) obeyed_.emplace(instruction.instruction_id, Obey(instruction, turn));
  }
}

contract::InstructAck Core::Obey(const contract::CoordinatorInstruction& instruction, Turn& turn) {
  contract::InstructAck ack{.instruction_id = instruction.instruction_id, .outcome = InstructOutcome::kAccepted};
  const auto refuse = [&](InstructOutcome outcome, std::string reason) {
    ack.outcome = outcome;
    ack.reason = std::move(reason);
    return ack;
  };
  if (instruction.coordinator_term < term_) return refuse(InstructOutcome::kRejectedStale, "of an earlier term");
  const auto* assign = std::get_if<contract::AssignDomain>(&instruction.payload);
  const auto* unassign = std::get_if<contract::UnassignDomain>(&instruction.payload);
  if (assign == nullptr && unassign == nullptr) {
    return refuse(InstructOutcome::kFailed, "this shard does not move machines between shards");
  }
  const contract::Domain& domain = assign != nullptr ? assign->domain : unassign->domain;
  if (domain.key.empty() || domain.value.empty()) {
    return refuse(InstructOutcome::kRejectedInvalid, "topology_key and topology_value: both must be given");
  }
  managed_ = true;
  Write(turn, std::string(kManagedKey), codec::ToBytes(true));
  const std::string key = std::string(kDomainKey) + codec::ToBytes(domain);
  if (assign != nullptr) {
    domains_.insert(domain);
    Write(turn, key, codec::ToBytes(true));
  } else {
    domains_.erase(domain);
    Write(turn, key, std::nullopt);
  }
  OwnedSetChanged(turn);
  return ack;
}

}  // namespace muster::shard
