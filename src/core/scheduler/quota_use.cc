#include "core/scheduler/quota_use.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/probe.h"

namespace muster::scheduler {

namespace {

// The same as of one workload, so that the larger of two can be told.
Holding InSum(Holding holding) {
  if (holding.running == 1) return holding;
  const model::Resources each = holding.each;
  for (const auto& [name, milli] : each.entries()) {
    int64_t sum = 0;
    const bool too_much = __builtin_mul_overflow(milli, holding.running, &sum);
    holding.each.Set(name, too_much ? std::numeric_limits<int64_t>::max() : sum);
  }
  holding.running = 1;
  return holding;
}

}  // namespace

QuotaUse::QuotaUse(const StoreCopy& copy, const Drafts& drafts, State state) : copy_(copy), drafts_(drafts) {
  tenants_.SetBuckets(std::move(state.buckets));
}

// The most of what its record, its draft and a commit of unknown outcome ask for, of each tenant by itself. What is
// asked for is taken at once; what is given up is free when that is durable, for another commit may be durable before
// it.
QuotaUse::Holdings QuotaUse::Wanted(const ObjectId& object) const {
  Holdings holdings;
  const auto add = [&](const auto* record) {
    const auto asked = record == nullptr ? std::nullopt : std::optional<Holding>(HoldingOf(*record));
    if (!asked) return;
    const Holding sum = InSum(*asked);
    const auto same = std::ranges::find(holdings, sum.tenant, &Holding::tenant);
    if (same == holdings.end()) return static_cast<void>(holdings.push_back(sum));
    same->each = model::Max(same->each, sum.each);
    same->workloads = std::max(same->workloads, sum.workloads);
  };
  const auto add_all = [&]<class R>(std::type_identity<R>) {
    add(copy_.Find<R>(object.name));
    add(drafts_.Find<R>(object.name));
    add(drafts_.FindDoubt<R>(object.name));
  };
  if (object.kind == contract::ObjectKind::kWorkload) add_all(std::type_identity<WorkloadRecord>());
  if (object.kind == contract::ObjectKind::kSet) add_all(std::type_identity<SetRecord>());
  return holdings;
}

void QuotaUse::Sync(const ObjectId& object) {
  if (object.kind == contract::ObjectKind::kNode) return;
  if (object.kind == contract::ObjectKind::kQuota) {
    const model::Quota* quota = copy_.Find<model::Quota>(object.name);
    if (quota == nullptr) return tenants_.RemoveQuota(object.name);
    return tenants_.SetQuota(*quota);
  }
  Holdings after = Wanted(object);
  const auto found = holdings_.find(object);
  if (found == holdings_.end() ? after.empty() : found->second == after) return;
  for (const Holding& holding : after) tenants_.Replace(std::nullopt, holding);
  if (found != holdings_.end()) {
    for (const Holding& holding : found->second) tenants_.Replace(holding, std::nullopt);
  }
  if (after.empty()) {
    holdings_.erase(found);
  } else {
    holdings_[object] = std::move(after);
  }
}

Status QuotaUse::Admit(const ObjectId& object, const std::optional<Holding>& after, bool runs) const {
  if (!after || MUTANT("scheduler.quota_ignored")) return {};
  std::optional<Holding> before;
  int64_t moved = 0;
  if (const auto found = holdings_.find(object); found != holdings_.end()) {
    const auto same = std::ranges::find(found->second, after->tenant, &Holding::tenant);
    if (same != found->second.end()) before = *same;
    for (const Holding& holding : found->second) moved = std::max(moved, holding.workloads);
  }
  return tenants_.Admit(before, *after, runs, moved);
}

void QuotaUse::Rebuild() {
  for (const auto& [tenant, quota] : copy_.All<model::Quota>()) Sync(QuotaObject(tenant));
  for (const auto& [name, set] : copy_.All<SetRecord>()) Sync(SetObject(name));
  for (const auto& [id, record] : copy_.All<WorkloadRecord>()) Sync(WorkloadObject(id));
  for (const auto& [object, draft] : drafts_.state().drafts) {
    if (object.kind != contract::ObjectKind::kQuota) Sync(object);
  }
}

void QuotaUse::CheckInvariants() const {
  for (const auto& [object, holdings] : holdings_) {
    MUSTER_CHECK(Wanted(object) == holdings, "what {} holds of its quota is outdated", object.name);
  }
}

}  // namespace muster::scheduler
