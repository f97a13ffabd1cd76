#include "core/scheduler/quota_use.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/probe.h"

namespace muster::scheduler {

QuotaUse::QuotaUse(const StoreCopy& copy, const Drafts& drafts, State state) : copy_(copy), drafts_(drafts) {
  tenants_.SetBuckets(std::move(state.buckets));
}

std::optional<Holding> QuotaUse::Wanted(const ObjectId& object) const {
  if (object.kind == contract::ObjectKind::kWorkload) {
    const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(object.name);
    std::optional<Holding> holding = record == nullptr ? std::nullopt : HoldingOf(*record);
    const WorkloadRecord* doubt = drafts_.FindDoubt(object.name);
    if (doubt == nullptr) return holding;
    // The larger of both, until it is known which of them the store has.
    std::optional<Holding> possible = HoldingOf(*doubt);
    if (!possible || !holding || holding->tenant != possible->tenant) return possible ? possible : holding;
    possible->each = model::Max(possible->each, holding->each);
    possible->running = std::max(possible->running, holding->running);
    return possible;
  }
  if (object.kind == contract::ObjectKind::kSet) {
    const SetRecord* record = drafts_.Find<SetRecord>(object.name);
    if (record != nullptr) return HoldingOf(*record);
  }
  return std::nullopt;
}

void QuotaUse::Sync(const ObjectId& object) {
  if (object.kind == contract::ObjectKind::kNode) return;
  if (object.kind == contract::ObjectKind::kQuota) {
    const model::Quota* quota = copy_.Find<model::Quota>(object.name);
    if (quota == nullptr) return tenants_.RemoveQuota(object.name);
    return tenants_.SetQuota(*quota);
  }
  std::optional<Holding> after = Wanted(object);
  const auto found = holdings_.find(object);
  const std::optional<Holding> before = found == holdings_.end() ? std::nullopt : std::optional(found->second);
  if (before == after) return;
  tenants_.Replace(before, after);
  if (after) {
    holdings_[object] = *std::move(after);
  } else {
    holdings_.erase(found);
  }
}

Status QuotaUse::Admit(const ObjectId& object, const std::optional<Holding>& after) const {
  if (!after || MUTANT("scheduler.quota_ignored")) return {};
  const auto found = holdings_.find(object);
  return tenants_.Admit(found == holdings_.end() ? std::nullopt : std::optional(found->second), *after);
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
  for (const auto& [object, holding] : holdings_) {
    MUSTER_CHECK(Wanted(object) == holding, "what {} holds of its quota is outdated", object.name);
  }
}

}  // namespace muster::scheduler
