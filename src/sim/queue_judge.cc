#include "sim/queue_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "core/shard/executor.h"
#include "core/shard/operation.h"

namespace muster::sim {

void QueueJudge::Stepped(const shard::Core& core, std::span<const shard::Core::Effect> effects) {
  const auto& operations = core.executor().operations();
  for (const shard::Core::Effect& effect : effects) {
    if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      if (audit->action.outcome == "pending") continue;
      const std::string& machine = audit->action.machine_id;
      preempts_.erase(machine);
      const auto lane = std::ranges::find_if(lanes_, [&](const auto& known) { return known.second.contains(machine); });
      if (lane != lanes_.end()) OnTurn(lane->first, machine, false);
      continue;
    }
    const auto* call = std::get_if<shard::Core::Call>(&effect);
    if (call == nullptr) continue;
    std::visit(
        [&](const auto& request) {
          if constexpr (requires { request.fence; }) {
            const auto operation = operations.find(request.machine_id);
            if (operation == operations.end()) return;
            if (operation->second.kind == shard::OperationKind::kPreempt) {
              preempts_.erase(request.machine_id);
            } else {
              JudgePreempts(core, request.machine_id);
              OnTurn(shard::BeneficiaryOf(operation->second), request.machine_id, true);
            }
          }
        },
        call->request);
  }
  if (counts_) CountPreempts(core, effects);
  LookAtQueue(core);
}

void QueueJudge::OnTurn(const std::string& cluster, const std::string& machine, bool called) {
  lanes_[cluster].erase(machine);
  waits_[cluster].clear();
  if (!called) {
    ++void_[cluster];
    return;
  }
  for (const auto& [other, waiting] : lanes_) {
    if (other == cluster || waiting.empty()) continue;
    const int calls = ++waits_[other][cluster];
    findings_.Check(calls <= 1 + void_[other], [&] {
      return fmt::format("{} calls are made for {} in a row while {} of {} waits for its turn", calls, cluster,
                         *waiting.begin(), other);
    });
  }
}

// The call was made while these waited, and they still do. While the provider seems to be away they take turns with
// the lanes.
void QueueJudge::JudgePreempts(const shard::Core& core, const std::string& machine) {
  if (core.executor().outage().attempts > 0) return;
  for (const std::string& preempt : preempts_) {
    const auto operation = core.executor().operations().find(preempt);
    const bool waits =
        operation != core.executor().operations().end() && operation->second.stage == shard::Stage::kQueued;
    findings_.Check(!waits, [&] { return fmt::format("the Preempt of {} waits behind {}", preempt, machine); });
  }
}

void QueueJudge::CountPreempts(const shard::Core& core, std::span<const shard::Core::Effect> effects) {
  const bool cycle = std::ranges::any_of(
      effects, [](const shard::Core::Effect& effect) { return std::holds_alternative<shard::CycleEnded>(effect); });
  if (!cycle) return;
  const auto begun = std::ranges::count_if(effects, [](const shard::Core::Effect& effect) {
    const auto* audit = std::get_if<shard::Audit>(&effect);
    return audit != nullptr && audit->action.kind == "Preempt" && audit->action.outcome == "pending";
  });
  const auto view = core.View();
  const auto known = view->counters.actions.find("Preempt");
  const uint64_t decided = known == view->counters.actions.end() ? 0 : known->second;
  const uint64_t left = decided - decided_ - static_cast<uint64_t>(begun);
  findings_.Check(left <= view->counters.deduped - barred_,
                  [&] { return fmt::format("{} Preempts are decided and left for later by a limit", left); });
  decided_ = decided;
  barred_ = view->counters.deduped;
}

void QueueJudge::LookAtQueue(const shard::Core& core) {
  lanes_.clear();
  preempts_.clear();
  for (const auto& [id, operation] : core.executor().operations()) {
    if (operation.stage != shard::Stage::kQueued) continue;
    const bool preempts = operation.kind == shard::OperationKind::kPreempt;
    (preempts ? preempts_ : lanes_[shard::BeneficiaryOf(operation)]).insert(id);
  }
  const auto is_empty = [&](const auto& known) { return !lanes_.contains(known.first); };
  std::erase_if(waits_, is_empty);
  std::erase_if(void_, is_empty);
}

void QueueJudge::Crashed() {
  lanes_.clear();
  preempts_.clear();
  waits_.clear();
  void_.clear();
  decided_ = 0;
  barred_ = 0;
}

}  // namespace muster::sim
