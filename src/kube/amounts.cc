#include "kube/amounts.h"

#include <algorithm>
#include <limits>

#include "model/quantity.h"

namespace muster::kube {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t SaturatingSum(int64_t a, int64_t b) { return a > kMost - b ? kMost : a + b; }

// What was granted to the container of this name, which differs from what it wants while a resize is under way.
void TakeGranted(ItemView statuses, std::string_view name, Amounts& requests) {
  statuses.ForEach([&](ItemView status) {
    if (status["name"].Text() != name) return;
    requests.TakeLarger(ReadAmounts(status["resources"]["requests"]));
    requests.TakeLarger(ReadAmounts(status["allocatedResources"]));
  });
}

Amounts RequestsOf(ItemView container, ItemView statuses) {
  Amounts requests = ContainerRequests(container["resources"]);
  TakeGranted(statuses, container["name"].Text(), requests);
  return requests;
}

// Resources that may be given for a pod as a whole.
bool IsPodLevel(std::string_view name) { return name == "cpu" || name == "memory" || name.starts_with("hugepages-"); }

void ApplyPodLevel(ItemView resources, Amounts& sum) {
  const Amounts requests = ReadAmounts(resources["requests"]);
  for (const auto& [name, milli] : requests.rows()) {
    if (IsPodLevel(name)) sum.Set(name, milli);
  }
  const Amounts limits = ReadAmounts(resources["limits"]);
  for (const auto& [name, milli] : limits.rows()) {
    if (IsPodLevel(name) && !requests.Has(name) && !sum.Has(name)) sum.Set(name, milli);
  }
}

}  // namespace

int64_t Amounts::Get(std::string_view name) const {
  for (const auto& [row, milli] : rows_) {
    if (row == name) return milli;
  }
  return 0;
}

bool Amounts::Has(std::string_view name) const {
  return std::ranges::any_of(rows_, [&](const auto& row) { return row.first == name; });
}

void Amounts::Set(std::string_view name, int64_t milli) {
  for (auto& [row, amount] : rows_) {
    if (row == name) {
      amount = milli;
      return;
    }
  }
  rows_.emplace_back(name, milli);
}

void Amounts::Add(const Amounts& other) {
  for (const auto& [name, milli] : other.rows_) Set(name, SaturatingSum(Get(name), milli));
}

void Amounts::TakeLarger(const Amounts& other) {
  for (const auto& [name, milli] : other.rows_) Set(name, std::max(Get(name), milli));
}

model::Resources Amounts::ToResources() const {
  model::Resources resources;
  for (const auto& [name, milli] : rows_) {
    if (!name.empty()) resources.Set(name, milli);
  }
  return resources;
}

Amounts ReadAmounts(ItemView view) {
  Amounts amounts;
  view.ForEachField([&](std::string_view name, ItemView value) {
    const Result<int64_t> milli = model::ParseQuantity(value.Scalar());
    if (!milli) {
      value.Fail(milli.error().message());
    } else if (*milli < 0) {
      value.Fail("the amount is negative");
    } else {
      amounts.Set(name, *milli);
    }
  });
  return amounts;
}

Amounts ContainerRequests(ItemView resources) {
  Amounts requests = ReadAmounts(resources["requests"]);
  const Amounts limits = ReadAmounts(resources["limits"]);
  for (const auto& [name, milli] : limits.rows()) {
    if (!requests.Has(name)) requests.Set(name, milli);
  }
  return requests;
}

Amounts PodRequests(ItemView spec, ItemView status) {
  Amounts sum;
  spec["containers"].ForEach([&](ItemView container) { sum.Add(RequestsOf(container, status["containerStatuses"])); });
  Amounts sidecars;
  Amounts largest_moment;
  spec["initContainers"].ForEach([&](ItemView container) {
    Amounts requests = RequestsOf(container, status["initContainerStatuses"]);
    if (container["restartPolicy"].Text() == "Always") {
      sum.Add(requests);
      sidecars.Add(requests);
      largest_moment.TakeLarger(sidecars);
    } else {
      requests.Add(sidecars);
      largest_moment.TakeLarger(requests);
    }
  });
  sum.TakeLarger(largest_moment);
  ApplyPodLevel(spec["resources"], sum);
  sum.Add(ReadAmounts(spec["overhead"]));
  return sum;
}

}  // namespace muster::kube
