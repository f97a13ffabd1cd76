#include "core/scheduler/refusals.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/probe.h"

namespace muster::scheduler {
namespace {

constexpr int32_t kMostTold = 10;
constexpr Duration kCountedFor = 1s;
constexpr Duration kRemembered = 1min;
constexpr std::string_view kOthers = ":";  // no tenant's name has a colon

// By the bound on all workloads, as Tenants::Admit words it.
bool IsOfScheduler(const Status& status) { return status.message().starts_with("scheduler: "); }

}  // namespace

Refusals::Told& Refusals::Count(const std::string& tenant, const Status& status, MonoTime now) {
  auto& all = state_.tenants;
  const bool full = all.size() >= kMostTenants && !all.contains(tenant);
  const bool shared = full || IsOfScheduler(status);
  const auto [at, is_new] = all.try_emplace(shared ? std::string(kOthers) : tenant, Told{.since = now});
  Told& told = at->second;
  if (!is_new && now - told.since < kCountedFor) return told;
  const bool forgotten = now - told.since > kRemembered;
  told = {.since = now, .left_out = forgotten ? 0 : told.left_out};
  // Once a second for each tenant: a flood does not look through all of them for every refusal.
  std::erase_if(all, [&](const auto& entry) { return now - entry.second.since > kRemembered; });
  return told;
}

void Refusals::Tell(const std::string& tenant, const ObjectId& object, Reason reason, const Status& status,
                    StepContext& ctx) {
  Told& told = Count(tenant, status, ctx.now.mono);
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
