// What is asked of the agent: apply, delete, questions, and the full state of a scheduler that it has joined.
#include <fmt/format.h>

#include <algorithm>

#include "base/probe.h"
#include "core/agent/agent.h"
#include "model/compose.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/workload.h"

namespace muster::agent {
namespace {

constexpr std::string_view kDisk = "disk";

Status CheckForm(const contract::ApplyOnAgent& apply) {
  if (!model::IsWorkloadId(apply.workload)) {
    return {Code::kInvalidArgument, fmt::format("workload: {} is no id", model::Quoted(apply.workload))};
  }
  if (std::string problem = model::TemplateProblem(apply.spec); !problem.empty()) {
    return {Code::kInvalidArgument, fmt::format("spec.{}", problem)};
  }
  if (apply.spec.type == model::WorkloadType::kCompose) {
    if (const auto file = model::ReadCompose(apply.spec.compose, model::WholeEnv(apply.spec)); !file) {
      return {Code::kInvalidArgument, fmt::format("spec.{}", file.error().message())};
    }
  }
  return {};
}

// What an earlier type left must be removed by its own runtime.
bool OtherType(const contract::ApplyOnAgent& apply, const Row& row) {
  return row.wanted.spec.type != apply.spec.type && row.launch > 0;
}

}  // namespace

void Core::OnApply(contract::RequestId request, const contract::ApplyOnAgent& apply, Context& ctx) {
  if (Status checked = CheckApply(apply); !checked.ok()) {
    ctx.answers.push_back(Answer{.request = request, .status = std::move(checked)});
    return;
  }
  const bool changed = Want(apply, true, ctx);
  if (!changed) PROBE("agent.skipped");
  if (changed) BeginAction(apply.workload, *Find(apply.workload), ActionKind::kApply, ctx);
  ctx.applied.push_back({.request = request, .workload = apply.workload, .skipped = !changed});
}

Status Core::CheckApply(const contract::ApplyOnAgent& apply) {
  MUSTER_RETURN_IF_ERROR(CheckForm(apply));
  MUSTER_RETURN_IF_ERROR(CheckStamp(apply.workload, apply.stamp, true));
  const Workload* const here = Find(apply.workload);
  if (here != nullptr && OtherType(apply, here->row)) {
    return {Code::kFailedPrecondition,
            fmt::format("type: {} is a {} on this node; delete it before it becomes a {}", apply.workload,
                        model::WorkloadTypeName(here->row.wanted.spec.type), model::WorkloadTypeName(apply.spec.type))};
  }
  const Runtime* const runtime = FindRuntime(apply.spec.type);
  // What was launched here may run on while its runtime is away: refused, it would be placed elsewhere and run twice.
  const bool launched = here != nullptr && here->row.launch > 0 && !here->row.deleting;
  // One that has not answered yet may do so; one that answered with an error is not there.
  const bool absent = runtime == nullptr || (!runtime->listed && runtime->pause > Duration::zero() && !launched);
  if (absent) {
    PROBE("agent.no_runtime");
    ++state_.refused;
    return {Code::kFailedPrecondition,
            fmt::format("runtime not available: {}{}", model::WorkloadTypeName(apply.spec.type),
                        runtime == nullptr ? "" : fmt::format(" ({})", runtime->status.message()))};
  }
  if (Status room = CheckRoom(apply); !room.ok()) {
    PROBE("agent.no_room");
    ++state_.refused;
    if (!MUTANT("agent.admits_anything")) return room;
  }
  return {};
}

// `creates`: it would bring back a workload that was deleted.
Status Core::CheckStamp(const std::string& workload, const contract::Stamp& stamp, bool creates) {
  if (stamp.epoch != epoch() && !MUTANT("agent.accepts_other_epoch")) {
    PROBE("agent.other_epoch");
    ++state_.stale;
    return {Code::kFailedPrecondition,
            fmt::format("the stamp is of epoch {}, this agent is in epoch {}", stamp.epoch, epoch())};
  }
  if (epoch() == 0 || MUTANT("agent.accepts_old_stamp")) return {};
  const auto row = state_.workloads.find(workload);
  const auto gone = state_.deleted.find(workload);
  contract::Stamp newest;
  bool deleted = false;
  if (row != state_.workloads.end()) {
    newest = row->second.row.wanted.stamp;
    deleted = row->second.row.deleting;
  } else if (gone != state_.deleted.end()) {
    newest = gone->second.stamp;
    deleted = true;
  }
  // The assignment that was deleted does not come back: only a newer one does.
  if (stamp > newest || (stamp == newest && !(creates && deleted))) return {};
  PROBE("agent.old_stamp");
  ++state_.stale;
  return {Code::kFailedPrecondition,
          fmt::format("the stamp {}/{} of {} is old: it has {}/{}{}", stamp.epoch, stamp.sequence, workload,
                      newest.epoch, newest.sequence, deleted ? " and was deleted" : "")};
}

// What is being deleted holds no room: its successor may come before it has ended. Nor does a job that has completed:
// its scheduler has given the room to others.
bool Core::HoldsRoom(const Workload& workload) const {
  const Row& row = workload.row;
  if (row.deleting || !row.wanted.run) return false;
  return ActualOf(workload) != contract::ActualState::kStopped || MUTANT("agent.completed_holds_room");
}

Status Core::CheckRoom(const contract::ApplyOnAgent& apply) const {
  if (!apply.run) return {};
  const auto here = state_.workloads.find(apply.workload);
  const Row* const has = here == state_.workloads.end() || !HoldsRoom(here->second) ? nullptr : &here->second.row;
  for (const auto& [dimension, asked] : apply.spec.resources.entries()) {
    const int64_t total = state_.config.total.Get(dimension);
    if (total == 0 && dimension == kDisk) continue;  // a node that reports no disk is not filtered by it
    // What it has is not asked for again.
    if (has != nullptr && asked <= has->wanted.spec.resources.Get(dimension)) continue;
    int64_t sum = asked;
    for (const auto& [id, workload] : state_.workloads) {
      if (id == apply.workload || !HoldsRoom(workload)) continue;
      if (__builtin_add_overflow(sum, workload.row.wanted.spec.resources.Get(dimension), &sum)) sum = INT64_MAX;
    }
    if (sum <= total) continue;
    return {Code::kResourceExhausted,
            fmt::format("{}: {} asks for {}, with it the node would have {} of {}", dimension, apply.workload,
                        model::FormatQuantityFor(dimension, asked), model::FormatQuantityFor(dimension, sum),
                        model::FormatQuantityFor(dimension, total))};
  }
  return {};
}

bool Core::Want(const contract::ApplyOnAgent& apply, bool revive, Context& ctx) {
  const auto [entry, is_new] = state_.workloads.try_emplace(apply.workload);
  Workload& workload = entry->second;
  Row& row = workload.row;
  const bool same = !is_new && !row.deleting && !row.stray && row.wanted.revision == apply.revision &&
                    row.wanted.run == apply.run && row.wanted.spec.type == apply.spec.type;
  const bool failed = revive && same && apply.run && ActualOf(workload) == contract::ActualState::kFailed;
  ctx.touched.insert(apply.workload);
  if (is_new) {
    row.created_at = ctx.now.wall;
    if (state_.deleted.erase(apply.workload) > 0) ctx.writes.push_back(kDeleted.Erase(apply.workload));
  }
  if (!MUTANT("agent.apply_not_durable")) ctx.changed.insert(apply.workload);
  if (same && !failed) {
    // The revision names the spec: what it was launched with stays.
    row.wanted.stamp = apply.stamp;
    return false;
  }
  row.wanted = apply;
  if (failed) PROBE("agent.failed_is_applied_again");
  // A run that no row told of is what the scheduler wants, if it has that revision; one that has ended too: a job that
  // has completed is not run again.
  const bool adopts = row.stray && workload.run && workload.run->revision == apply.revision;
  row.deleting = false;
  row.stray = false;
  const bool runs = workload.run && workload.run->running;
  row.launch_due = apply.run && !adopts && !(runs && MUTANT("agent.revision_not_launched"));
  row.restarts = 0;
  row.failures = 0;
  row.given_up = false;
  workload.restart_at.reset();
  if (adopts) PROBE("agent.stray_adopted");
  if (adopts && !workload.run->running) OnRunEnded(apply.workload, workload, ctx);
  return true;
}

void Core::OnDelete(contract::RequestId request, const contract::DeleteOnAgent& remove, Context& ctx) {
  if (Status stamp = CheckStamp(remove.workload, remove.stamp, false); !stamp.ok()) {
    ctx.answers.push_back(Answer{.request = request, .status = std::move(stamp)});
    return;
  }
  Workload* const workload = Find(remove.workload);
  contract::DeletedOnAgent reply{.success = true, .message = "it is being deleted"};
  if (workload == nullptr) {
    PROBE("agent.deleted_unknown");
    reply.message = "the node does not have it";
    if (remove.stamp.epoch > 0 && model::IsWorkloadId(remove.workload)) {
      const Deleted gone{.stamp = remove.stamp, .at = ctx.now.wall};
      state_.deleted[remove.workload] = gone;
      ctx.writes.push_back(kDeleted.Put(remove.workload, gone));
      if (!state_.prune_at) state_.prune_at = ctx.now.mono + state_.config.deleted_memory;
    }
  } else {
    workload->row.wanted.stamp = remove.stamp;
    if (!MUTANT("agent.delete_unheard")) BeginDelete(remove.workload, remove.grace, ctx);
  }
  ctx.answers.push_back(Answer{.request = request, .status = {}, .reply = std::move(reply)});
}

void Core::BeginDelete(const std::string& id, Duration grace, Context& ctx) {
  Workload& workload = *Find(id);
  Row& row = workload.row;
  ctx.touched.insert(id);
  ctx.changed.insert(id);
  if (row.deleting) {
    row.delete_grace = std::min(row.delete_grace, grace);
    return;
  }
  row.deleting = true;
  row.delete_grace = grace;
  workload.restart_at.reset();
  BeginAction(id, workload, ActionKind::kDelete, ctx);
}

void Core::OnGetStatus(contract::RequestId request, const contract::GetStatusOnAgent& get, Context& ctx) {
  const Workload* const workload = Find(get.workload);
  if (workload == nullptr) {
    ctx.answers.push_back(
        Answer{.request = request,
               .status = Status(Code::kNotFound, fmt::format("status not found: node {} has no workload {}",
                                                             state_.config.node, model::Quoted(get.workload)))});
    return;
  }
  ctx.answers.push_back(Answer{.request = request, .status = {}, .reply = StatusOf(get.workload, *workload)});
}

void Core::OnList(contract::RequestId request, Context& ctx) {
  contract::ListedOnAgent listed;
  for (const auto& [id, workload] : state_.workloads) listed.workloads.push_back(StatusOf(id, workload));
  ctx.answers.push_back(Answer{.request = request, .status = {}, .reply = std::move(listed)});
}

void Core::OnJoined(const contract::FullState& full, Context& ctx) {
  if (!state_.config.joins || full.epoch < state_.epoch) {
    PROBE("agent.late_join");
    return;
  }
  if (full.epoch > state_.epoch) {
    // Stamps of earlier epochs are refused whatever they are about.
    for (const auto& [id, gone] : state_.deleted) ctx.writes.push_back(kDeleted.Erase(id));
    state_.deleted.clear();
    state_.epoch = full.epoch;
    if (!MUTANT("agent.epoch_not_durable")) ctx.writes.push_back(kEpoch.Put(full.epoch));
  }
  state_.removes_others = full.remove_others;
  std::set<std::string> listed;
  for (const contract::ApplyOnAgent& listed_apply : full.workloads) {
    contract::ApplyOnAgent apply = listed_apply;
    apply.stamp.epoch = full.epoch;
    if (Status form = CheckForm(apply); !form.ok()) {
      // It is wanted all the same: what runs of it is left alone.
      listed.insert(apply.workload);
      ctx.effects.push_back(Notice{"the scheduler asks for what cannot be", apply.workload, form.message()});
      continue;
    }
    const Workload* const workload = Find(apply.workload);
    if (workload != nullptr && OtherType(apply, workload->row)) continue;  // removed, and applied when that is done
    listed.insert(apply.workload);
    const bool older = workload != nullptr && apply.stamp < workload->row.wanted.stamp;
    const bool deleted = workload != nullptr && workload->row.deleting && apply.stamp == workload->row.wanted.stamp;
    if (older || deleted) continue;
    if (Want(apply, false, ctx)) BeginAction(apply.workload, *Find(apply.workload), ActionKind::kApply, ctx);
  }
  for (auto& [id, workload] : state_.workloads) {
    if (listed.contains(id) || workload.row.deleting) continue;
    if (!full.remove_others && !MUTANT("agent.removes_what_is_held")) {
      PROBE("agent.others_held");
      continue;
    }
    if (MUTANT("agent.keeps_unlisted")) continue;
    PROBE("agent.unlisted_removed");
    BeginDelete(id, workload.row.wanted.spec.grace, ctx);
  }
}

}  // namespace muster::agent
