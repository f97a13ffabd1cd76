#include "core/agent/agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/codec.h"
#include "base/overloaded.h"
#include "base/probe.h"
#include "contract/core.h"
#include "core/agent/earlier_rows.h"

namespace muster::agent {
namespace {

void Earlier(std::optional<MonoTime>& soonest, MonoTime when) {
  if (!soonest || when < *soonest) soonest = when;
}

}  // namespace

static_assert(contract::Core<Core>);

Result<Core> Core::Recover(Config config, const contract::Recovered& recovered) {
  State state{.config = std::move(config)};
  contract::RowReader reader("agent", "restore it from a backup");
  reader.Format(kFormat);
  reader.On(kEpoch, [&](uint64_t epoch) { state.epoch = epoch; });
  reader.On(kDeleted, [&](const std::string& id, const Deleted& deleted) { state.deleted[id] = deleted; });
  const auto use = [&](const std::string& id, Row row) {
    if (row.wanted.workload != id) return false;
    state.workloads[id].row = std::move(row);
    return true;
  };
  const auto format = recovered.find(contract::kFormatRow.key());
  if (format != recovered.end() && codec::FromBytes<uint64_t>(format->second) == kEarlierFormat) {
    reader.On(kEarlierRows, [&](const std::string& id, EarlierRow row) { return use(id, RowOf(std::move(row))); });
    state.rewrites = true;
  } else {
    reader.On(kRows, use);
  }
  if (Status read = reader.Read(recovered); !read.ok()) return std::unexpected(std::move(read));
  std::ranges::sort(state.config.runtimes);
  for (const model::WorkloadType type : state.config.runtimes) state.runtimes.push_back({.type = type});
  if (!state.deleted.empty()) state.prune_at = MonoTime{};
  return Core(std::move(state));
}

std::optional<Core> Core::Load(std::string_view saved) {
  auto state = codec::FromBytes<State>(saved);
  if (!state || state->layout != State{}.layout) return std::nullopt;
  return Core(*std::move(state));
}

std::string Core::Save() const { return codec::ToBytes(state_); }

void Core::Step(const Event& event, Now now, std::vector<Effect>& out) {
  Context ctx{.now = now};
  statuses_.reset();
  std::visit(Overloaded{
                 [&](const contract::Wake&) { OnWake(ctx); },
                 [&](const Asked& asked) {
                   std::visit(Overloaded{
                                  [&](const contract::ApplyOnAgent& r) { OnApply(asked.request, r, ctx); },
                                  [&](const contract::DeleteOnAgent& r) { OnDelete(asked.request, r, ctx); },
                                  [&](const contract::GetStatusOnAgent& r) { OnGetStatus(asked.request, r, ctx); },
                                  [&](const contract::ListOnAgent&) { OnList(asked.request, ctx); },
                              },
                              asked.body);
                 },
                 [&](const CallDone& done) { OnCallDone(done, ctx); },
                 [&](const Joined& joined) { OnJoined(joined.state, ctx); },
                 [&](const RunChanged& changed) { OnRunChanged(changed.run, ctx); },
                 [&](const Measured& measured) { OnMeasured(measured); },
             },
             event);
  for (const std::string& id : ctx.touched) Advance(id, ctx);
  ListRuntimes(ctx);
  Emit(ctx, out);
}

void Core::Emit(Context& ctx, std::vector<Effect>& out) {
  if (state_.rewrites && !(ctx.changed.empty() && ctx.writes.empty())) {
    for (const auto& [id, workload] : state_.workloads) ctx.changed.insert(id);
    state_.rewrites = false;
  }
  for (const std::string& id : ctx.changed) {
    Workload* const workload = Find(id);
    if (workload == nullptr) {
      ctx.writes.push_back(kRows.Erase(id));
      continue;
    }
    workload->row.updated_at = ctx.now.wall;
    ctx.writes.push_back(kRows.Put(id, workload->row));
  }
  if (!ctx.writes.empty()) {
    ctx.writes.push_back(contract::kFormatRow.Put(kFormat));
    out.push_back(contract::Persist{std::move(ctx.writes)});
  }
  for (const Context::Applied& applied : ctx.applied) {
    const Workload* const workload = Find(applied.workload);
    MUSTER_CHECK(workload != nullptr, "{} was applied and has no row", applied.workload);
    out.push_back(Answer{.request = applied.request,
                         .status = {},
                         .reply = contract::AppliedOnAgent{.applied = true,
                                                           .skipped = applied.skipped,
                                                           .message = applied.skipped ? "it has this revision" : "",
                                                           .status = StatusOf(applied.workload, *workload)}});
  }
  for (Effect& effect : ctx.answers) out.push_back(std::move(effect));
  for (Effect& effect : ctx.effects) out.push_back(std::move(effect));
  if (TellsNewState(ctx)) out.push_back(StatesChanged{});
}

bool Core::TellsNewState(const Context& ctx) {
  bool changed = false;
  for (const std::string& id : ctx.touched) {
    Workload* const workload = Find(id);
    const contract::ActualState now = workload == nullptr ? contract::ActualState::kMissing : ActualOf(*workload);
    if (workload == nullptr || std::exchange(workload->told, now) != now) changed = true;
  }
  return changed;
}

void Core::OnWake(Context& ctx) {
  for (const auto& [id, workload] : state_.workloads) {
    if (workload.restart_at && *workload.restart_at <= ctx.now.mono) ctx.touched.insert(id);
  }
  if (state_.prune_at && *state_.prune_at <= ctx.now.mono) PruneDeleted(ctx);
}

void Core::PruneDeleted(Context& ctx) {
  std::erase_if(state_.deleted, [&](const auto& entry) {
    if (ctx.now.wall - entry.second.at < state_.config.deleted_memory) return false;
    ctx.writes.push_back(kDeleted.Erase(entry.first));
    return true;
  });
  state_.prune_at.reset();
  if (!state_.deleted.empty()) state_.prune_at = ctx.now.mono + state_.config.deleted_memory;
}

void Core::OnMeasured(const Measured& measured) {
  for (const auto& [id, usage] : measured.usage) {
    Workload* const workload = Find(id);
    if (workload != nullptr && workload->run && workload->run->running) workload->usage = usage;
  }
}

std::optional<MonoTime> Core::NextWake() const {
  std::optional<MonoTime> soonest = state_.prune_at;
  for (const Runtime& runtime : state_.runtimes) {
    if (runtime.list_call == 0) Earlier(soonest, runtime.list_at);
  }
  for (const auto& [id, workload] : state_.workloads) {
    if (workload.restart_at && workload.operation == Operation::kNone && !workload.uncertain)
      Earlier(soonest, *workload.restart_at);
  }
  return soonest;
}

Core::Workload* Core::Find(const std::string& id) {
  const auto found = state_.workloads.find(id);
  return found == state_.workloads.end() ? nullptr : &found->second;
}

const Core::Runtime* Core::FindRuntime(model::WorkloadType type) const {
  const auto found = std::ranges::find(state_.runtimes, type, &Runtime::type);
  return found == state_.runtimes.end() ? nullptr : &*found;
}

std::set<std::string> Core::Secrets() const {
  std::set<std::string> handles;
  for (const auto& [id, workload] : state_.workloads) {
    for (const auto& [name, handle] : workload.row.wanted.spec.secret_env) handles.insert(handle);
  }
  return handles;
}

std::shared_ptr<const Snapshot> Core::View() const {
  auto view = std::make_shared<Snapshot>();
  view->epoch = epoch();
  if (statuses_ == nullptr) {
    std::vector<contract::WorkloadStatus> statuses;
    for (const auto& [id, workload] : state_.workloads) statuses.push_back(StatusOf(id, workload));
    statuses_ = std::make_shared<const std::vector<contract::WorkloadStatus>>(std::move(statuses));
  }
  view->statuses = statuses_;
  for (const auto& [id, workload] : state_.workloads) {
    if (!workload.row.wanted.run || workload.row.deleting) continue;
    // The sum was checked when each was admitted; a full state may ask for more than 64 bits hold.
    if (auto sum = model::Add(view->requested, workload.row.wanted.spec.resources)) view->requested = *std::move(sum);
  }
  for (const Runtime& runtime : state_.runtimes) {
    view->runtimes.push_back({.type = runtime.type,
                              .answered = runtime.listed || runtime.pause > Duration::zero(),
                              .listed = runtime.listed,
                              .status = runtime.status});
  }
  view->secrets = Secrets();
  view->operations_open = static_cast<int64_t>(state_.operations.size());
  view->restarts = state_.restarts;
  view->refused = state_.refused;
  view->stale = state_.stale;
  return view;
}

void Core::CheckInvariants() const {
  size_t open = 0;
  for (const auto& [id, workload] : state_.workloads) {
    const Row& row = workload.row;
    MUSTER_CHECK(row.wanted.workload == id, "the row of {} is that of {}", id, row.wanted.workload);
    MUSTER_CHECK(row.wanted.stamp.epoch <= state_.epoch || !state_.config.joins, "{} has the stamp of epoch {}", id,
                 row.wanted.stamp.epoch);
    MUSTER_CHECK(!workload.run || workload.run->launch <= row.launch, "{} runs launch {}, the newest is {}", id,
                 workload.run ? workload.run->launch : 0, row.launch);
    const bool ended = workload.run && !workload.run->running && workload.run->launch == row.launch;
    MUSTER_CHECK(!workload.restart_at || (ended && row.wanted.run && !row.deleting && !row.launch_due && !row.stray),
                 "{} waits for a restart that never comes", id);
    if (workload.operation == Operation::kNone) continue;
    ++open;
    const auto call = state_.operations.find(workload.last_call);
    MUSTER_CHECK(call != state_.operations.end() && call->second == id, "{} waits for a call that is not open", id);
  }
  MUSTER_CHECK(open == state_.operations.size(), "{} calls are open, {} workloads wait", state_.operations.size(),
               open);
  for (const auto& [id, deleted] : state_.deleted) {
    MUSTER_CHECK(!state_.workloads.contains(id), "{} is here and remembered as deleted", id);
  }
}

}  // namespace muster::agent
