#include "core/shard/gets.h"

namespace muster::shard {
namespace {

constexpr size_t kOpenAtOnce = 16;

}  // namespace

void Gets::Ask(StepContext& ctx) {
  if (ctx.now.mono < state_.next) return;
  for (auto it = state_.scheduled.begin(); it != state_.scheduled.end() && state_.asked.size() < kOpenAtOnce;) {
    const std::string id = *it;
    it = state_.scheduled.erase(it);
    if (machines_.IsCalling(id)) {
      machines_.Find(id)->missed = true;  // the end of the call schedules the get again
      continue;
    }
    if (!state_.asked.insert(id).second) continue;
    const contract::CallId call =
        calls_.Open({.kind = OpenCall::Kind::kGet, .machine = id, .begun = machines_.NextMoment()});
    ctx.Emit(Call{.id = call,
                  .to = std::string(kProvider),
                  .request = contract::GetRequest{.machine_id = id},
                  .timeout = config_.call_timeout});
  }
}

}  // namespace muster::shard
