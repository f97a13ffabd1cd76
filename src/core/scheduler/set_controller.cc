#include "core/scheduler/set_controller.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "core/scheduler/reasons.h"
#include "core/scheduler/sets.h"
#include "model/workload_bounds.h"

namespace muster::scheduler {
namespace {

constexpr size_t kMostEdits = 1'000;   // of one set in one step
constexpr size_t kMostDrafts = 3'000;  // of all objects, with which a set is planned

}  // namespace

SetController::SetController(const StoreCopy& copy, Drafts& drafts, SpecEdits& edits, State state)
    : copy_(copy), drafts_(drafts), edits_(edits), state_(std::move(state)) {}

std::set<std::string> SetController::Run(StepContext& ctx) {
  std::set<std::string> edited;
  if (TooManyDrafts()) return edited;
  const std::set<std::string> dirty = std::exchange(state_.dirty, {});
  const auto first = dirty.upper_bound(std::exchange(state_.last, {}));
  std::vector<std::string> turns(first, dirty.end());
  turns.insert(turns.end(), dirty.begin(), first);
  auto name = turns.begin();
  for (; name != turns.end() && !TooManyDrafts(); ++name) {
    if (!drafts_.Busy(SetObject(*name))) Plan(*name, edited, ctx);  // a busy one is planned when its commit has ended
  }
  if (name == turns.end()) return edited;
  PROBE("scheduler.sets_wait_for_store");
  state_.last = *std::prev(name);
  state_.dirty.insert(name, turns.end());
  return edited;
}

bool SetController::TooManyDrafts() const { return drafts_.state().drafts.size() >= kMostDrafts; }

void SetController::Plan(const std::string& name, std::set<std::string>& edited, StepContext& ctx) {
  if (drafts_.Find<SetRecord>(name) == nullptr) return;
  const SetRecord set = *drafts_.Find<SetRecord>(name);
  const std::vector<SetMember> members = MembersOf(name, copy_, drafts_);
  if (set.deleting && members.empty() && copy_.MembersOf(name).empty()) {
    // What comes late is deleted with the set, or would be left without one.
    if (!drafts_.MayComeYet(SetObject(name)) && !drafts_.AnyMayComeYet(name + "-")) drafts_.Remove(SetObject(name));
    return;
  }
  if (std::vector<int32_t> completed = Completions(set, members); completed != set.completed) {
    drafts_.Edit<SetRecord>(name).completed = std::move(completed);
  }
  if (std::string problem = model::CountsProblem(set.spec); !problem.empty() && !set.deleting) {
    PROBE("scheduler.set_too_large");
    return ctx.Note("a set is beyond what is admitted and is left as it is: scale it down", name, std::move(problem));
  }
  const size_t before = edited.size();
  for (const SetStep& step : PlanSet(set, members)) {
    if (edited.size() - before >= kMostEdits) {
      PROBE("scheduler.set_goes_on");
      return MarkDirty(name);
    }
    Take(name, set, step, edited, ctx);
  }
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

// By the ids that there are: the set may ask for far more than that.
Status SetController::CheckMembers(const model::WorkloadSpec& spec) const {
  const int64_t most = int64_t{spec.replicas} + spec.max_surge.Of(spec.replicas);
  const std::string first = spec.name + "-";
  std::optional<int32_t> lowest;
  const auto look = [&](const std::string& id) {
    const auto number = MemberNumber(spec.name, id);
    if (!number || *number >= most || (lowest && *lowest <= *number)) return;
    const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(id);
    if (record != nullptr && record->workload.set != spec.name) lowest = number;
  };
  const auto& stored = copy_.All<WorkloadRecord>();
  for (auto at = stored.lower_bound(first); at != stored.end() && at->first.starts_with(first); ++at) look(at->first);
  const auto& drafts = drafts_.state().drafts;
  for (auto at = drafts.lower_bound(WorkloadObject(first)); at != drafts.end(); ++at) {
    const ObjectId& object = at->first;
    if (object.kind != contract::ObjectKind::kWorkload || !object.name.starts_with(first)) break;
    look(object.name);
  }
  if (!lowest) return {};
  const std::string id = fmt::format("{}{}", first, *lowest);
  const std::string& set = drafts_.Find<WorkloadRecord>(id)->workload.set;
  return {Code::kFailedPrecondition,
          fmt::format("set {}: the id of its member {} belongs to {}; delete it or rename the set", spec.name, id,
                      set.empty() ? "a workload of its own" : "set " + set)};
}

}  // namespace muster::scheduler
