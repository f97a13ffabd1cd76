#include "core/scheduler/refusals.h"

#include <fmt/format.h>

#include <utility>

#include "base/probe.h"

namespace muster::scheduler {
namespace {

constexpr int32_t kMostTold = 10;
constexpr Duration kCountedFor = 1s;
constexpr Duration kRemembered = 1min;

}  // namespace

void Refusals::Tell(const std::string& tenant, const ObjectId& object, Reason reason, const Status& status,
                    StepContext& ctx) {
  std::erase_if(state_.tenants, [&](const auto& entry) { return ctx.now.mono - entry.second.since > kRemembered; });
  Told& told = state_.tenants.try_emplace(tenant, Told{.since = ctx.now.mono}).first->second;
  if (ctx.now.mono - told.since >= kCountedFor) {
    told.since = ctx.now.mono;
    told.told = 0;
  }
  if (told.told >= kMostTold && !MUTANT("scheduler.refusals_flood")) {
    PROBE("scheduler.refusal_left_out");
    ++told.left_out;
    return;
  }
  ++told.told;
  const bool is_workload = object.kind == contract::ObjectKind::kWorkload;
  std::string detail = is_workload ? status.message() : fmt::format("set {}: {}", object.name, status.message());
  if (const int64_t left_out = std::exchange(told.left_out, 0); left_out > 0) {
    detail += fmt::format("; {} refusals before this one were not told", left_out);
  }
  ctx.Emit(Publish{contract::Decision{.kind = contract::DecisionKind::kRefused,
                                      .at = ctx.now.wall,
                                      .workload = is_workload ? object.name : std::string(),
                                      .reason = std::string(ReasonName(reason)),
                                      .message = ReasonText(reason, detail)}});
}

}  // namespace muster::scheduler
