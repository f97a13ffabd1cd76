#include "core/scheduler/tenants.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/names.h"
#include "model/quantity.h"
#include "model/text_scalars.h"
#include "model/workload_bounds.h"

namespace muster::scheduler {
namespace {

using placement::Wide;

constexpr std::array<std::string_view, 4> kLimited = {"cpu", "memory", "disk", "gpu"};
constexpr size_t kNone = kLimited.size();
constexpr int64_t kNanos = 1'000'000'000;
constexpr int64_t kWhole = 1000;  // thousandths of one apply

// Which limit a resource counts for; kNone: for no one.
size_t DimensionOf(std::string_view resource) {
  if (resource == "cpu") return 0;
  if (resource == "memory") return 1;
  if (resource == "disk" || resource == "storage" || resource == "ephemeral-storage") return 2;
  if (resource == "gpu" || resource == "gpu-milli" || resource.ends_with("/gpu")) return 3;
  return kNone;
}

int64_t Narrow(Wide amount) {
  return static_cast<int64_t>(std::clamp<Wide>(amount, 0, std::numeric_limits<int64_t>::max()));
}

std::string Shown(size_t dimension, Wide amount) {
  // Disk is an amount of bytes, as storage is.
  return model::FormatQuantityFor(kLimited[dimension] == "disk" ? "storage" : kLimited[dimension], Narrow(amount));
}

std::string TenantName(std::string_view tenant) {
  return tenant.empty() ? "workloads without a tenant" : fmt::format("tenant {}", tenant);
}

bool HoldsResources(const model::Workload& workload) {
  if (workload.phase == model::WorkloadPhase::kCompleted) return false;
  return workload.desired != model::DesiredState::kStopped || workload.phase != model::WorkloadPhase::kStopped;
}

int64_t BurstOf(const model::Quota& quota) {
  // Without a burst: what the rate gives in a second, at least one.
  const int64_t burst = quota.burst > 0 ? int64_t{quota.burst} * kWhole : quota.applies_milli_hz;
  return std::max(burst, kWhole);
}

}  // namespace

std::optional<Holding> HoldingOf(const WorkloadRecord& record) {
  const model::Workload& workload = record.workload;
  if (!workload.set.empty()) return std::nullopt;
  return Holding{.tenant = workload.tenant,
                 .each = workload.spec.resources,
                 .running = HoldsResources(workload) ? 1 : 0,
                 .workloads = 1};
}

Holding HoldingOf(const SetRecord& record) {
  Holding holding = HoldingOf(record.spec);
  if (record.spec.kind != model::WorkloadKind::kJob) return holding;
  for (const int32_t number : record.completed) {
    if (number < record.spec.replicas) --holding.running;
  }
  return holding;
}

Holding HoldingOf(const model::WorkloadSpec& spec) {
  const int64_t count = spec.kind == model::WorkloadKind::kWorkload ? 1 : std::max(0, spec.replicas);
  return {
      .tenant = spec.tenant, .each = spec.spec.resources, .running = count, .workloads = std::max<int64_t>(1, count)};
}

void Tenants::SetQuota(const model::Quota& quota) { quotas_[quota.tenant] = quota; }

void Tenants::RemoveQuota(std::string_view tenant) {
  if (const auto at = quotas_.find(tenant); at != quotas_.end()) quotas_.erase(at);
  if (const auto at = buckets_.find(tenant); at != buckets_.end()) buckets_.erase(at);
}

void Tenants::Clear() {
  quotas_.clear();
  usage_.clear();
  workloads_ = 0;
}

Tenants::Usage Tenants::UsageOf(const Holding& holding) {
  Usage usage;
  usage.workloads = holding.workloads;
  for (const auto& [name, milli] : holding.each.entries()) {
    const size_t dimension = DimensionOf(name);
    if (dimension == kNone) continue;
    const Wide amount = name == "gpu-milli" ? milli / 1000 : milli;
    usage.amounts[dimension] += amount * holding.running;
  }
  return usage;
}

void Tenants::Count(const Holding& holding, int sign) {
  const Usage change = UsageOf(holding);
  Usage& usage = usage_[holding.tenant];
  for (size_t i = 0; i < kDimensions; ++i) usage.amounts[i] += sign * change.amounts[i];
  usage.workloads += sign * change.workloads;
  workloads_ += sign * change.workloads;
  if (usage.workloads == 0) usage_.erase(usage_.find(holding.tenant));
}

void Tenants::Replace(const std::optional<Holding>& before, const std::optional<Holding>& after) {
  if (after) Count(*after, 1);
  if (before) Count(*before, -1);
}

Status Tenants::Admit(const std::optional<Holding>& before, const Holding& after, bool runs, int64_t moved) const {
  const bool same_tenant = before && before->tenant == after.tenant;
  const Wide added = Wide{after.workloads} - std::max(same_tenant ? before->workloads : 0, moved);
  if (added > 0 && workloads_ + added > model::kMostWorkloads) {
    return {Code::kResourceExhausted, fmt::format("scheduler: workloads {} of {} in use, {} more asked for",
                                                  Narrow(workloads_), model::kMostWorkloads, Narrow(added))};
  }
  const auto found = quotas_.find(after.tenant);
  if (found == quotas_.end()) return {};
  const model::Quota& quota = found->second;
  const Usage old_part = same_tenant ? UsageOf(*before) : Usage();
  const Usage new_part = UsageOf(after);
  const auto at = usage_.find(after.tenant);
  const Usage used = at == usage_.end() ? Usage() : at->second;

  std::string figures;
  const auto add = [&](std::string_view what, const std::string& in_use, const std::string& limit,
                       const std::string& more) {
    figures +=
        fmt::format("{}{} {} of {} in use, {} more asked for", figures.empty() ? "" : "; ", what, in_use, limit, more);
  };
  for (size_t i = 0; i < kDimensions; ++i) {
    const int64_t limit = quota.limits.Get(kLimited[i]);
    const Wide others = used.amounts[i] - old_part.amounts[i];
    const Wide asked = new_part.amounts[i];
    const bool no_more = asked == 0 || (runs && asked <= old_part.amounts[i]);
    if (limit == 0 || no_more || others + asked <= limit) continue;
    const Wide held = runs ? old_part.amounts[i] : 0;
    add(kLimited[i], Shown(i, others + held), Shown(i, limit), Shown(i, asked - held));
  }
  const Wide more = new_part.workloads - old_part.workloads;
  if (quota.workloads >= 0 && more > 0 && used.workloads + more > quota.workloads) {
    add("workloads", fmt::to_string(Narrow(used.workloads)), fmt::to_string(quota.workloads),
        fmt::to_string(Narrow(more)));
  }
  if (figures.empty()) return {};
  return {Code::kResourceExhausted, fmt::format("{}: {}", TenantName(after.tenant), figures)};
}

Status Tenants::TakeApply(std::string_view tenant, MonoTime now) {
  const auto found = quotas_.find(tenant);
  if (found == quotas_.end() || found->second.applies_milli_hz <= 0) return {};
  const model::Quota& quota = found->second;
  const int64_t rate = quota.applies_milli_hz;
  const int64_t most = BurstOf(quota);
  const auto [at, is_new] = buckets_.try_emplace(std::string(tenant), Bucket{.milli = most, .filled_at = now});
  Bucket& bucket = at->second;
  const int64_t elapsed = std::max<int64_t>(0, (now - bucket.filled_at).count());
  const Wide filled = static_cast<Wide>(elapsed) * rate / kNanos;
  // The time that made whole thousandths is spent, the rest of it counts on.
  bucket.filled_at += Duration(static_cast<int64_t>((filled * kNanos + rate - 1) / rate));
  if (bucket.milli + filled >= most) bucket.filled_at = now;  // nothing counts on beside a full bucket
  bucket.milli = static_cast<int64_t>(std::min<Wide>(bucket.milli + filled, most));
  if (bucket.milli >= kWhole) {
    bucket.milli -= kWhole;
    return {};
  }
  const Wide wait =
      (static_cast<Wide>(kWhole - bucket.milli) * kNanos + rate - 1) / rate - (now - bucket.filled_at).count();
  const int64_t millis = std::max<int64_t>(1, Narrow((wait + 999'999) / 1'000'000));
  return {Code::kResourceExhausted, fmt::format("{}: {} applies a second (burst {}) are used up; try again in {}",
                                                TenantName(tenant), model::FormatQuantity(rate), most / kWhole,
                                                model::FormatDuration(std::chrono::milliseconds(millis)))};
}

std::vector<contract::QuotaView> Tenants::Views(std::string_view tenant) const {
  std::vector<contract::QuotaView> views;
  for (const auto& [name, quota] : quotas_) {
    if (!tenant.empty() && name != tenant) continue;
    contract::QuotaView& view = views.emplace_back(contract::QuotaView{.quota = quota});
    const auto at = usage_.find(name);
    if (at == usage_.end()) continue;
    for (size_t i = 0; i < kDimensions; ++i) view.used.Set(kLimited[i], Narrow(at->second.amounts[i]));
    view.workloads = Narrow(at->second.workloads);
  }
  return views;
}

}  // namespace muster::scheduler
