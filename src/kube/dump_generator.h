// Writes a Kubernetes dump of any size, as `kubectl get ... -o json` would: for tests and benchmarks of what reads one.
//
// The same options give the same bytes. Every pod that has a node fits on it; about half of what the nodes have is
// requested. Objects carry the ballast of real ones (managed fields, environment, probes, statuses), about 8 KB a pod.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace muster::kube {

struct GeneratorOptions {
  int64_t nodes = 100;
  int64_t pods = 2000;  // those of DaemonSets among them
  int64_t pending = 0;  // of `pods`: without a node
  uint64_t seed = 1;
  bool ballast = true;
};

// Calls `write` with the text piece by piece. `nodes` and `pods` must not be negative (checked).
void GenerateDump(const GeneratorOptions& options, const std::function<void(std::string_view)>& write);

}  // namespace muster::kube
