// Tenants: what each has in use against its quota, and how fast it may apply.
//
// A plain workload holds its request, a set that of all its members, from the moment it is declared: what was admitted
// never fails later for the same quota. Surge members are not counted. Lowering a quota stops nothing that runs.
//
// A tenant without a quota is not limited, but all together are: a scheduler has kMostWorkloads (workload_bounds.h) at
// the most. The empty tenant is one like others. Usage is counted for every tenant, so
// that a quota holds from the moment it is set. Names that count as gpu: "gpu", "gpu-milli" (thousandths of one), and
// every name that ends in "/gpu"; as disk: "disk", "storage", "ephemeral-storage".
//
// Invariants: (1) the usage of a tenant is the sum of its holdings, in whatever order they came and went; (2) a rate's
// bucket never holds more than its burst, nor less than nothing, and does not fill while time stands still.
//
// Thread-safety: none. Pure: time comes with the calls.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/cluster_views.h"
#include "core/scheduler/records.h"
#include "model/resources.h"
#include "model/workload.h"
#include "placement/arithmetic.h"

namespace muster::scheduler {

// What one declared object has of its tenant's quota.
struct Holding {
  std::string tenant;
  model::Resources each;  // of one workload
  int64_t running = 0;    // workloads that hold `each`
  int64_t workloads = 0;  // that exist; stopped ones are among them, and a set without members is one

  bool operator==(const Holding&) const = default;
};

// Nothing for a member of a set, for the set holds for it. A stopped workload holds no resources once it has stopped,
// one that is deleted holds them until its record is gone.
std::optional<Holding> HoldingOf(const WorkloadRecord& record);
// All members, of a job those that have not completed. A set that is deleted holds them until its record is gone.
Holding HoldingOf(const SetRecord& record);
// What a spec would hold if it were applied.
Holding HoldingOf(const model::WorkloadSpec& spec);

class Tenants {
 public:
  struct Bucket {
    int64_t milli = 0;  // thousandths of an apply
    MonoTime filled_at;

    MUSTER_FIELDS(Bucket, milli, filled_at)
  };
  using Buckets = std::map<std::string, Bucket, std::less<>>;

  void SetQuota(const model::Quota& quota);
  void RemoveQuota(std::string_view tenant);
  // Forgets usage and quotas; buckets stay, so that a restart of the copy does not give a new burst.
  void Clear();

  // A holding became another one; nothing before: it is new; nothing after: it is gone.
  void Replace(const std::optional<Holding>& before, const std::optional<Holding>& after);

  // Whether `after` may take the place of `before`. RESOURCE_EXHAUSTED names the tenant and the figures: "tenant shop:
  // cpu 98 of 100 in use, 4 more asked for", or "scheduler: ..." where it has no more workloads to give. A holding that
  // `runs` and asks for no more of a dimension is not refused for it. The scheduler's bound counts `moved` workloads as
  // given up too: those that the object has of another tenant.
  Status Admit(const std::optional<Holding>& before, const Holding& after, bool runs = true, int64_t moved = 0) const;

  // Takes one apply from the tenant's bucket. RESOURCE_EXHAUSTED says the rate and when the next one is free.
  Status TakeApply(std::string_view tenant, MonoTime now);

  // What journals keep; quotas and usage follow from the records.
  const Buckets& buckets() const { return buckets_; }
  void SetBuckets(Buckets buckets) { buckets_ = std::move(buckets); }

  // Quotas with what is in use, by tenant; of one tenant if it is named.
  std::vector<contract::QuotaView> Views(std::string_view tenant) const;

 private:
  static constexpr size_t kDimensions = 4;
  // Thousandths; wide, so that sums of what files may ask for are exact.
  struct Usage {
    std::array<placement::Wide, kDimensions> amounts{};
    placement::Wide workloads = 0;
  };

  static Usage UsageOf(const Holding& holding);
  void Count(const Holding& holding, int sign);

  std::map<std::string, model::Quota, std::less<>> quotas_;
  std::map<std::string, Usage, std::less<>> usage_;  // of tenants that have something
  placement::Wide workloads_ = 0;                    // of all of them
  Buckets buckets_;
};

}  // namespace muster::scheduler
