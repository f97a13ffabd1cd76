// Amounts: a handful of resources and how much of each, in milli-units, while the requests of a pod are summed up.
// Names are borrowed from the item that is being read.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/item.h"
#include "model/resources.h"

namespace muster::kube {

class Amounts {
 public:
  int64_t Get(std::string_view name) const;  // 0 if absent
  bool Has(std::string_view name) const;
  void Set(std::string_view name, int64_t milli);
  // Sums saturate at the largest amount, which no node has.
  void Add(const Amounts& other);
  void TakeLarger(const Amounts& other);
  bool empty() const { return rows_.empty(); }
  const std::vector<std::pair<std::string_view, int64_t>>& rows() const { return rows_; }

  model::Resources ToResources() const;

 private:
  std::vector<std::pair<std::string_view, int64_t>> rows_;
};

// A map of quantities, such as `requests`. A quantity that is malformed or negative is an error of the item.
Amounts ReadAmounts(ItemView view);

// What a container requests: its requests, and its limits where a request is absent.
Amounts ContainerRequests(ItemView resources);

// What the scheduler sets aside for a pod, as Kubernetes computes it: containers and sidecars summed; the largest
// moment of the init containers, each beside the sidecars that started before it; resources of the pod as a whole in
// place of the sum; the overhead of its runtime class; and, while a resize is under way, the larger of wanted and
// granted. `spec` is a pod's or a template's; `status` is not present for a template.
Amounts PodRequests(ItemView spec, ItemView status);

}  // namespace muster::kube
