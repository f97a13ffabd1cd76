#include "core/shard/action_log.h"

namespace muster::shard {
namespace {

constexpr size_t kActionsListed = 2000;

}  // namespace

uint64_t ActionLog::Add(const contract::ActionView& action, StepContext& ctx) {
  state_.actions.push_back(action);
  if (state_.actions.size() > kActionsListed) state_.actions.pop_front();
  ctx.Emit(Audit{.action = action, .took = {}});
  return ++state_.logged;
}

void ActionLog::End(uint64_t line, const contract::ActionView& action, Duration took, StepContext& ctx) {
  const uint64_t dropped = state_.logged - state_.actions.size();
  if (line > dropped) state_.actions[line - dropped - 1] = action;
  ctx.Emit(Audit{.action = action, .took = took});
}

contract::ActionsListed ActionLog::List(const contract::ListActions& query) const {
  contract::ActionsListed listed;
  for (auto action = state_.actions.rbegin(); action != state_.actions.rend(); ++action) {
    if (!query.cluster_id.empty() && action->cluster_id != query.cluster_id) continue;
    if (query.limit > 0 && listed.actions.size() >= static_cast<size_t>(query.limit)) break;
    listed.actions.push_back(*action);
  }
  return listed;
}

}  // namespace muster::shard
