#include "core/scheduler/set_controller.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/probe.h"
#include "core/scheduler/reasons.h"
#include "core/scheduler/sets.h"

namespace muster::scheduler {

SetController::SetController(const StoreCopy& copy, Drafts& drafts, SpecEdits& edits, State state)
    : copy_(copy), drafts_(drafts), edits_(edits), state_(std::move(state)) {}

std::set<std::string> SetController::Run(StepContext& ctx) {
  std::set<std::string> edited;
  for (const std::string& name : std::exchange(state_.dirty, {})) {
    if (!drafts_.Busy(SetObject(name))) Plan(name, edited, ctx);  // a busy one is planned when its commit has ended
  }
  return edited;
}

void SetController::Plan(const std::string& name, std::set<std::string>& edited, StepContext& ctx) {
  if (drafts_.Find<SetRecord>(name) == nullptr) return;
  const SetRecord set = *drafts_.Find<SetRecord>(name);
  const std::vector<SetMember> members = MembersOf(name, copy_, drafts_);
  if (set.deleting && members.empty() && copy_.MembersOf(name).empty()) {
    if (!drafts_.MayComeYet(SetObject(name))) drafts_.Remove(SetObject(name));
    return;
  }
  if (std::vector<int32_t> completed = Completions(set, members); completed != set.completed) {
    drafts_.Edit<SetRecord>(name).completed = std::move(completed);
  }
  for (const SetStep& step : PlanSet(set, members)) Take(name, set, step, edited, ctx);
}

void SetController::Take(const std::string& name, const SetRecord& set, const SetStep& step,
                         std::set<std::string>& edited, StepContext& ctx) {
  const std::string id = fmt::format("{}-{}", name, step.number);
  if (drafts_.Busy(WorkloadObject(id))) return;
  const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(id);
  if (record != nullptr && record->workload.set != name) {
    PROBE("scheduler.member_taken");
    return ctx.Note("a set lacks a member whose id belongs to something else", name, id);
  }
  if (step.action == SetAction::kDelete) {
    if (record == nullptr || !edits_.SetDesired(id, model::DesiredState::kDeleted, ctx)) return;
  } else {
    // Until the store shows the set, its members are not made.
    if (copy_.Find<SetRecord>(name) == nullptr) return;
    edits_.Apply({.id = id,
                  .set = name,
                  .tenant = set.spec.tenant,
                  .revision = set.revision,
                  .labels = set.spec.labels,
                  .spec = set.spec.spec},
                 ctx);
  }
  edited.insert(id);
  if (step.action != SetAction::kUpdate) return;
  drafts_.AddDecision(
      WorkloadObject(id),
      {.kind = contract::DecisionKind::kRolledOut,
       .at = ctx.now.wall,
       .workload = id,
       .reason = std::string(ReasonName(Reason::kMemberUpdated)),
       .message = fmt::format("{}: revision {}", ReasonSentence(Reason::kMemberUpdated), set.revision)});
}

Status SetController::CheckMembers(const model::WorkloadSpec& spec) const {
  const int32_t most = spec.replicas + spec.max_surge.Of(spec.replicas);
  for (int32_t i = 0; i < most; ++i) {
    const std::string id = fmt::format("{}-{}", spec.name, i);
    const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(id);
    if (record == nullptr || record->workload.set == spec.name) continue;
    return {Code::kFailedPrecondition,
            fmt::format("set {}: the id of its member {} belongs to {}; delete it or rename the set", spec.name, id,
                        record->workload.set.empty() ? "a workload of its own" : "set " + record->workload.set)};
  }
  return {};
}

}  // namespace muster::scheduler
